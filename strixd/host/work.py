"""What the workloads do: processor time of their slice's control group, and bytes in the folders in which they write.

Asked only while a model starts; the folders hold some hundred files each.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from strixd.peak import Peak
from strixd.ports import Progress

GROUP = Path("/sys/fs/cgroup/strixd.slice/strixd-workload.slice")  # a slice's name is its path (systemd.slice(5))
BUSY = 0.2
"""Of one processor; an idle Ray with its agents and a server that only polls stay below it."""
SHORTEST = 2.0
"""Seconds over which that is measured at least."""
FILES = 20000
"""That are looked at per folder at most."""


@dataclass(frozen=True, slots=True)
class Reading:
    """`seconds` of processor time used, `at` a time of a clock that nobody sets."""

    seconds: float
    at: float


class Workloads:
    """Implements ports.Work."""

    def __init__(self, group: Path = GROUP) -> None:
        self._group = group
        self._run = ""
        self._moved = self._worked = 0.0  # by time.monotonic()
        self._signs: object = None
        self._since = Reading(0.0, 0.0)
        self._ranks = Peak()

    async def progress(
        self, run: str, folders: tuple[str, ...], signs: object, seconds: float, ranks: int | None
    ) -> Progress:
        now = time.monotonic()
        grown = (signs, tuple(size(Path(folder)) for folder in folders))
        reading = Reading(seconds + processor(self._group), now)
        if run != self._run:
            self._run, self._since, self._signs = run, reading, grown
            self._moved = self._worked = now
            self._ranks = Peak()
        elif grown != self._signs:
            self._signs, self._moved = grown, now
        if (passed := now - self._since.at) >= SHORTEST:
            worked = (reading.seconds - self._since.seconds) / passed >= BUSY
            self._since = reading
            self._worked = now if worked else self._worked
        self._ranks = self._ranks.counted(ranks, now)
        return Progress(now - self._moved, now - self._worked, self._ranks.fewer(now))


def processor(group: Path) -> float:
    """Seconds of processor time used so far by a control group and those below; 0 when there is none."""
    try:
        fields = dict(line.split() for line in (group / "cpu.stat").read_text().splitlines())
        return int(fields["usage_usec"]) / 1e6
    except (OSError, ValueError, KeyError):
        return 0.0


def size(folder: Path) -> int:
    """Bytes in the files below, as far as they are looked at."""
    total = 0
    for number, entry in enumerate(_files(folder)):
        if number >= FILES:
            break
        total += entry
    return total


def _files(folder: Path) -> Iterator[int]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from _files(Path(entry.path))
                elif entry.is_file(follow_symlinks=False):
                    yield entry.stat(follow_symlinks=False).st_size
    except OSError:  # not there yet, or removed meanwhile
        return
