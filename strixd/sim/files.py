"""Small files in memory, lines of the journal, and what the hub says of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from strixd.errors import Rejected
from strixd.sim.gate import Gate


@dataclass(slots=True)
class Disk:
    """`present`: what exists and is not one of our files (devices, folders). `full`: no write succeeds."""

    files: dict[str, str] = field(default_factory=dict)
    modes: dict[str, int] = field(default_factory=dict)
    present: set[str] = field(default_factory=set)
    full: bool = False

    def exists(self, path: str) -> bool:
        folder = path.rstrip("/") + "/"
        return path in self.files or path in self.present or any(name.startswith(folder) for name in self.files)

    def put(self, path: str, text: str, mode: int = 0o644) -> None:
        self.files[path] = text
        self.modes[path] = mode

    def boot(self) -> None:
        """/run is empty after a reboot."""
        self.files = {path: text for path, text in self.files.items() if not path.startswith("/run/")}


class SimFiles:
    """ports.Files."""

    def __init__(self, disk: Disk, gate: Gate) -> None:
        self._disk = disk
        self._gate = gate

    async def read(self, path: str) -> str | None:
        async with self._gate.read("files", "read"):
            return self._disk.files.get(path)

    async def write(self, path: str, text: str, *, mode: int = 0o644) -> None:
        async with self._gate.write("files", "write", path, text):
            if self._disk.full:
                hint = f"make room on the file system of {path}"
                raise Rejected(f"Cannot write {path}: No space left on device", hint=hint)
            if path not in self._disk.files and self._disk.exists(path):
                raise Rejected(f"Cannot write {path}: Is a directory")
            self._disk.put(path, text, mode)

    async def remove(self, path: str) -> None:
        async with self._gate.write("files", "remove", path):
            self._disk.files.pop(path, None)

    async def present(self, paths: tuple[str, ...]) -> tuple[str, ...]:
        async with self._gate.read("files", "present"):
            return tuple(path for path in paths if self._disk.exists(path))


@dataclass(frozen=True, slots=True)
class Line:
    unit: str
    invocation: str
    text: str


class SimJournal:
    """ports.Journal."""

    def __init__(self, lines: list[Line], gate: Gate) -> None:
        self._lines = lines
        self._gate = gate

    async def last(self, unit: str, invocation: str, count: int) -> tuple[str, ...]:
        async with self._gate.read("journal", "last"):
            run = [line.text for line in self._lines if (line.unit, line.invocation) == (unit, invocation)]
            return tuple(run[-count:]) if count else ()


class SimHub:
    """ports.Hub. `refusals`: model → why this node may not fetch it."""

    def __init__(self, refusals: Mapping[str, str], gate: Gate) -> None:
        self._refusals = refusals
        self._gate = gate

    async def refusal(self, model: str) -> str:
        async with self._gate.read("hub", "refusal"):
            return self._refusals.get(model, "")
