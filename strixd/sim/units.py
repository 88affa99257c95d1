"""systemd: unit files take effect at a reload, units run programs, and programs end by themselves or are ended.

What a unit's program does to the rest of the world stands in programs.py, fetch.py, ray.py and vllm.py.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, runtime_checkable

from strixd.errors import Rejected
from strixd.ports import NO_BOUND, Bound, Unit
from strixd.sim.clock import Clock
from strixd.sim.files import Disk, Line
from strixd.sim.gate import Gate

Active = Literal["active", "activating", "inactive", "failed", "deactivating", "reloading"]
FOLDERS = ("/run/containers/systemd/", "/etc/containers/systemd/", "/run/systemd/system/", "/etc/systemd/system/")


class Program(Protocol):
    """What a unit runs. `started` arranges timers on its run; `ended` takes its effects out of the world.
    `patience`: seconds until it has ended after a SIGTERM; `warm_up`: seconds until the unit counts as active,
    negative for never (a oneshot)."""

    @property
    def patience(self) -> float: ...
    @property
    def warm_up(self) -> float: ...
    def started(self, run: Run) -> None: ...
    def ended(self) -> None: ...


@runtime_checkable
class Interruptible(Protocol):
    """A program with a process of its own title, which a SIGINT reaches."""

    title: str

    def interrupt(self) -> None: ...


class Run:
    """One run of a unit: its time, its lines in the journal, and its end. Timers die with it."""

    def __init__(self, manager: Systemd, name: str, invocation: str, text: str) -> None:
        self._manager = manager
        self._timers: list[asyncio.TimerHandle] = []
        self.name = name
        self.invocation = invocation
        self.text = text

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        self._timers.append(self._manager.clock.after(seconds, action))

    def log(self, text: str) -> None:
        self._manager.lines.append(Line(self.name, self.invocation, text))

    def exit(self, status: int) -> None:
        result = "exit-code" if status else "success"
        self._manager.over(self, "failed" if status else "inactive", result, status)

    def killed(self, signal: int = 9) -> None:
        self._manager.over(self, "failed", "signal", signal)

    def dies(self, status: int, seconds: float) -> None:
        """Its container is gone; systemd notes the end when podman has cleaned up."""
        self._manager.bereave(self)
        self.after(seconds, lambda: self.exit(status))

    def end_timers(self) -> None:
        for timer in self._timers:
            timer.cancel()


@dataclass(slots=True)
class Record:
    """A unit that was loaded once. `text` is what the last reload read, None when its file is gone; that of `state` is
    the steady clock's time."""

    text: str | None = None
    state: Unit = field(default_factory=lambda: Unit(""))
    run: Run | None = None
    program: Program | None = None


Programs = Callable[[str, str], Program]
"""Unit name and unit text → a fresh program."""


class Systemd:
    """The manager."""

    def __init__(self, clock: Clock, disk: Disk, programs: Programs, changed: Callable[[str], None]) -> None:
        self.clock = clock
        self.lines: list[Line] = []
        self.records: dict[str, Record] = {}
        self.fixed: dict[str, str] = {}  # units of the installed system: name → text
        self.limits: dict[str, int] = {}  # bytes of memory for a slice
        self.titles: dict[str, tuple[str, ...]] = {}  # further processes of a unit, as they call themselves
        self._disk = disk
        self._programs = programs
        self._changed = changed
        self._count = 0

    def reload(self) -> None:
        """Reads the unit files; a unit that runs goes on with what it was started with."""
        texts = self._written()
        for name in self.records.keys() | texts.keys():
            self.record(name).text = texts.get(name)

    def _written(self) -> dict[str, str]:
        named = {unit_of(path): text for path, text in self._disk.files.items()}
        return self.fixed | {name: text for name, text in named.items() if name}

    def read(self, name: str) -> Unit:
        record = self.records.get(name)
        if record is None:
            return Unit(name)
        stale = record.text is not None and self._written().get(name) != record.text
        since = self.clock.dated(record.state.since) if record.state.since else 0.0
        return replace(record.state, loaded=record.text is not None, stale=stale, since=since)

    def bound(self, name: str) -> Bound:
        inside = any(record.run and f"Slice={name}" in record.run.text for record in self.records.values())
        told = self.limits.get(name, NO_BOUND)
        return Bound(told, told if inside else None)

    def record(self, name: str) -> Record:
        if name not in self.records:
            self.records[name] = Record(state=Unit(name))
        return self.records[name]

    def programs(self, name: str) -> tuple[str, ...]:
        """What its file says it runs, and `titles`."""
        record = self.records.get(name)
        if record is None or record.run is None:
            return ()
        own = (record.program.title,) if isinstance(record.program, Interruptible) else ()
        return (*re.findall(r"^Exec(?:Start)?=(.*)$", record.run.text, re.M), *own, *self.titles.get(name, ()))

    def interrupt(self, name: str, title: str) -> None:
        program = self.records[name].program if name in self.records else None
        if isinstance(program, Interruptible) and program.title.startswith(title):
            program.interrupt()

    def active(self, name: str) -> bool:
        return name in self.records and self.records[name].state.active in ("active", "activating")

    def start(self, name: str) -> None:
        record = self.record(name)
        if record.text is None:
            raise Rejected(f"Cannot start {name}: Unit {name} not found.")
        if record.run is not None:
            return
        for needed in needs(record.text):
            self.start(needed)
        self._count += 1
        record.run = Run(self, name, f"{self._count:032x}", record.text)
        record.program = self._programs(name, record.text)
        record.state = Unit(name, True, result="success", invocation=record.run.invocation)
        self._enter(record, "activating")
        self._warm_up(record, record.run, record.program.warm_up)
        record.program.started(record.run)

    def _warm_up(self, record: Record, run: Run, seconds: float) -> None:
        if seconds > 0:
            run.after(seconds, lambda: self._enter(record, "active"))
        elif seconds == 0:
            self._enter(record, "active")

    def _enter(self, record: Record, active: Active) -> None:
        record.state = replace(record.state, active=active, since=self.clock.steady())
        self._changed(f"unit {record.state.name}")

    def bereave(self, run: Run) -> None:
        """The kernel kills all in the PID namespace of a container whose first process has ended."""
        self._enter(self.records[run.name], "deactivating")
        inside = f"--pid=container:{run.name.removesuffix('.service')}"
        for other in self.records.values():
            if other.run and inside in other.run.text:
                other.run.killed()

    def over(self, run: Run, active: Active, result: str, status: int) -> None:
        """The run has ended, by itself or not; so do units that are bound to it."""
        record = self.records[run.name]
        if record.run is not run:
            return
        run.end_timers()
        program, record.program = record.program, None
        record.run = None
        record.state = replace(record.state, result=result, status=status)
        self._enter(record, active)
        if program:
            program.ended()
        for other in self.records.values():
            if other.run and run.name in needs(other.run.text):
                self.over(other.run, "inactive", "success", 0)

    async def stop(self, name: str) -> None:
        """SIGTERM, and SIGKILL to what is left after `patience`."""
        record = self.records.get(name)
        if record is None or record.run is None or record.program is None:
            return
        run = record.run
        self._enter(record, "deactivating")
        await self.clock.sleep(record.program.patience)
        self.over(run, "inactive", "success", 0)

    def boot(self) -> None:
        """Everything ended, and nothing of strixd's starts by itself."""
        for record in self.records.values():
            if record.run:
                record.run.end_timers()
            if record.program:
                record.program.ended()
        self.records.clear()
        self.limits.clear()
        self.reload()


def unit_of(path: str) -> str | None:
    """The unit that a file defines; Quadlet makes X.service of X.container."""
    if not path.startswith(FOLDERS):
        return None
    name = path.rpartition("/")[2]
    if name.endswith(".container"):
        return name.removesuffix(".container") + ".service"
    return name if name.endswith(".service") else None


def needs(text: str) -> list[str]:
    """Units that are started before, and whose end ends this one."""
    return [name for line in re.findall(r"^(?:BindsTo|Requires)=(.*)$", text, re.M) for name in line.split()]


class SimUnits:
    """ports.Units."""

    def __init__(self, model: Systemd, gate: Gate) -> None:
        self._systemd = model
        self._gate = gate

    async def read(self, name: str) -> Unit:
        async with self._gate.read("units", "read"):
            return self._systemd.read(name)

    async def start(self, name: str) -> None:
        async with self._gate.write("units", "start", name):
            self._systemd.start(name)

    async def stop(self, name: str) -> None:
        async with self._gate.write("units", "stop", name):
            await self._systemd.stop(name)

    async def interrupt(self, name: str, title: str) -> None:
        async with self._gate.write("units", "interrupt", name, title):
            self._systemd.interrupt(name, title)

    async def programs(self, name: str) -> tuple[str, ...]:
        async with self._gate.read("units", "programs"):
            return self._systemd.programs(name)

    async def bound(self, name: str) -> Bound:
        async with self._gate.read("units", "bound"):
            return self._systemd.bound(name)

    async def limit(self, name: str, most: int) -> None:
        async with self._gate.write("units", "limit", name, most):
            self._systemd.limits[name] = most

    async def reload(self) -> None:
        async with self._gate.write("units", "reload"):
            self._systemd.reload()
