"""Random faults in random order at random times, in virtual time: when they have ceased, tokens come again, and
whatever happened meanwhile, strixd neither looped nor served below the configured size."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strixd.engine import memory
from strixd.orders import Orders
from strixd.sim import clock, simulated_host
from strixd.sim.gate import When
from strixd.sim.world import RAY, VLLM
from tests.sim.node import MODEL, Node, names, serving, starts, world

Action = Callable[[Node], None]
HOUR = 3600.0
PER_HOUR = 40  # starts of one unit


def _engine(node: Node) -> None:
    if server := node.world.server():
        server.fail()


def _worker(node: Node, *, on: bool) -> None:
    node.world.cluster.switch(names(2)[1], on=on)


def _service(node: Node, port: str) -> None:
    node.world.calls.down ^= {port}
    node.world.changed(port)


FAULTS: dict[str, Action] = {
    "kill server": lambda node: node.world.kill(VLLM),
    "kill engine": _engine,
    "kill raylet": lambda node: node.world.kill(RAY),
    "cable out": lambda node: node.world.plug(cable=False),
    "cable in": lambda node: node.world.plug(cable=True),
    "worker off": lambda node: _worker(node, on=False),
    "worker on": lambda node: _worker(node, on=True),
    "network": lambda node: _service(node, "network"),
    "firewall": lambda node: _service(node, "firewall"),
    "units": lambda node: _service(node, "units"),
    "zone": lambda node: node.world.firewalld.bind("enp194s0np0", "drop"),
}
words = st.sampled_from([*FAULTS, "restart strixd", "reboot"])
waits = st.sampled_from([0.1, 1.0, 3.0, 10.0, 40.0, 100.0, 400.0])
sequences = st.lists(st.tuples(words, waits), min_size=1, max_size=8)


async def _inject(node: Node, word: str) -> None:
    if word == "restart strixd":
        await node.restart()
    elif word == "reboot":
        await node.reboot()
    else:
        FAULTS[word](node)


def _cease(node: Node) -> None:
    node.world.calls.down.clear()
    node.world.plug(cable=True)
    for name, other in node.world.cluster.others.items():
        if not other.on:
            node.world.cluster.switch(name, on=True)
    node.world.changed("the faults have ceased")


async def _bounded(node: Node, seconds: float) -> None:
    """Lives on, and counts the starts."""
    before = {unit: starts(node.world, unit) for unit in (RAY, VLLM)}
    await node.world.clock.sleep(seconds)
    allowed = 4 + PER_HOUR * seconds / HOUR
    for unit, count in before.items():
        assert starts(node.world, unit) - count <= allowed, f"{unit} is started again and again"


@given(sequences)
@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_tokens_come_again_when_the_world_allows(sequence: list[tuple[str, float]]) -> None:
    async def life() -> None:
        async with serving() as node:
            for word, wait in sequence:
                await _inject(node, word)
                await _bounded(node, wait)
            _cease(node)
            await node.answers(seconds=700)

    clock.run(life())


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", range(1, 15))
def test_a_strixd_that_is_killed_at_any_call_is_resumed(number: int, when: When) -> None:
    """From a fresh node, with the order given: killed at one of its writing calls up to the model's start."""

    async def life() -> None:
        fresh = world()
        await memory.save_orders(simulated_host(fresh).files, Orders(model=MODEL))
        fresh.kill_at(number, when=when)
        node = Node(fresh)
        with suppress(TimeoutError):
            await asyncio.wait_for(node.start(), 5)
        for _ in range(200):
            if node.dead:
                break
            await fresh.clock.sleep(1)
        await node.restart()
        try:
            await node.answers(seconds=180)
        finally:
            await node.kill()

    clock.run(life())


@pytest.mark.parametrize("count", [8, 64])
def test_larger_clusters_serve_too(count: int) -> None:
    async def life() -> None:
        async with serving(count=count) as node:
            assert sum(member.joined for member in node.status.members) == count

    clock.run(life())
