"""Boot files are watched: changed, replaced, in folders that come later, go, or are moved away."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest

from strixd.host import watchfiles
from strixd.host.watchfiles import FileWatch

SOON = 2.0  # seconds, most of them for a busy machine


class Woken:
    """Counts wakes."""

    def __init__(self) -> None:
        self.times = 0
        self._event = asyncio.Event()

    def __call__(self, reason: str) -> None:
        assert reason == "a boot file changed"
        self.times += 1
        self._event.set()

    async def soon(self) -> None:
        async with asyncio.timeout(SOON):
            await self._event.wait()
        self._event.clear()

    async def never(self) -> None:
        await asyncio.sleep(3 * watchfiles.QUIET)
        assert not self._event.is_set()


def watched(root: Path, play: Callable[[Woken], Awaitable[None]]) -> None:
    async def main() -> None:
        woken = Woken()
        with closing(FileWatch((f"{root}/boot/entries/*.conf", f"{root}/etc/default/grub"), woken)):
            await play(woken)

    asyncio.run(main())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in ("boot/entries", "etc/default"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "boot/entries/old.conf").write_text("x")
    return tmp_path


def test_files_that_come_change_and_go(root: Path) -> None:
    async def play(woken: Woken) -> None:
        new = root / "boot/entries/new.conf"
        new.write_text("a")
        await woken.soon()
        new.write_text("b")
        await woken.soon()
        (root / "boot/entries/.tmp").write_text("c")
        await woken.never()
        (root / "boot/entries/.tmp").replace(new)
        await woken.soon()
        new.unlink()
        await woken.soon()
        (root / "etc/default/grub").write_text("d")
        await woken.soon()

    watched(root, play)


def test_other_files_wake_nobody(root: Path) -> None:
    async def play(woken: Woken) -> None:
        for name in ("boot/entries/notes.txt", "etc/default/useradd", "boot/vmlinuz", "elsewhere"):
            (root / name).write_text("x")
        (root / "boot/entries/old.conf").read_text()
        await woken.never()

    watched(root, play)


def test_folders_that_come_later(root: Path) -> None:
    shutil.rmtree(root / "boot")

    async def play(woken: Woken) -> None:
        (root / "boot/entries").mkdir(parents=True)
        await woken.soon()
        (root / "boot/entries/new.conf").write_text("a")
        await woken.soon()

    watched(root, play)


def test_a_folder_that_is_replaced(root: Path) -> None:
    async def play(woken: Woken) -> None:
        (root / "boot/entries").rename(root / "boot/away")
        (root / "boot/entries").mkdir()
        await woken.soon()
        (root / "boot/entries/new.conf").write_text("a")
        await woken.soon()
        (root / "boot/away/old.conf").write_text("b")
        await woken.never()

    watched(root, play)


def test_what_no_event_tells_is_found_by_walking_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when something is mounted over a folder; here the events of the exchange are kept from it."""
    monkeypatch.setattr(watchfiles, "WALK", 0.3)
    monkeypatch.setattr(FileWatch, "_read", lambda self: None)

    async def play(woken: Woken) -> None:
        (root / "boot/entries").rename(root / "boot/away")
        (root / "boot/entries").mkdir()
        await woken.soon()

    watched(root, play)


def test_many_changes_are_one_wake(root: Path) -> None:
    async def play(woken: Woken) -> None:
        for number in range(200):
            (root / f"boot/entries/{number}.conf").write_text("x")
        await woken.soon()
        await woken.never()
        assert woken.times == 1

    watched(root, play)


def test_what_changes_all_the_time_is_looked_at_in_the_end(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchfiles, "PATIENCE", 0.5)

    async def play(woken: Woken) -> None:
        for _ in range(20):
            (root / "etc/default/grub").write_text("x")
            await asyncio.sleep(watchfiles.QUIET / 4)
        assert woken.times >= 1

    watched(root, play)
