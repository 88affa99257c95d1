"""A disk without room, or a file that cannot be read or written, ends no daemon and loses nothing that was there."""

from __future__ import annotations

import pytest

from strixd.engine import memory, record
from strixd.errors import Rejected, StrixdError
from tests.sim.node import MODEL, answering, cluster_toml, living, serving, virtual, world


@virtual
async def test_recovery_goes_on_without_room_for_its_record() -> None:
    async with serving() as node:
        assert node.engine
        server = node.world.server()
        assert server
        node.world.disk.full = True
        server.fail()
        await node.until(lambda status: not answering(status), seconds=60)
        await node.answers(seconds=180)
        with pytest.raises(StrixdError, match="No space left"):
            await node.engine.serve("another/model", (), by="uid 0: serve")
        assert node.status.model
        assert node.status.model.name == MODEL
        assert not node.dead


@pytest.mark.parametrize("at", range(1, 46, 4))
@virtual
async def test_one_file_that_cannot_be_read_ends_no_daemon(at: int) -> None:
    """Whichever of those that two passes read."""
    async with serving() as node:
        node.world.fail("files.read", Rejected("Cannot read it: Is a directory"), at=at)
        await node.world.clock.sleep(120)
        assert not node.world.calls.faults, "it was read"
        assert not node.dead
        await node.answers(seconds=60)


@virtual
async def test_a_change_that_is_over_is_not_found_open_for_want_of_room_for_its_history(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def full(*_: object) -> None:
        raise Rejected(f"Cannot write {record.HISTORY}: No space left on device")

    monkeypatch.setattr(record, "save_history", full)
    async with living(world()) as node:
        await node.until(lambda status: status.phase == "ready", seconds=60)
        assert record.CHANGE not in node.world.disk.files


@virtual
async def test_the_last_good_file_is_kept_as_soon_as_there_is_room() -> None:
    async with living(world()) as node:
        assert node.engine
        await node.until(lambda status: status.phase == "ready", seconds=60)
        node.world.disk.full = True
        node.text = cluster_toml() + "[model]\ndrain = 30\n"
        node.engine.reread()
        await node.world.clock.sleep(60)
        assert node.world.disk.files[memory.LAST_GOOD] != node.text
        node.world.disk.full = False
        await node.world.clock.sleep(60)
        assert node.world.disk.files[memory.LAST_GOOD] == node.text
