"""How a simulated start goes on: it moves for as long as the server loads, unless a fault has it stand still."""

from __future__ import annotations

from collections.abc import Callable

from strixd.peak import Peak
from strixd.ports import Progress
from strixd.sim.clock import Clock
from strixd.sim.gate import Gate
from strixd.sim.vllm import Server


class SimWork:
    """ports.Work."""

    def __init__(self, server: Callable[[], Server | None], clock: Clock, gate: Gate) -> None:
        self._server = server
        self._clock = clock
        self._gate = gate
        self._run = ""
        self._moved = self._worked = 0.0
        self._ranks = Peak()

    async def progress(
        self, run: str, folders: tuple[str, ...], signs: object, seconds: float, ranks: int | None
    ) -> Progress:
        async with self._gate.read("work", "progress"):
            now, server = self._clock.steady(), self._server()
            if run != self._run or (server and server.works):
                self._worked = now
            if run != self._run or (server and server.moves):
                self._moved = now
            self._ranks = (self._ranks if run == self._run else Peak()).counted(ranks, now)
            self._run = run
            return Progress(now - self._moved, now - self._worked, self._ranks.fewer(now))
