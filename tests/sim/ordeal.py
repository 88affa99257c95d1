"""A sequence of faults, with a time after each, and what a person does when they have ceased."""

from __future__ import annotations

from tests.sim.lawful import Watched, watched
from tests.sim.mischief import cease, inject
from tests.sim.node import Node, names


async def undergo(node: Node, sequence: list[tuple[str, float]]) -> Watched:
    """No law is broken meanwhile. Returned are the laws, which hold on."""
    laws = watched(node)
    for word, wait in sequence:
        await inject(node, word, names(2)[1])
        await node.world.clock.sleep(wait)
        assert not laws.broken
    cease(node)
    await node.world.clock.sleep(60)  # what was begun meanwhile has failed
    assert node.engine
    await node.engine.apply("uid 0: apply")  # after an undo
    return laws
