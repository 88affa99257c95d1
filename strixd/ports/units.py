"""systemd, the journal, and small files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class Unit:
    """A systemd unit as its manager has it. `stale`: its file has changed since the manager read it. `since`: when it
    entered this state, as the clock is set now. `invocation` is "" when it never ran. `status` is the main process's
    exit status (or signal number when `result` is "signal")."""

    name: str
    loaded: bool = False
    active: Literal["active", "activating", "inactive", "failed", "deactivating", "reloading"] = "inactive"
    result: str = ""
    status: int = 0
    invocation: str = ""
    since: float = 0.0
    stale: bool = False


NO_BOUND = (1 << 64) - 1
"""Bytes: no limit, as systemd writes it."""


@dataclass(frozen=True, slots=True)
class Bound:
    """How much memory a slice may take, in bytes. `told`: as systemd's manager has it; `kernel`: the limit in force,
    None while there is no control group, NO_BOUND also where the kernel keeps none; `reached`: how often the kernel
    had to kill for it."""

    told: int = NO_BOUND
    kernel: int | None = None
    reached: int = 0


class Units(Protocol):
    """systemd's manager."""

    async def read(self, name: str) -> Unit: ...
    async def start(self, name: str) -> None:
        """Queues the job and returns; what comes of it is read from the unit."""

    async def stop(self, name: str) -> None:
        """Returns when the unit is inactive or failed and no process of it is left."""

    async def interrupt(self, name: str, title: str) -> None:
        """SIGINT to the unit's processes whose command line begins with this; returns at once. None is no error."""

    async def programs(self, name: str) -> tuple[str, ...]:
        """The command lines of the unit's living processes, as they have titled themselves, or the first 15 characters
        where more cannot be read; none when it is not running."""

    async def bound(self, name: str) -> Bound:
        """Of a slice."""

    async def limit(self, name: str, most: int) -> None:
        """Bytes of memory for a slice, and no swap: in force when this returns, and until the next boot."""

    async def reload(self) -> None:
        """daemon-reload: generators run again, unit files are read again."""


class Files(Protocol):
    """Small files and folders of strixd's own."""

    async def read(self, path: str) -> str | None:
        """None when there is no such file."""

    async def write(self, path: str, text: str, *, mode: int = 0o644) -> None:
        """Whole or not at all, with fsync of file and folder; missing folders are made (0755)."""

    async def remove(self, path: str) -> None: ...
    async def present(self, paths: tuple[str, ...]) -> tuple[str, ...]:
        """Those of the paths that exist, in their order."""


class Journal(Protocol):
    """journald, reading."""

    async def last(self, unit: str, invocation: str, count: int) -> tuple[str, ...]:
        """The last lines of one run of a unit, oldest first."""
