"""Random faults in random order at random times, in virtual time: when they have ceased, tokens come again, and
whatever happened meanwhile, strixd neither looped nor served below the configured size."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strixd.engine import memory
from strixd.orders import Orders
from strixd.sim import clock, simulated_host
from tests.sim.mischief import FAULTS, FOR_A_PERSON, ORDERS, STRIXD, patience
from tests.sim.node import MODEL, Node, serving, world
from tests.sim.often import tried
from tests.sim.ordeal import undergo

words = st.sampled_from([*FAULTS, *FOR_A_PERSON, *STRIXD, *ORDERS])
waits = st.sampled_from([0.1, 1.0, 3.0, 10.0, 40.0, 100.0, 400.0])
sequences = st.lists(st.tuples(words, waits), min_size=1, max_size=8)


@given(sequences)
@tried(16)
def test_tokens_come_again_when_the_world_allows(sequence: list[tuple[str, float]]) -> None:
    async def life() -> None:
        async with serving() as node:
            laws = await undergo(node, sequence)
            await node.answers(seconds=patience(node))
            assert not laws.broken

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
