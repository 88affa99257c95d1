"""Clusters of many nodes: they serve, and what a pass costs the head grows in proportion to them, and no faster."""

from __future__ import annotations

import sys
from types import FrameType

import pytest

from strixd.sim import clock
from tests.sim.node import Node, serving

SIZES = (2, 8, 64)


@pytest.fixture(scope="module")
def calls() -> dict[int, int]:
    """Calls of Python functions in a pass that finds all well, the same every time, by the number of nodes."""
    return {count: clock.run(_calls(count)) for count in SIZES}


async def _calls(count: int) -> int:
    async with serving(count=count) as node:
        assert sum(member.joined for member in node.status.members) == count
        await node.world.clock.sleep(600)
        return await _counted(node)


async def _counted(node: Node) -> int:
    assert node.loop
    counts = {"call": 0}

    def count(frame: FrameType, event: str, argument: object) -> None:
        if event in counts:
            counts[event] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        await node.loop._pass()
    finally:
        sys.setprofile(before)
    return counts["call"]


def test_a_pass_calls_so_many_functions_more_for_each_member_and_no_more(calls: dict[int, int]) -> None:
    few, some, many = (calls[count] for count in SIZES)
    first, then = (some - few) / (8 - 2), (many - some) / (64 - 8)
    assert 0 < then <= 1.1 * first
