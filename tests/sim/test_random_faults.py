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
from strixd.errors import StrixdError
from strixd.orders import Orders
from strixd.sim import clock, simulated_host
from strixd.sim.vllm import STRANGER, Listener
from strixd.sim.world import RAY, VLLM
from tests.sim.node import MODEL, Node, names, serving, starts, world

Action = Callable[[Node], None]
API = 8000
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


def _taken(node: Node) -> None:
    nic = node.world.network.nics["enp194s0np0"]
    if nic.profile:
        node.world.network.deactivate(nic)


def _stranger(node: Node) -> None:
    """Comes to a port that nobody has, or goes."""
    listeners = node.world.serving.listeners
    if API in listeners and listeners[API].holder == STRANGER:
        del listeners[API]
    elif not node.world.systemd.active(VLLM):
        listeners[API] = Listener("")


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
    "boot entries": lambda node: _service(node, "boot"),
    "links": lambda node: _service(node, "links"),
    "profile": lambda node: _taken(node),
    "fence": lambda node: node.world.firewalld.policies.clear(),
    "kernel": lambda node: node.world.install_kernel("6.19.0", "ro quiet"),
    "stranger": _stranger,
    "zone": lambda node: node.world.firewalld.bind("enp194s0np0", "drop"),
}
words = st.sampled_from([*FAULTS, "restart strixd", "killed in the middle", "undo", "apply", "reboot"])
waits = st.sampled_from([0.1, 1.0, 3.0, 10.0, 40.0, 100.0, 400.0])
sequences = st.lists(st.tuples(words, waits), min_size=1, max_size=8)


async def _inject(node: Node, word: str) -> None:
    assert node.engine
    if word == "restart strixd":
        await node.restart()
    elif word == "killed in the middle":
        node.world.kill_at(3)
        await _wait_and_start(node)
    elif word == "undo":
        with suppress(StrixdError):
            await node.engine.undo("uid 0: undo")
    elif word == "apply":
        await node.engine.apply("uid 0: apply")
    elif word == "reboot":
        await node.reboot()
    else:
        FAULTS[word](node)


async def _wait_and_start(node: Node) -> None:
    """It is killed within this time, or was to do nothing."""
    for _ in range(20):
        if node.dead:
            break
        await node.world.clock.sleep(1)
    node.world.calls.faults.clear()
    await node.restart()


def _cease(node: Node) -> None:
    node.world.calls.down.clear()
    node.world.plug(cable=True)
    for name, other in node.world.cluster.others.items():
        if not other.on:
            node.world.cluster.switch(name, on=True)
    listeners = node.world.serving.listeners
    node.world.serving.listeners = {port: each for port, each in listeners.items() if each.holder != STRANGER}
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
            assert node.engine
            await node.engine.apply("uid 0: apply")  # after an undo
            await node.answers(seconds=700)

    clock.run(life())


@pytest.mark.parametrize("number", range(1, 15))
def test_a_strixd_that_is_killed_after_any_call_is_resumed(number: int) -> None:
    """From a fresh node, with the order given: killed after one of its writing calls up to the model's start, which
    is also before the next."""

    async def life() -> None:
        fresh = world()
        await memory.save_orders(simulated_host(fresh).files, Orders(model=MODEL))
        fresh.kill_at(number, when="after")
        node = Node(fresh)
        with suppress(TimeoutError):
            await asyncio.wait_for(node.start(), 5)
        for _ in range(60):
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
