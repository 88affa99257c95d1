"""What the processes of a unit call themselves, and a signal to those of one title.

A title is the command line, which lies in the memory of the process: reading it takes a lock (mmap_lock) that a thread
which is stuck in a driver may hold. So it is read on a thread, for a bounded time; and while one does not answer, it
and those after it go by their short names, which the kernel keeps itself: the first 15 bytes of the title, whether
vLLM's setproctitle has set it or Ray's (1.3.8 and 2.60, seen).
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path

from strixd.errors import Unavailable
from strixd.host import cgroup
from strixd.host.one_thread import OneThread

ANSWER = 1.0
"""Seconds for all processes of a unit; they take milliseconds."""


class Titles:
    def __init__(self, root: Path = cgroup.ROOT, proc: Path = Path("/proc")) -> None:
        self._root = root
        self._proc = proc
        self._thread = OneThread("a process", ANSWER, "")

    async def of(self, group: str) -> tuple[str, ...]:
        """Of the living processes in the group and below ("ray::IDLE")."""
        found = await self._read(self._members(group))
        return tuple(filter(None, found.values()))

    async def interrupt(self, group: str, title: str) -> None:
        """SIGINT to those whose title begins with this. The number is pinned before the title is read, so that the
        signal reaches no later process of that number. Raises OSError."""
        with ExitStack() as pins:
            pinned: dict[str, int] = {}
            for pid in self._members(group):
                with suppress(ProcessLookupError):
                    pinned[pid] = os.pidfd_open(int(pid))
                    pins.callback(os.close, pinned[pid])
            found = await self._read(pinned)
            for pid in (pid for pid, called in found.items() if called.startswith(title)):
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(pinned[pid], signal.SIGINT)

    def _members(self, group: str) -> list[str]:
        return cgroup.members(self._root / group.strip("/")) if group.strip("/") else []

    async def _read(self, pids: Iterable[str]) -> dict[str, str]:
        """By process; "" when it is gone."""
        folders = {pid: self._proc / pid for pid in pids}
        found: dict[str, str] = {}

        def read() -> None:
            for pid, folder in folders.items():
                found[pid] = _title(folder)

        with suppress(Unavailable):
            await self._thread.run(read, "read titles")
        return {pid: found[pid] if pid in found else _stat(folder)[0] for pid, folder in folders.items()}


def _title(folder: Path) -> str:
    """By its short name when it has no command line any more, or the kernel is at work in it (state D): then most
    probably nobody could read it."""
    name, state = _stat(folder)
    line = "" if state.startswith("D") else cgroup.read(folder / "cmdline")
    return line.replace("\0", " ").strip() or name


def _stat(folder: Path) -> tuple[str, str]:
    """Short name, and the rest from the state on (proc_pid_stat(5)). For this no lock of its memory is taken."""
    name, _, rest = cgroup.read(folder / "stat").partition("(")[2].rpartition(") ")
    return name, rest
