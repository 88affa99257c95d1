"""The model's and Ray's processes on a host, seen from the machine: through /proc of the host, frozen or not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.lab.host import Host

Kind = Literal["server", "engine", "rank", "raylet", "gcs"]
MODEL: tuple[Kind, ...] = ("server", "engine", "rank")
TITLES: dict[Kind, re.Pattern[str]] = {
    "server": re.compile(r"\S*python\S* \S*/bin/vllm serve "),
    "engine": re.compile(r"VLLM::EngineCore"),
    "rank": re.compile(r"ray::RayWorker"),
    "raylet": re.compile(r"\S*/raylet/raylet "),
    "gcs": re.compile(r"\S*/gcs/gcs_server "),
}
TICKS = 100  # in a second, in /proc: the same on every architecture that the lab runs on


@dataclass(frozen=True, slots=True)
class Process:
    """`began`: seconds since the machine's boot. All hosts share its kernel, so these compare, between hosts too, and
    with time.CLOCK_BOOTTIME."""

    host: str
    kind: Kind
    pid: int  # as the host numbers it
    began: float

    def __str__(self) -> str:
        return f"{self.kind} {self.pid} on {self.host}"


def processes(host: Host) -> list[Process]:
    """Those of the model and of Ray that live, zombies left out; none while the host is off."""
    found = {pid: (kind, began, parent) for pid, kind, began, parent in _listed(host)}
    return [
        Process(host.name, kind, pid, began)
        for pid, (kind, began, parent) in found.items()
        # A server's child is called as its parent is until it has set its title.
        if parent not in found or found[parent][0] != kind
    ]


def _listed(host: Host) -> Iterator[tuple[int, Kind, float, int]]:
    if not host.is_up():
        return
    for folder in host.path("/proc").glob("[0-9]*"):
        try:
            kind = _kind((folder / "cmdline").read_bytes())
            state, parent, began = _stat(folder)
        except OSError:  # it ended between the listing and this look
            continue
        if kind and state not in "ZX":
            yield int(folder.name), kind, began, parent


def _kind(command: bytes) -> Kind | None:
    title = command.replace(b"\0", b" ").decode(errors="replace")
    return next((kind for kind, pattern in TITLES.items() if pattern.match(title)), None)


def _stat(folder: Path) -> tuple[str, int, float]:
    fields = (folder / "stat").read_text().rpartition(")")[2].split()
    return fields[0], int(fields[1]), int(fields[19]) / TICKS
