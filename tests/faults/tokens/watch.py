"""Watches every process of the model on all hosts while a fault runs its course, and knows what must never be seen:
two servers at once, and a new server while anything of the old one still lives, on whichever host."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType

from tests.faults.tokens.processes import MODEL, Process, processes
from tests.lab.host import Host

PAUSE = 0.25  # seconds between looks


@dataclass(frozen=True, slots=True)
class Span:
    """When a process was first and last seen alive as what it is, in seconds since the machine's boot. A rank may have
    begun much earlier: Ray keeps idle workers, and makes one of them the rank."""

    first: float
    last: float


class Watch:
    def __init__(self, hosts: Sequence[Host]) -> None:
        self._hosts = tuple(hosts)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look_on, name="watch of the model's processes")
        self.seen: dict[Process, Span] = {}

    def __enter__(self) -> Watch:
        self._look()
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._over.set()
        self._thread.join()

    def _look_on(self) -> None:
        while not self._over.wait(PAUSE):
            self._look()

    def _look(self) -> None:
        for host in self._hosts:
            now = time.clock_gettime(time.CLOCK_BOOTTIME)  # before the look: so it lived at least until then
            for process in (each for each in processes(host) if each.kind in MODEL):
                self.seen[process] = Span(self.seen[process].first if process in self.seen else now, now)


def servers(seen: Mapping[Process, Span]) -> list[Process]:
    """In the order of their starts."""
    return sorted((each for each in seen if each.kind == "server"), key=lambda each: each.began)


def survivors(seen: Mapping[Process, Span]) -> list[str]:
    """What of an earlier run was alive after a later server had begun."""
    return [
        f"{old} lived on for {span.last - server.began:.1f} s after {server} had begun"
        for server in servers(seen)
        for old, span in seen.items()
        if old != server and span.first < server.began < span.last
    ]
