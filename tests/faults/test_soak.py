"""Eight hours of simulated time with random faults, on clusters of 2, 8 and 64 nodes: after each spell of them the
model answers again with nobody typing anything, and what a pass costs the head grows no faster than the members."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import pytest

from strixd.engine.hold import LONGEST
from strixd.engine.reconcile import Reconciler
from strixd.engine.supervise import SELDOM
from strixd.engine.wish import Wish
from strixd.ports import Host
from strixd.sim import clock
from strixd.sim.world import RAY, VLLM
from tests.faults.soaked import SOAKED, Soaked
from tests.faults.tokens.seeds import drawing
from tests.sim.lawful import watched
from tests.sim.mischief import FAULTS, STRIXD, cease, inject, patience
from tests.sim.node import Node, names, serving, starts

HOURS = 8.0
SIZES = (2, 8, 64)
LIVES = 3  # each with draws of its own
AT_ONCE = 4  # faults of a spell, at most
NOISE = 1.5
"""Times that the same work may take longer on another occasion, by CPU time: caches and a shared processor. Most of
a pass is the same for any number of nodes; that the rest grows in proportion is counted in tests/sim/test_sizes.py."""


class Metered(Reconciler):
    """Counts the CPU time of its passes. In those during which the virtual time goes on others work, too."""

    def __init__(self, host: Host, wish: Wish, beat: Callable[[], None], *, soaked: Soaked) -> None:
        super().__init__(host, wish, beat)
        self._soaked = soaked

    async def _pass(self) -> None:
        at, begun = asyncio.get_running_loop().time(), time.process_time()
        await super()._pass()
        self._soaked.all_passes += 1
        if asyncio.get_running_loop().time() == at:
            self._soaked.passes += 1
            self._soaked.seconds += time.process_time() - begun


def _back_within(node: Node) -> float:
    """Seconds: Ray was given up, what is below it held, and then the model."""
    return 2 * SELDOM + LONGEST + patience(node)


async def _spell(node: Node, draw: random.Random, soaked: Soaked) -> None:
    others = names(soaked.count)[1:]
    for _ in range(draw.randint(1, AT_ONCE)):
        await inject(node, draw.choice((*FAULTS, *STRIXD)), draw.choice(others))
        soaked.faults += 1
        await node.world.clock.sleep(draw.expovariate(1 / 30))
    await node.world.clock.sleep(draw.choice((0.0, 60.0, 600.0)))
    cease(node)
    await node.world.clock.sleep(30)  # what is over without being seen yet
    await node.answers(seconds=_back_within(node))
    await node.world.clock.sleep(draw.expovariate(1 / 300))


async def _life(soaked: Soaked, draw: random.Random) -> None:
    async with serving(count=soaked.count, make=partial(Metered, soaked=soaked)) as node:
        laws, until = watched(node), node.world.clock.now() + HOURS * 3600
        while node.world.clock.now() < until:
            await _spell(node, draw, soaked)
            assert not laws.broken
        await node.answers(seconds=_back_within(node))
        soaked.ray += starts(node.world, RAY)
        soaked.model += starts(node.world, VLLM)
        assert node.loop
        soaked.incidents += len(node.loop.incidents())


def test_eight_hours_end_ready_and_a_pass_costs_no_more_than_by_members(request: pytest.FixtureRequest) -> None:
    soaked = request.config.stash[SOAKED] = [Soaked(count) for count in SIZES]
    for each in soaked:
        for number in range(LIVES):
            clock.run(_life(each, drawing(f"soak {each.count} {number}")))
    for few, many in pairwise(soaked):
        assert many.cost / few.cost <= NOISE * many.count / few.count
