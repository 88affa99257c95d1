"""A second cable between two nodes, in service: what the loss of the first costs, and when that is taken again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strixd.engine.status import ResourceView, Status
from strixd.resources.spare import APART, GRACE
from strixd.sim import clock
from strixd.sim.hotplug import spared
from strixd.sim.world import FABRIC, SPARE, VLLM, World
from tests.cluster_file import cluster_file
from tests.sim.mischief import FAULTS, patience
from tests.sim.mischief import SPARED as CABLES
from tests.sim.node import MODEL, Node, answering, living, starts, virtual, world
from tests.sim.often import tried
from tests.sim.ordeal import undergo

FILE = cluster_file(name="sim", prefix=24, card='driver = "ice"\nspare-driver = "thunderbolt-net"')
GOOD = "RDMA (RoCE v2, irdma0 port 1, GID 3)"
BOLT = f"TCP over {SPARE}, 40 Gb/s"
SWITCHED = f"no carrier on {FABRIC}; goes on over {SPARE}, TCP, about 70 µs instead of 5 µs"


@asynccontextmanager
async def serving(made: World | None = None) -> AsyncIterator[Node]:
    """A head with a spare link, whose model answers."""
    async with living(made or spared(world())) as node:
        node.text = FILE
        await node.restart()
        assert node.engine
        await node.engine.serve(MODEL, (), by="uid 0: serve")
        await node.answers(seconds=120)
        yield node


def over(status: Status) -> str:
    return status.model.over if status.model else ""


def network(node: Node) -> ResourceView:
    return next(view for view in node.status.resources if view.name == "network")


def holder(node: Node) -> str:
    """The link that has the fabric's address."""
    return "".join(nic.name for nic in node.world.network.nics.values() if "192.168.100.1/24" in nic.link.addresses)


async def on_the_spare(node: Node) -> None:
    node.world.plug(cable=False)
    await node.until(lambda status: over(status) == BOLT and answering(status), seconds=200)


@virtual
async def test_the_cable_is_out_for_good_and_the_model_goes_on_over_the_spare() -> None:
    async with serving() as node:
        assert over(node.status) == GOOD
        await on_the_spare(node)
        assert holder(node) == SPARE
        incident = node.status.incident
        assert incident
        assert incident.ended
        assert (incident.resource, incident.cause) == ("network", SWITCHED)
        assert node.engine
        assert node.engine.history(1)[0].by == SWITCHED
        assert network(node).condition == "ok"
        assert f"{SPARE}, the spare, is in force (no carrier on {FABRIC})" in network(node).facts
        calls = list(node.world.calls.writes)
        await node.world.clock.sleep(3600)
        assert node.world.calls.writes == calls


@virtual
async def test_a_flap_moves_nothing() -> None:
    async with serving() as node:
        node.world.plug(cable=False)
        await node.until(lambda _: "when it stays so for 5 s" in network(node).why, seconds=3)
        node.world.plug(cable=True)
        await node.world.clock.sleep(60)
        assert holder(node) == FABRIC
        assert starts(node.world, VLLM) == 1


@virtual
async def test_the_first_link_is_taken_again_by_an_apply_and_not_by_itself() -> None:
    async with serving() as node:
        assert node.engine
        await on_the_spare(node)
        await node.engine.apply("uid 0: apply")
        node.world.plug(cable=True)
        await node.world.clock.sleep(600)
        assert holder(node) == SPARE, "an apply before it was back asked for nothing"
        assert any(f"{FABRIC} has its carrier again: strixd-cli apply takes it" in each for each in network(node).facts)
        begun = starts(node.world, VLLM)
        await node.engine.apply("uid 0: apply")
        await node.until(lambda status: holder(node) == FABRIC and answering(status), seconds=200)
        assert starts(node.world, VLLM) <= begun + 1
        (profile,) = node.world.network.stored.values()
        assert (profile.mac, profile.others) == (node.world.network.nics[FABRIC].link.mac, ())


@virtual
async def test_a_node_follows_the_other_one_back() -> None:
    async with serving() as node:
        await on_the_spare(node)
        node.world.plug(cable=True)
        await node.world.clock.sleep(60)
        node.world.peers_on = FABRIC
        node.world.changed("the other node has moved")
        assert await node.until(lambda _: holder(node) == FABRIC, seconds=120) >= APART
        await node.answers(seconds=200)


@virtual
async def test_a_restarted_strixd_moves_nothing() -> None:
    async with serving() as node:
        await on_the_spare(node)
        node.world.plug(cable=True)
        begun = starts(node.world, VLLM)
        for _ in range(3):
            await node.restart()
            await node.world.clock.sleep(2 * APART)
        assert holder(node) == SPARE
        assert starts(node.world, VLLM) == begun


@pytest.mark.parametrize("cable", [True, False])
@virtual
async def test_after_a_boot_it_is_the_first_link_again_where_that_has_carrier(cable: bool) -> None:
    async with serving() as node:
        await on_the_spare(node)
        node.world.plug(cable=cable)
        await node.reboot()
        await node.answers(seconds=200)
        assert holder(node) == (FABRIC if cable else SPARE)


@virtual
async def test_both_cables_are_out_and_the_spare_comes_back_first() -> None:
    async with serving() as node:
        await on_the_spare(node)
        node.world.plug(cable=False, link=SPARE)
        await node.until(lambda _: network(node).condition == "blocked", seconds=30)
        assert network(node).why == f"no carrier on {SPARE}"
        await node.world.clock.sleep(60)
        node.world.plug(cable=True, link=SPARE)
        await node.until(lambda status: over(status) == BOLT and answering(status), seconds=200)
        node.world.plug(cable=True)
        node.world.plug(cable=False, link=SPARE)
        await node.until(lambda status: holder(node) == FABRIC and answering(status), seconds=200)


@virtual
async def test_an_undo_puts_it_back_and_leaves_it_alone() -> None:
    async with serving() as node:
        assert node.engine
        await on_the_spare(node)
        node.world.plug(cable=True)
        await node.world.clock.sleep(2 * GRACE)
        await node.engine.undo("uid 0: undo")
        await node.until(lambda _: holder(node) == FABRIC, seconds=30)


words = st.sampled_from(
    [*CABLES, "cable out", "cable in", *FAULTS, "restart strixd", "killed in the middle", "reboot", "apply"]
)
waits = st.sampled_from([0.1, 1.0, 3.0, 6.0, 10.0, 40.0, 100.0])
cables = st.sampled_from([*CABLES, "cable out", "cable in"])
sequences = st.lists(st.tuples(cables | words, waits), min_size=1, max_size=8)


@given(sequences)
@tried(8)
def test_tokens_come_again_with_a_spare_link_too(sequence: list[tuple[str, float]]) -> None:
    async def life() -> None:
        async with serving() as node:
            laws = await undergo(node, sequence)
            wait = patience(node)
            await node.until(lambda status: holder(node) == FABRIC and answering(status), seconds=wait)
            assert not laws.broken

    clock.run(life())
