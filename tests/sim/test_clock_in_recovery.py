"""The clock of the host is set, forwards or back, while a model is served: recovery goes on as on any other day."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

import pytest

from strixd.api.follow import Reply, until_answering, until_drained, until_restarted, until_undrained
from strixd.api.parameters import Again, Nothing, Ordered
from strixd.sim.world import IMAGE, RAY, VLLM
from tests.sim.node import MODEL, answering, living, serving, starts, virtual, world
from tests.sim.test_clock_set import HOUR, setting

JUMPS = [-2 * HOUR, 2 * HOUR]
"""An RTC that holds local time is put right by that much once the network is there."""


@pytest.mark.parametrize("jump", JUMPS)
@pytest.mark.parametrize("where", ["halo1", "halo2"])
@virtual
async def test_ranks_left_over_are_ended_as_ever(where: str, jump: float) -> None:
    async with serving() as node:
        setting(node.world.clock, jump)
        await node.world.clock.sleep(60)
        next(each for each in node.world.cluster.nodes if each.name == where).stuck = True
        node.world.kill(VLLM)
        await node.until(lambda status: not answering(status), seconds=20)
        await node.answers(seconds=180)


@pytest.mark.parametrize("jump", [0.0, *JUMPS])
@virtual
async def test_what_can_never_work_is_started_once_for_each_order(jump: float) -> None:
    async with living(world()) as node:
        await node.until(lambda status: status.phase == "ready", seconds=120)
        node.world.serving.fault = "missing"
        for orders in (1, 2):
            assert node.engine
            await node.engine.serve(MODEL, (), by="uid 0: serve")
            await node.world.clock.sleep(1)
            setting(node.world.clock, jump if orders == 1 else -jump)
            await node.world.clock.sleep(HOUR)
            assert (node.status.phase, starts(node.world, VLLM)) == ("stuck", orders)


@pytest.mark.parametrize("jump", JUMPS)
@virtual
async def test_a_start_that_stands_still_is_begun_anew_and_one_that_moves_is_not(jump: float) -> None:
    async with living(world()) as node:
        await node.until(lambda status: status.phase == "ready", seconds=120)
        node.world.serving.fault = "silent"
        assert node.engine
        await node.engine.serve(MODEL, (), by="uid 0: serve")
        await node.world.clock.sleep(30)
        setting(node.world.clock, jump)
        await node.world.clock.sleep(60)
        assert starts(node.world, VLLM) == 1
        node.world.serving.fault = ""
        await node.answers(seconds=300)
        assert starts(node.world, VLLM) == 2


@pytest.mark.parametrize("jump", JUMPS)
@pytest.mark.parametrize("after", [2.0, 15.0, 21.0, 24.0])
@virtual
async def test_a_hang_is_noticed_as_ever(jump: float, after: float) -> None:
    """Before, in and after the look that fails first."""
    async with serving() as node:
        server = node.world.server()
        assert server
        server.hang()
        await node.world.clock.sleep(after)
        setting(node.world.clock, jump)
        await node.until(lambda _: starts(node.world, VLLM) == 2, seconds=120)
        await node.answers(seconds=180)


@pytest.mark.parametrize("jump", JUMPS)
@virtual
async def test_an_image_is_fetched_once_for_each_reason(jump: float) -> None:
    """An order of the newest, and a Ray that failed."""
    async with serving() as node:
        before = starts(node.world, IMAGE)
        assert node.engine
        await node.engine.update_image("uid 0: image update")
        setting(node.world.clock, jump)
        await node.answers(seconds=300)
        node.world.kill(RAY)
        await node.until(lambda status: not answering(status), seconds=60)
        setting(node.world.clock, -jump)
        await node.answers(seconds=300)
        await node.world.clock.sleep(HOUR)
        assert starts(node.world, IMAGE) - before <= 3


@pytest.mark.parametrize("jump", [*JUMPS, 200.0])
@virtual
async def test_a_drain_has_its_time(jump: float) -> None:
    async with serving() as node:
        node.world.serving.running = 30.0
        assert node.engine
        await node.engine.drain("uid 0: drain")
        await node.world.clock.sleep(5)
        setting(node.world.clock, jump)
        assert 20 < await node.until(lambda status: status.phase == "drained", seconds=60) < 40
        assert not [call for call in node.world.calls.writes if (call.method, call.args) == ("stop", (VLLM,))]


@pytest.mark.parametrize("jump", JUMPS)
@pytest.mark.parametrize("order", ["serve", "drain", "undrain", "restart"])
@virtual
async def test_an_order_is_followed_to_its_end(order: str, jump: float) -> None:
    async with serving() as node:
        engine = node.engine
        assert engine
        if order == "undrain":
            await engine.drain("uid 0: drain")
            await node.until(lambda status: status.phase == "drained", seconds=120)
        setting(node.world.clock, jump)
        ways: dict[str, tuple[Callable[..., Awaitable[None]], AsyncIterator[Reply]]] = {
            "serve": (partial(engine.serve, "strixd/other", ()), until_answering(engine, Ordered("strixd/other"))),
            "drain": (engine.drain, until_drained(engine, Nothing())),
            "undrain": (engine.undrain, until_undrained(engine, Nothing())),
            "restart": (partial(engine.restart, "vllm"), until_restarted(engine, Again("vllm"))),
        }
        give, follow = ways[order]
        before = starts(node.world, VLLM)
        await give(by="uid 0")
        said = [reply async for reply, _ in follow]
        assert said[-1]["done"]
        assert starts(node.world, VLLM) - before == (order != "drain")
        assert answering(node.status) == (order != "drain")
