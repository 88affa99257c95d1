"""The memory limit stands before what it limits, and its failure costs nobody the model."""

from __future__ import annotations

from strixd.errors import Rejected
from strixd.ports import Bound
from strixd.quadlet import SLICE
from strixd.resources import memory
from strixd.sim import simulated_host
from strixd.sim.world import RAY
from tests.sim.node import MODEL, Node, living, serving, starts, virtual, world


def condition(node: Node) -> str:
    return next(view.condition for view in node.status.resources if view.name == "memory")


@virtual
async def test_it_is_set_before_ray_starts() -> None:
    async with serving() as node:
        calls = [(call.method, call.args[:1]) for call in node.world.calls.writes]
        assert calls.index(("limit", (SLICE,))) < calls.index(("start", (RAY,)))
        assert condition(node) == "ok"


@virtual
async def test_a_limit_that_cannot_be_set_is_told_and_the_model_answers() -> None:
    ours = world()
    for number in range(1, 400):
        ours.fail("kernel.memory", Rejected("Cannot read how much memory there is"), at=number)
    async with living(ours) as node:
        assert node.engine
        await node.engine.serve(MODEL, (), by="uid 0: serve")
        await node.answers(seconds=120)
        assert condition(node) == "held"
        ours.calls.faults.clear()
        await node.until(lambda _: condition(node) == "ok", seconds=60)


@virtual
async def test_an_end_for_want_of_memory_is_the_incidents_cause() -> None:
    async with serving() as node:
        record = node.world.systemd.records["strixd-vllm.service"]
        assert record.run
        node.world.systemd.over(record.run, "failed", "oom-kill", 137)
        await node.until(lambda status: status.incident is not None and not status.incident.ended, seconds=30)
        assert node.status.incident
        assert "memory ran out" in node.status.incident.cause
        await node.answers(seconds=120)


@virtual
async def test_another_reserve_counts_at_once_and_restarts_nothing() -> None:
    async with serving() as node:
        assert node.engine
        started, ordered = starts(node.world, RAY), node.status.ordered
        node.text += '[model]\nmemory-reserve = "16GiB"\n'
        await node.engine.apply(by="uid 0: apply")
        await node.until(lambda status: status.ordered > ordered and condition(node) == "ok", seconds=30)
        total = await simulated_host(node.world).kernel.memory()
        wanted = memory.limit(memory.Desired(16 << 30), total)
        assert node.world.systemd.bound(SLICE) == Bound(wanted, wanted)
        assert starts(node.world, RAY) == started
