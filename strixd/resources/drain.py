"""The model server's own graceful end: nothing new is accepted, the requests that run are finished, within a bound.

SIGTERM does not do it: to join its Ray cluster vLLM's engine calls ray.init, which takes the handler of SIGTERM over,
so the engine dies at once and its clients wait for ever (vLLM 0.32 with Ray 2.60, seen). SIGINT to the engine's own
process does: that handler stays vLLM's, and with a --shutdown-timeout above 0 the engine refuses what is new, finishes
what runs and exits, and the server after it with status 0 (seen). A mark says which run was asked, so that a restart of
strixd neither forgets nor repeats it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strixd.plan import Effect, Plan, Step
from strixd.ports import Answer, Host, Unit

ENGINE = "VLLM::EngineCor"
"""How vLLM's title of the process begins (VLLM::EngineCore, _DP0): what of it fits in the kernel's short name, too."""
ENGINE_END = 5
"""vLLM's --shutdown-timeout in seconds: above 0 it makes an interrupted engine finish its requests, which itself has no
limit. It only bounds how long a SIGTERM waits for an engine that hangs, so it is short."""
MARK = "/run/strixd/draining"
UNASKED = "the server has not been asked yet whether it answers"


@dataclass(frozen=True, slots=True)
class Desired:
    """`seconds`: how long requests may take to end, 0 for not at all. `drained`: whatever runs shall end; `restart`:
    this run (its invocation) shall."""

    seconds: int = 0
    drained: bool = False
    restart: str = ""


@dataclass(frozen=True, slots=True)
class Observed:
    """`engine`: the process to ask is there. `asked`: for how many seconds this run has been asked to end, None when it
    has not. `cut`: what was lost at the end of the last one, "" for nothing. `requests`: it may have some, None when
    that is not known yet."""

    engine: bool = False
    asked: float | None = None
    cut: str = ""
    requests: bool | None = True


@dataclass(frozen=True, slots=True)
class Interrupt:
    """Ask the engine to finish what it does and end."""

    effect: ClassVar[Effect] = Effect.NOW
    unit: str
    invocation: str

    def __str__(self) -> str:
        return f"let {self.unit} finish the requests that run, and take no new ones"

    def undo(self) -> Step | None:
        return None

    async def apply(self, host: Host) -> None:
        await host.units.interrupt(self.unit, ENGINE)
        await host.files.write(MARK, f"{self.invocation} {host.steady()}")


@dataclass(frozen=True, slots=True)
class End:
    """Stop the unit, to its last process. `cut`: what is lost by that, "" for nothing."""

    effect: ClassVar[Effect] = Effect.NOW
    unit: str
    invocation: str
    cut: str

    def __str__(self) -> str:
        return f"stop {self.unit} ({self.cut or 'no request runs in it'})"

    def undo(self) -> Step | None:
        return None

    async def apply(self, host: Host) -> None:
        await host.units.stop(self.unit)
        await host.files.write(MARK, f"{self.invocation} {host.steady()} {self.cut}")


async def observe(host: Host, desired: Desired, unit: Unit) -> Observed:
    invocation, _, rest = (await host.files.read(MARK) or "").partition(" ")
    at, _, cut = rest.partition(" ")
    active = unit.active == "active"
    asked = _ago(at, host.steady()) if active and invocation == unit.invocation else None
    titles = await host.units.programs(unit.name) if active else ()
    engine = any(title.startswith(ENGINE) for title in titles)
    return Observed(engine, asked, cut if unit.invocation in (invocation, "") else "")


def _ago(text: str, now: float) -> float | None:
    """By the clock that nobody sets: the folder of the mark does not outlive a boot. A mark that is not ours to read is
    none: the engine may be asked twice."""
    try:
        return now - float(text) if float(text) <= now else None
    except ValueError:
        return None


def _ends(desired: Desired, unit: Unit) -> bool:
    return desired.drained or unit.invocation == desired.restart


def plan(name: str, desired: Desired, seen: Observed, unit: Unit) -> Plan | None:
    """None when no run has to end, or it has. One that was asked ends even if the order was taken back meanwhile."""
    if unit.active == "deactivating" and desired.drained:
        return Plan(name, condition="waiting", why=f"{unit.name} is {unit.active}")
    if unit.active != "active" or (seen.asked is None and not _ends(desired, unit)):
        return None
    why = "drained by order" if desired.drained else "a restart is ordered"
    if not _ends(desired, unit):
        why = "the run that was asked to end has not ended yet"
    if seen.asked is None:
        return begin(name, desired, seen, unit, why)
    left = desired.seconds - seen.asked
    if left <= 0:
        lost = f"its engine had not ended after {desired.seconds} s: what still ran was cut off" if seen.engine else ""
        return Plan(name, (End(unit.name, unit.invocation, lost),), "waiting", why)
    return Plan(
        name, condition="waiting", why=f"{why}: what runs has {left:.0f} s more to end, nothing new is accepted"
    )


def requests(answer: Answer) -> bool | None:
    """Where nothing has listened yet nobody can have left one."""
    if answer.proven or answer.heard_at:
        return True
    return False if answer.failed_at else None


def begin(name: str, desired: Desired, seen: Observed, unit: Unit, why: str) -> Plan:
    """The first step to the end of a run."""
    if seen.requests is None:
        return Plan(name, condition="waiting", why=f"{why}; {UNASKED}")
    busy = seen.engine and seen.requests
    gentle = desired.seconds and busy
    lost = "requests that ran were cut off: [model] drain is 0" if busy else ""
    step = Interrupt(unit.name, unit.invocation) if gentle else End(unit.name, unit.invocation, lost)
    return Plan(name, (step,), "waiting", why)


def facts(desired: Desired, seen: Observed) -> tuple[str, ...]:
    """Of a head that serves nothing."""
    if not desired.drained:
        return ("no model is ordered",)
    return ("nothing is served until strixd-cli undrain", *((seen.cut,) if seen.cut else ()))
