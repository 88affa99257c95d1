"""One folder of evidence: bounded in size, in number and in time, whatever its sources do.

Every source has a thread and a file of its own and writes as it reads: what hangs (a process in the kernel holds the
lock of its memory) costs its own file's rest and nothing else. Nothing is synced: this is no promise to keep.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from strixd.errors import StrixdError, Unavailable
from strixd.evidence.redact import Redaction

FOLDER = Path("/var/lib/strixd/evidence")
KEPT = 10
MOST = 1 << 20
"""Bytes of a file."""
ROOM = 64 << 20
"""Bytes that must be free: a full disk is not made fuller."""
_OURS = re.compile(r"\d{8}T\d{6}Z-[\w.@-]+")


@dataclass(frozen=True, slots=True)
class Source:
    """`read` gives lines, and may raise OSError, ValueError, SubprocessError or a StrixdError, with what it gave until
    then kept. `within`: seconds. A file named *.json has one JSON value."""

    file: str
    read: Callable[[], Iterable[str]]
    within: float = 5.0


class _Gathering(threading.Thread):
    """`result`: what came of it, "" until it has ended."""

    def __init__(self, source: Source, folder: Path, redaction: Redaction) -> None:
        super().__init__(name=source.file, daemon=True)  # one that hangs does not keep the process
        self.source = source
        self.result = ""
        self._path = folder / source.file
        self._redaction = redaction

    def run(self) -> None:
        began = time.monotonic()
        try:
            size = self._write()
            self.result = f"{size} bytes in {time.monotonic() - began:.1f} s"
        except (OSError, ValueError, subprocess.SubprocessError, StrixdError) as error:
            self.result = f"failed: {self._redaction.text(str(error))}"

    def _write(self) -> int:
        size = 0
        with self._path.open("x", buffering=1, errors="replace") as out:
            for line in self._clean():
                size += len(line.encode(errors="replace")) + 1
                if size > MOST - 100:
                    out.write("[the rest is left out: a file has 1 MiB at most]\n")
                    break
                out.write(line + "\n")
        return self._path.stat().st_size

    def _clean(self) -> Iterator[str]:
        if self._path.suffix != ".json":
            return self._redaction.lines(self.source.read())
        tree = self._redaction.value(json.loads("\n".join(self.source.read())))
        return iter(json.dumps(tree, indent=1).split("\n"))

    def told(self) -> str:
        if not self.is_alive() and self._path.exists() and not self._path.stat().st_size:
            self._path.unlink()
        if self.result:
            return f"{self.name}: {self.result}"
        if self.is_alive():
            return f"{self.name}: not read to its end within {self.source.within:g} s; what came until then is kept"
        return f"{self.name}: ended by a bug: journalctl -u strixd-evidence"


def collect(folder: Path, sources: Iterable[Source], redaction: Redaction) -> tuple[str, ...]:
    """All sources at once. What came of each, a line each."""
    began = time.monotonic()
    threads = [_Gathering(source, folder, redaction) for source in sources]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, began + thread.source.within - time.monotonic()))
    return tuple(thread.told() for thread in threads)


def make(unit: str, now: float, root: Path = FOLDER) -> Path:
    """A new folder, and room for it: the oldest go. Raises OSError, or Unavailable when the disk is nearly full."""
    root.mkdir(mode=0o700, exist_ok=True)
    old = sorted(each for each in root.iterdir() if _OURS.fullmatch(each.name))
    for folder in old[: max(0, len(old) - KEPT + 1)]:
        shutil.rmtree(folder)
    free = shutil.disk_usage(root).free
    if free < ROOM:
        raise Unavailable(f"{free >> 20} MiB are free at {root}, {ROOM >> 20} MiB are needed")
    name = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(now))}-{re.sub(r'[^a-zA-Z0-9_.@-]', '_', unit) or 'node'}"
    made = next(path for path in _names(root / name) if not path.exists())
    made.mkdir(mode=0o700)
    return made


def _names(path: Path) -> Iterator[Path]:
    yield path
    yield from (path.with_name(f"{path.name}.{number}") for number in range(2, 1000))
