"""How a simulated start goes on: it moves for as long as the server loads, unless a fault has it stand still."""

from __future__ import annotations

from collections.abc import Callable

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
        self._progress = Progress(0.0, 0.0)

    async def progress(self, run: str, folders: tuple[str, ...], signs: object, seconds: float) -> Progress:
        async with self._gate.read("work", "progress"):
            now, server = self._clock.now(), self._server()
            if run != self._run:
                self._run, self._progress = run, Progress(now, now)
            if server and server.works:
                self._progress = Progress(self._progress.moved, now)
            if server and server.moves:
                self._progress = Progress(now, self._progress.worked)
            return self._progress
