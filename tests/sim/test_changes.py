"""History and undo as a person meets them, through the engine's door."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from strixd.engine import memory
from strixd.engine.status import Status
from strixd.errors import NothingToUndo, Refused, Rejected
from strixd.orders import Orders
from strixd.ports import Files
from strixd.sim import simulated_host
from strixd.sim.world import FABRIC
from tests.sim.node import Node, cluster_toml, serving, virtual, world

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
    with pytest.raises(NothingToUndo):
        await node.engine.undo(ORDER)
    await node.engine.apply("uid 0: apply")
    await node.until(settled, seconds=30)
    await node.engine.pause("uid 0: pause")
    with pytest.raises(Refused, match="paused"):
        await node.engine.undo(ORDER)
    await node.kill()


@virtual
async def test_undone_until_nothing_is_left_the_host_is_as_it_was_found() -> None:
    node = Node(world())
    found = dict(node.world.disk.files)
    await node.start()
    await node.until(settled, seconds=30)
    assert node.engine
    for changes, mtu in enumerate((1500, 4000), 2):
        node.text = f"{cluster_toml()}\n[fabric]\nmtu = {mtu}\n"
        await node.engine.apply("uid 0: apply")
        while len(node.engine.history(9)) < changes:
            await node.world.clock.sleep(1)
        await node.until(settled, seconds=30)
    for _ in range(3):
        await node.engine.undo(ORDER)
    with pytest.raises(NothingToUndo):
        await node.engine.undo(ORDER)
    assert node.world.network.stored == {}
    assert {path: text for path, text in node.world.disk.files.items() if path in found} == found
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


@virtual
async def test_of_orders_at_the_same_time_none_is_lost() -> None:
    """A disk that is busy: writing takes long."""
    node = await living()
    assert node.engine
    engine, saved = node.engine, memory.save_orders

    async def slowly(files: Files, orders: Orders) -> None:
        await node.world.clock.sleep(1)
        await saved(files, orders)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "save_orders", slowly)
        undone, *_ = await asyncio.gather(
            engine.undo(ORDER),
            engine.serve("strixd/tiny", (), by="uid 0: serve"),
            engine.update_image("uid 0: image update"),
        )
        await engine.pause("uid 0: pause")
    orders = await memory.load_orders(simulated_host(node.world).files)
    assert (orders.model, orders.undo, orders.paused) == ("strixd/tiny", undone.id, True)
    assert orders.update_after > 0
    await node.kill()


@virtual
async def test_an_apply_during_an_undo_that_fails_is_not_taken_back_with_it() -> None:
    node = await living()
    assert node.engine
    node.world.fail("network.delete", Rejected("no"))
    undo = asyncio.create_task(node.engine.undo(ORDER))
    await node.world.clock.sleep(0.01)
    await node.engine.apply("uid 0: apply")
    with pytest.raises(Rejected):
        await undo
    await node.until(settled, seconds=30)
    assert node.status.released == ()
    await node.kill()


async def _one_order(node: Node) -> None:
    assert node.engine
    await node.engine.serve("strixd/tiny", (), by="uid 0: serve")


async def _many_orders(node: Node) -> None:
    await _one_order(node)
    assert node.engine
    for order in (node.engine.drain, node.engine.undrain, node.engine.update_image, node.engine.stop):
        await order("uid 0: another")


async def _damage(node: Node) -> None:
    node.world.firewalld.bind(FABRIC, "drop")


async def _damage_while_away(node: Node) -> None:
    await node.kill()
    await _damage(node)
    await node.start()


@pytest.mark.parametrize("damage", [_damage, _damage_while_away])
@pytest.mark.parametrize("meanwhile", [None, _one_order, _many_orders])
@virtual
async def test_undo_passes_over_repairs_which_would_bring_the_damage_back(
    meanwhile: Callable[[Node], Awaitable[None]] | None, damage: Callable[[Node], Awaitable[None]]
) -> None:
    node = await living()
    if meanwhile:
        await meanwhile(node)
        await node.world.clock.sleep(10)
    await damage(node)
    assert node.engine
    await node.until(lambda _: node.world.firewalld.runtime.get(FABRIC) == "trusted", seconds=60)
    assert [each.by for each in node.engine.history(5)] == ["drift" if damage is _damage else "strixd", "strixd"]
    assert len((await node.engine.undo(ORDER)).resources) == 3
    with pytest.raises(NothingToUndo):
        await node.engine.undo(ORDER)
    await node.kill()


EDITS = {
    "another port": "[model]\nport = 8001\n",
    "another size": "[fabric]\nmtu = 4000\n",
    "another port of Ray": "ray-port = 6400\n",
}


@pytest.mark.parametrize("edit", EDITS)
@virtual
async def test_a_preview_of_another_file_disturbs_nothing_that_is_looked_at(edit: str) -> None:
    async with serving() as node:
        assert node.engine
        await node.world.clock.sleep(120)
        before = node.status
        node.text = cluster_toml().replace('name = "sim"\n', f'name = "sim"\n{EDITS[edit]}', 1)
        plans = await node.engine.preview()
        assert any(plan.steps for plan in plans)
        for _ in range(60):
            await node.world.clock.sleep(1)
            assert node.status.phase == "ready"
        assert [(each.name, each.condition, each.facts) for each in node.status.resources] == [
            (each.name, each.condition, each.facts) for each in before.resources
        ]
        assert node.status.since == before.since
