"""Ranks that outlive their server: nothing starts beside them, and each node's own strixd ends its own."""

from __future__ import annotations

from strixd.resources.leftovers import LEFT_AFTER
from strixd.sim.ray import RANKS_END
from strixd.sim.world import RAY, VLLM, World
from tests.sim.node import explain, living, serving, starts, virtual, world


async def started_again(world: World, before: int, *, within: float) -> float:
    """Seconds until the server was started once more, with no rank left on any node."""
    begun = world.clock.now()
    while starts(world, VLLM) == before:
        assert world.clock.now() - begun < within
        await world.clock.sleep(0.05)
    assert not any(world.serving.met)
    return world.clock.now() - begun


@virtual
async def test_a_start_waits_for_the_ranks_that_end_by_themselves_and_no_longer() -> None:
    async with serving() as node:
        await node.world.clock.sleep(600)
        assert {each.ranks for each in node.world.cluster.nodes} == {1}
        node.world.kill(VLLM)
        assert RANKS_END <= await started_again(node.world, 1, within=60) < 1.0
        await node.answers(seconds=120)
        assert starts(node.world, RAY) == 1


@virtual
async def test_a_rank_left_on_a_worker_is_ended_by_its_own_strixd() -> None:
    async with serving() as node:
        await node.world.clock.sleep(600)
        node.world.cluster.others["halo2"].stuck = True
        node.world.kill(VLLM)
        await node.until(
            lambda status: "1 rank of the former run is still there, on halo2" in explain(status), seconds=9
        )
        assert await started_again(node.world, 1, within=60) > LEFT_AFTER
        assert starts(node.world, RAY) == 1, "the head's own Ray runs on"
        await node.answers(seconds=120)
        assert "server" not in node.world.cluster.kept
        incident = node.status.incident
        assert incident
        assert incident.cause == f"{VLLM} killed by signal 9"


@virtual
async def test_a_rank_left_on_the_head_takes_its_ray_with_it() -> None:
    async with serving() as node:
        await node.world.clock.sleep(600)
        node.world.cluster.own.stuck = True
        node.world.kill(VLLM)
        assert await started_again(node.world, 1, within=60) > LEFT_AFTER
        assert starts(node.world, RAY) == 2
        await node.answers(seconds=120)


@virtual
async def test_where_nobody_ends_it_nothing_is_started_and_the_node_is_named() -> None:
    async with serving() as node:
        other = node.world.cluster.others["halo2"]
        other.stuck = other.deaf = True
        node.world.kill(VLLM)
        await node.world.clock.sleep(3600)
        assert starts(node.world, VLLM) == starts(node.world, RAY) == 1
        assert "1 rank of the former run is still there, on halo2" in explain(node.status)
        writes = len(node.world.calls.writes)
        await node.world.clock.sleep(3600)
        assert len(node.world.calls.writes) == writes
        node.world.cluster.switch("halo2", on=False)
        node.world.cluster.switch("halo2", on=True)
        await node.answers(seconds=120)


@virtual
async def test_other_words_for_the_model_wait_for_the_old_ranks_too() -> None:
    async with serving() as node:
        assert node.engine
        await node.world.clock.sleep(600)
        await node.engine.serve("another", (), by="uid 0: serve")
        await started_again(node.world, 1, within=20)
        await node.answers(seconds=120)


@virtual
async def test_a_server_that_hangs_ends_with_its_ranks_before_the_next_is_started() -> None:
    async with serving() as node:
        await node.world.clock.sleep(600)
        server = node.world.server()
        assert server
        server.hang()
        await started_again(node.world, 1, within=120)
        await node.answers(seconds=120)
        assert starts(node.world, RAY) == 1


@virtual
async def test_a_worker_starts_its_ray_again_only_when_its_head_says_that_the_server_is_down() -> None:
    member = world("halo2")
    member.cluster.begin()
    async with living(member) as node:
        await node.until(lambda status: status.phase == "ready", seconds=60)
        member.cluster.place()
        await member.clock.sleep(600)
        assert starts(member, RAY) == 1
        head = member.cluster.others["halo1"]
        head.record["server"] = "down"
        member.changed("ray record")
        await member.clock.sleep(30)
        assert starts(member, RAY) == 2
        assert member.cluster.own.ranks == 0
        await member.clock.sleep(600)
        assert starts(member, RAY) == 2, "without ranks there is nothing to end"


@virtual
async def test_another_version_of_strixd_is_told_and_stops_nothing() -> None:
    odd = world()
    odd.cluster.others["halo2"].record["version"] = "0.0.9"
    async with living(odd) as node:
        await node.until(lambda status: status.phase == "ready", seconds=60)
        facts = next(view.facts for view in node.status.resources if view.name == "ray")
        assert any(fact.startswith("halo2 runs strixd 0.0.9, this node ") for fact in facts)
