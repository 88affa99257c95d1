"""The steps by which a container unit comes up, goes, or is replaced, and what its end looked like. Pure data.

A restart is whole or not at all: Stop returns only when no process of the unit is left.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import ClassVar

from strixd.errors import StrixdError
from strixd.plan import Effect, Plan, Step
from strixd.ports import Host, Unit
from strixd.quadlet import Container, render

logger = logging.getLogger(__name__)

EVIDENCE = "strixd-evidence.service"
EVIDENCE_REQUEST = "/run/strixd/evidence-request.json"
EVIDENCE_WITHIN = 15.0
"""Seconds that a restart waits for evidence."""
LOOK = 0.25
"""Seconds between looks at the unit that saves it."""


@dataclass(frozen=True, slots=True)
class WriteUnit:
    """Put the Quadlet file in place and let systemd read it."""

    effect: ClassVar[Effect] = Effect.NOW
    path: str
    text: str
    before: str | None

    def __str__(self) -> str:
        return f"{'change' if self.before else 'write'} {self.path}"

    def undo(self) -> Step:
        return RemoveUnit(self.path, self.text) if self.before is None else WriteUnit(self.path, self.before, self.text)

    async def apply(self, host: Host) -> None:
        await host.files.write(self.path, self.text)
        await host.units.reload()


@dataclass(frozen=True, slots=True)
class RemoveUnit:
    """Take the Quadlet file away and let systemd forget it."""

    effect: ClassVar[Effect] = Effect.NOW
    path: str
    text: str

    def __str__(self) -> str:
        return f"remove {self.path}"

    def undo(self) -> Step:
        return WriteUnit(self.path, self.text, None)

    async def apply(self, host: Host) -> None:
        await host.files.remove(self.path)
        await host.units.reload()


@dataclass(frozen=True, slots=True)
class Start:
    """Start a unit. `why` is for the reader: "it ended with status 1"."""

    effect: ClassVar[Effect] = Effect.NOW
    unit: str
    why: str = ""

    def __str__(self) -> str:
        return f"start {self.unit}" + (f" ({self.why})" if self.why else "")

    def undo(self) -> Step | None:
        return Stop(self.unit)

    async def apply(self, host: Host) -> None:
        await host.units.start(self.unit)


@dataclass(frozen=True, slots=True)
class Reread:
    """Let systemd read a unit's file: strixd was killed between writing it and that."""

    effect: ClassVar[Effect] = Effect.NOW
    unit: str

    def __str__(self) -> str:
        return f"let systemd read the file of {self.unit}"

    def undo(self) -> Step | None:
        return None

    async def apply(self, host: Host) -> None:
        await host.units.reload()


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop a unit, to its last process."""

    effect: ClassVar[Effect] = Effect.NOW
    unit: str
    why: str = ""

    def __str__(self) -> str:
        return f"stop {self.unit}" + (f" ({self.why})" if self.why else "")

    def undo(self) -> Step | None:
        return None

    async def apply(self, host: Host) -> None:
        await host.units.stop(self.unit)


@dataclass(frozen=True, slots=True)
class Gather:
    """Save what the restart of `unit` would destroy (strixd/evidence). It never keeps a restart from going on: what
    fails here is said in the journal."""

    effect: ClassVar[Effect] = Effect.NOW
    unit: str
    why: str

    def __str__(self) -> str:
        return f"save evidence ({self.why})"

    def undo(self) -> Step | None:
        return None

    async def apply(self, host: Host) -> None:
        try:
            await host.files.write(EVIDENCE_REQUEST, json.dumps({"unit": self.unit, "why": self.why}))
            trouble = await _run_to_end(host, EVIDENCE)
        except StrixdError as error:
            trouble = str(error)
        if trouble:
            logger.warning("%s is restarted without whole evidence: %s", self.unit, trouble)


def gather(unit: Unit, why: str) -> tuple[Step, ...]:
    """Of a run that is there; one that has ended has left nothing to look at but its last words."""
    return (Gather(unit.name, why),) if unit.active == "active" else ()


async def _run_to_end(host: Host, name: str) -> str:
    """Start a unit that ends by itself. Why it did not end well in time, "" when it did."""
    before = (await host.units.read(name)).invocation
    await host.units.start(name)
    for _ in range(int(EVIDENCE_WITHIN / LOOK)):
        unit = await host.units.read(name)
        if unit.invocation != before and unit.active in ("inactive", "failed"):
            return f"{name} {ended(unit)}" if unit.active == "failed" else ""
        await host.sleep(LOOK)
    return f"{name} has not ended within {EVIDENCE_WITHIN:g} s"


async def last_words(host: Host, unit: Unit, count: int) -> tuple[str, ...]:
    """Lines that its last run wrote at its end; none where the journal cannot be read: that keeps no workload down."""
    try:
        return await host.journal.last(unit.name, unit.invocation, count)
    except StrixdError as error:
        logger.debug("Without the last words of %s: %s", unit.name, error)
        return ()


KILLED = "killed by signal"
SIGNALLED = 128  # podman's exit status for a container whose process died of a signal, plus its number
UP = ("active", "activating", "reloading")


def down(unit: Unit) -> bool:
    """It does not run, is not about to, and is not on its way to its end."""
    return unit.active in ("inactive", "failed")


def under_way(name: str, unit: Unit, *, changed: bool) -> Plan | None:
    """To its end, which nothing may overtake, or to a run that is wanted as it is: there is nothing to do but wait."""
    waits = unit.active == "deactivating" or (unit.active == "activating" and not changed)
    return Plan(name, condition="waiting", why=f"{unit.name} is {unit.active}") if waits else None


def replace(container: Container, *, before: str | None, unit: Unit, why: str) -> tuple[Step, ...]:
    """The steps to a unit that runs with exactly this text."""
    text = render(container)
    stop: tuple[Step, ...] = (Stop(container.service_name, why),) if unit.active in UP else ()
    write: tuple[Step, ...] = (WriteUnit(container.path, text, before),) if before != text else ()
    return (*stop, *write, Start(container.service_name, why))


def start(unit: Unit, why: str) -> tuple[Step, ...]:
    """The steps to a unit that runs, its file being right."""
    reread: tuple[Step, ...] = () if unit.loaded and not unit.stale else (Reread(unit.name),)
    return (*reread, Start(unit.name, why))


def restart(name: str, why: str) -> tuple[Step, ...]:
    """The steps to a fresh run of a unit that is up, its file being right."""
    return Stop(name, why), Start(name, why)


def remove(name: str, path: str, *, before: str | None, unit: Unit) -> tuple[Step, ...]:
    """The steps to no unit at all."""
    stop: tuple[Step, ...] = (Stop(name, "no longer wanted"),) if unit.active in UP else ()
    return stop if before is None else (*stop, RemoveUnit(path, before))


def ended(unit: Unit) -> str:
    """How the last run ended, in words; "" when there was none."""
    if not unit.invocation:
        return ""
    if unit.result == "oom-kill":
        return "killed because memory ran out, the workload's or the host's (strixd-cli status, memory)"
    if unit.result in ("signal", "core-dump"):
        return f"{KILLED} {unit.status}"
    if unit.status > SIGNALLED:
        return f"{KILLED} {unit.status - SIGNALLED}"
    if unit.result in ("", "success", "exit-code"):
        return f"ended with status {unit.status}"
    return f"failed: {unit.result}"
