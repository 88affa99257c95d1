"""Says when one of a few files changes: inotify, which Python does not have, by way of libc.

The folders are watched, because a file that is replaced is another file; and so is each folder on the way, because
it may come later or be replaced too. A mount over a folder makes no event: so the way is walked again now and then.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import logging
import os
import struct
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path

from strixd.ports import Wake

log = logging.getLogger(__name__)

MODIFIED, MOVED, CREATED, DELETED, CLOSED = 0x2, 0xC0, 0x100, 0x200, 0x8
OVERFLOW, IGNORED, ONLYDIR = 0x4000, 0x8000, 0x01000000
EVENTS = MOVED | CREATED | DELETED | CLOSED | MODIFIED
_HEADER = struct.Struct("iIII")  # watch, mask, cookie, length of the name
WALK = 30.0
"""Seconds between walks."""
QUIET = 0.2
"""Seconds without an event after which a file counts as written: whoever writes an entry line by line is let finish."""
PATIENCE = 2.0
"""Seconds at most until something that changes all the time is looked at."""


class FileWatch:
    """`patterns`: absolute paths whose last part may be a pattern ("/boot/loader/entries/*.conf")."""

    def __init__(self, patterns: Iterable[str], wake: Wake) -> None:
        self._patterns = tuple(map(Path, patterns))
        self._wake = wake
        self._loop = asyncio.get_running_loop()
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._file = _checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        self._names: dict[int, set[str]] = {}  # by watch: the names in that folder which matter
        self._due: asyncio.TimerHandle | None = None
        self._first = 0.0
        self._loop.add_reader(self._file, self._read)
        self._next_walk = self._loop.call_later(WALK, self._again)
        self._walk()

    def close(self) -> None:
        self._loop.remove_reader(self._file)
        self._next_walk.cancel()
        if self._due:
            self._due.cancel()
        os.close(self._file)

    def _again(self) -> None:
        self._next_walk = self._loop.call_later(WALK, self._again)
        before = set(self._names)
        self._walk()
        if set(self._names) - before:
            self._soon()

    def _walk(self) -> None:
        """Watching a folder twice is watching it once; where there is none, its parent tells of its coming."""
        names: dict[int, set[str]] = {}
        for pattern in self._patterns:
            for folder, name in _way(pattern):
                watch = self._libc.inotify_add_watch(self._file, os.fsencode(folder), EVENTS | ONLYDIR)
                if watch >= 0:
                    names.setdefault(watch, set()).add(name)
                elif (error := ctypes.get_errno()) not in (errno.ENOENT, errno.ENOTDIR):
                    log.debug("Cannot watch %s: %s", folder, os.strerror(error))
        self._names = names

    def _read(self) -> None:
        """All that has come. A folder on the way, or one that is gone, means to walk again."""
        try:
            content = os.read(self._file, 65536)
        except BlockingIOError:
            return
        found = [self._matters(*event) for event in _events(content)]
        if "folder" in found:
            self._walk()
        if any(found):
            self._soon()

    def _matters(self, watch: int, mask: int, name: str) -> str:
        names = self._names.get(watch, set())
        if mask & (OVERFLOW | IGNORED):
            return "folder"
        if any(fnmatch(name, each) for each in names):
            return "folder" if mask & ~(CLOSED | MODIFIED) else "file"
        return ""

    def _soon(self) -> None:
        now = self._loop.time()
        if self._due:
            self._due.cancel()
        else:
            self._first = now
        at = min(now + QUIET, self._first + PATIENCE)
        self._due = self._loop.call_at(at, self._tell)

    def _tell(self) -> None:
        self._due = None
        self._wake("a boot file changed")


def _way(pattern: Path) -> Iterator[tuple[Path, str]]:
    """Each folder on the way with the name that matters in it: (/, boot), (/boot, loader), …, (…/entries, *.conf)."""
    parts = pattern.parts
    for number in range(1, len(parts)):
        yield Path(*parts[:number]), parts[number]


def _events(content: bytes) -> Iterator[tuple[int, int, str]]:
    at = 0
    while at < len(content):
        watch, mask, _, length = _HEADER.unpack_from(content, at)
        at += _HEADER.size
        yield watch, mask, os.fsdecode(content[at : at + length].rstrip(b"\0"))
        at += length


def _checked(result: int) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result
