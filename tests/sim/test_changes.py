"""History and undo as a person meets them, through the engine's door."""

from __future__ import annotations

import asyncio

import pytest

from strixd.engine.status import Status
from strixd.errors import Refused, Rejected
from tests.sim.node import Node, virtual, world

ORDER = "uid 0: undo"


def settled(status: Status) -> bool:
    return {view.name: view.condition for view in status.resources}.get("network") == "ok"


async def living() -> Node:
    node = Node(world())
    await node.start()
    await node.until(settled, seconds=30)
    return node


@virtual
async def test_undo_leaves_link_and_firewall_alone_over_restarts_and_reboots_until_apply() -> None:
    node = await living()
    assert node.engine
    undone = await node.engine.undo(ORDER)
    assert undone.outcome == "undone"
    for again in (node.restart, node.reboot):
        await again()
        await node.world.clock.sleep(60)
        assert node.world.network.stored == {}
        assert node.status.released == ("cmdline", "firewall", "network")
        assert node.status.change is None
    assert node.engine
    await node.engine.apply("uid 0: apply")
    await node.until(settled, seconds=30)
    assert node.status.released == ()
    assert [(each.by, each.outcome) for each in node.engine.history(2)] == [("uid 0: apply", "done"), (ORDER, "done")]
    await node.kill()


@virtual
async def test_nothing_to_undo_is_refused_and_so_is_undo_while_paused() -> None:
    node = await living()
    assert node.engine
    await node.engine.undo(ORDER)
    with pytest.raises(Refused, match="no change that is done"):
        await node.engine.undo(ORDER)
    await node.engine.apply("uid 0: apply")
    await node.until(settled, seconds=30)
    await node.engine.pause("uid 0: pause")
    with pytest.raises(Refused, match="paused"):
        await node.engine.undo(ORDER)
    await node.kill()


@virtual
async def test_an_undo_that_fails_says_why_and_keeps_the_settings_true() -> None:
    node = await living()
    assert node.engine
    node.world.fail("network.delete", Rejected("no"))
    with pytest.raises(Rejected, match="no"):
        await node.engine.undo(ORDER)
    await node.until(lambda status: settled(status) and status.released == (), seconds=30)
    await node.kill()


@virtual
async def test_an_undo_during_which_strixd_is_killed_is_finished_by_the_next_start() -> None:
    node = await living()
    assert node.engine
    node.world.kill_at(6)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(20):
            await node.engine.undo(ORDER)
    await node.restart()
    await node.world.clock.sleep(70)
    assert node.world.network.stored == {}
    assert node.engine
    assert "undone" in [each.outcome for each in node.engine.history(5)]
    await node.kill()
