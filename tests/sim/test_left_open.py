"""A change that was killed and cannot be taken up again now, and an undo that cannot be done: nobody waits for
ever, and nothing is tried without end."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

from strixd.api import follow
from strixd.api.parameters import Nothing
from strixd.engine import lastlook, memory
from strixd.engine.status import ResourceView, Status
from strixd.errors import Rejected
from strixd.orders import Orders
from strixd.sim import simulated_host
from strixd.sim.boot import booted
from strixd.sim.world import FABRIC
from tests.sim.node import Node, virtual, world
from tests.sim.test_changes import living, settled


async def killed(node: Node, call: str = "network.activate") -> None:
    """By its start, at its first such call."""
    node.world.kill_at(1, call=call)
    with suppress(TimeoutError):
        await asyncio.wait_for(node.start(), 30)
    while not node.dead:
        await node.world.clock.sleep(0.1)
    await node.kill()


def view(status: Status, name: str) -> ResourceView:
    return next(view for view in status.resources if view.name == name)


async def applied(node: Node) -> str:
    """What a person who applies is told in the end."""
    assert node.engine
    await node.engine.apply("uid 0: apply")
    async with asyncio.timeout(60):
        replies = [str(reply["text"]) async for reply, _ in follow.until_applied(node.engine, Nothing())]
    return replies[-1]


@virtual
async def test_an_apply_ends_though_the_killed_change_must_wait_for_the_cable() -> None:
    node = Node(world())
    await killed(node)
    node.world.plug(cable=False)
    await node.start()
    await applied(node)
    node.world.plug(cable=True)
    await node.until(settled, seconds=60)
    await node.kill()


@virtual
async def test_an_apply_ends_though_the_killed_change_must_wait_for_resume() -> None:
    node = Node(world())
    await killed(node)
    await memory.save_orders(simulated_host(node.world).files, Orders(paused=True))
    await node.start()
    assert "paused" in await applied(node)
    assert node.engine
    await node.engine.resume("uid 0: resume")
    await node.until(settled, seconds=90)
    await node.kill()


@virtual
async def test_a_change_that_is_given_up_does_not_trip_over_another_drift() -> None:
    node = await living()
    await node.kill()
    node.world.network.deactivate(node.world.network.nics[FABRIC])
    for _ in range(2):
        await killed(node)
    node.world.firewalld.policies.clear()
    await node.start()
    await node.world.clock.sleep(60)
    assert not node.dead
    assert node.engine
    assert "strixd was killed during it 2 times" in [each.why for each in node.engine.history(9)]
    assert node.world.firewalld.policies
    await node.kill()


@virtual
async def test_a_change_is_given_up_when_all_that_it_was_about_can_be_seen() -> None:
    node = Node(world())
    lines = booted(node.world.boot_files.content)
    for _ in range(2):
        await killed(node)
    node.world.calls.down.add("network")
    await node.start()
    await node.world.clock.sleep(60)
    node.world.calls.down.clear()
    await node.world.clock.sleep(60)
    assert "killed during it 2 times" in view(node.status, "network").why
    assert (node.world.network.stored, node.world.firewalld.policies) == ({}, {})
    assert booted(node.world.boot_files.content) == lines
    await node.kill()


@virtual
async def test_an_undo_that_cannot_be_done_is_tried_more_and_more_seldom() -> None:
    """Its client is gone: strixd was killed before it could take the order back."""
    node = await living()
    assert node.engine
    (done,) = [each for each in node.engine.history(9) if each.outcome == "done"]
    await node.kill()
    await memory.save_orders(simulated_host(node.world).files, Orders(undo=done.id, released=done.resources))
    for at in range(1, 100):
        node.world.fail("network.delete", Rejected("no"), at=at)
    await node.start()
    await node.world.clock.sleep(600)
    assert 3 <= 99 - len(node.world.calls.faults) <= 12
    await node.kill()


@virtual
async def test_the_last_look_undoes_nothing() -> None:
    node = await living()
    assert node.engine
    status, wish = node.status, node.engine._loop.wish
    (done,) = [each for each in node.engine.history(9) if each.outcome == "done"]
    await node.kill()
    before = node.world.snapshot()
    ordered = replace(wish, orders=replace(wish.orders, undo=done.id, released=done.resources))
    await lastlook.last_look(simulated_host(node.world), ordered, status)
    assert node.world.snapshot() == before
