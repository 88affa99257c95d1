"""Changes of the host's settings, as they are kept on disk: the one under way, written before its first step, and the
history. Each step stands there in words and with its inverse as data, so that it can be undone by another process.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from typing import Any

from strixd.decode import decode, known
from strixd.engine.status import ChangeView, Outcome, StepView
from strixd.errors import StrixdError
from strixd.plan import Step
from strixd.ports import Files
from strixd.resources import cmdline, dscp, firewall, mtu, network_steps

log = logging.getLogger("strixd")

CHANGE = "/var/lib/strixd/change.json"
HISTORY = "/var/lib/strixd/history.json"
DRIFT = "drift"
KEPT = 100  # changes
KINDS: Mapping[str, type[Any]] = {
    f"{kind.__module__.rpartition('.')[2]}.{kind.__name__}": kind
    for module in (cmdline, dscp, firewall, mtu, network_steps)
    for kind in vars(module).values()
    if isinstance(kind, type) and is_dataclass(kind) and hasattr(kind, "undo")
}
"""Every step that a change may hold, by its name on disk."""


@dataclass(frozen=True, slots=True)
class Part:
    """One step of a change; `back` is its inverse, None where nothing is to be taken back."""

    resource: str
    view: StepView
    back: Step | None


@dataclass(frozen=True, slots=True)
class Change:
    """`basis`: what was wanted, as a fingerprint; `interface`: the one that the change is about; `attempts`: how often
    it was begun; `undoes`: the change that it takes back. The rest as in ChangeView."""

    id: str
    began: float
    by: str
    basis: str
    interface: str
    parts: tuple[Part, ...]
    attempts: int = 1
    undoes: str = ""
    ended: float = 0.0
    outcome: Outcome = "running"
    why: str = ""

    @property
    def resources(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(part.resource for part in self.parts))

    def undo(self) -> tuple[tuple[str, Step], ...]:
        """Resource and inverse of each step, the last one first."""
        return tuple((part.resource, part.back) for part in reversed(self.parts) if part.back)

    def view(self, *, taken: int) -> ChangeView:
        steps = tuple(part.view for part in self.parts)
        told = {each.name: getattr(self, each.name) for each in fields(self) if each.name in _TOLD}
        return ChangeView(**told, resources=self.resources, steps=steps, taken=taken)


_TOLD = frozenset({"id", "began", "ended", "by", "outcome", "why", "undoes"})


def part(resource: str, step: Step) -> Part:
    back = step.undo()
    return Part(resource, StepView(str(step), str(back or ""), step.effect.value), back)


def to_json(change: Change) -> dict[str, Any]:
    parts = [{"resource": p.resource, "view": asdict(p.view), "back": _encoded(p.back)} for p in change.parts]
    return {each.name: getattr(change, each.name) for each in fields(change)} | {"parts": parts}


def from_json(raw: Mapping[str, Any]) -> Change:
    """Raises ValueError, KeyError or TypeError for what is not of our making."""
    parts = tuple(
        Part(p["resource"], StepView(**known(StepView, p["view"])), _decoded(p["back"])) for p in raw["parts"]
    )
    return Change(**{**known(Change, raw), "parts": parts})


def _encoded(step: Step | None) -> dict[str, Any] | None:
    if step is None:
        return None
    kind = type(step)
    return {"kind": f"{kind.__module__.rpartition('.')[2]}.{kind.__name__}", "step": asdict(step)}  # type: ignore[call-overload]


def _decoded(raw: Mapping[str, Any] | None) -> Step | None:
    if raw is None:
        return None
    decoded = decode(KINDS[raw["kind"]], raw["step"], key=str)
    if decoded.value is None:
        raise ValueError("; ".join(map(str, decoded.problems)))
    return decoded.value  # type: ignore[no-any-return]


async def load_change(files: Files) -> Change | None:
    return next(iter(await _load(files, CHANGE)), None)


async def save_change(files: Files, change: Change) -> None:
    await files.write(CHANGE, json.dumps([to_json(change)]), mode=0o600)


async def load_history(files: Files) -> tuple[Change, ...]:
    """Oldest first."""
    return await _load(files, HISTORY)


async def save_history(files: Files, changes: tuple[Change, ...]) -> None:
    await files.write(HISTORY, json.dumps([to_json(change) for change in changes[-KEPT:]]), mode=0o600)


async def _load(files: Files, path: str) -> tuple[Change, ...]:
    """One that cannot be read (another version wrote it, perhaps) is said and passed over: it decides nothing that
    the world does not tell as well."""
    try:
        raw = json.loads(await files.read(path) or "[]")
        return tuple(_readable(raw, path)) if isinstance(raw, list) else ()
    except (StrixdError, ValueError, RecursionError) as error:
        log.warning("Cannot read the changes in %s: %r", path, error)
        return ()


def _readable(raw: list[Any], path: str) -> Iterator[Change]:
    for one in raw:
        try:
            yield from_json(one)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            log.warning("Cannot read a change in %s, and pass it over: %r", path, error)


def ended(change: Change, outcome: Outcome, why: str, now: float) -> Change:
    return replace(change, outcome=outcome, why=why, ended=now)


def repairs(change: Change, earlier: tuple[Change, ...]) -> bool:
    """It made nothing so that had not been so before: a drift was mended, or under the same file and apply the same
    settings were changed already (by a strixd that did not know it as a drift); or it takes another back."""
    made = [each for each in earlier if each.outcome in ("done", "undone") and not each.undoes]
    same = (each for each in made if each.basis == change.basis)
    return (
        bool(change.undoes) or change.by == DRIFT or any(set(each.resources) >= set(change.resources) for each in same)
    )


def with_change(history: tuple[Change, ...], change: Change) -> tuple[Change, ...]:
    """At its end, bounded. A change that failed again in the same way takes the place of the last one."""
    last = history[-1] if history else None
    if last and change.outcome != "done" and (last.outcome, last.why) == (change.outcome, change.why):
        history = history[:-1]
    return _bounded((*history, change))


def _bounded(history: tuple[Change, ...]) -> tuple[Change, ...]:
    """Of too many the oldest goes that nobody can undo, else the oldest repair of a drift: what strixd found on this
    host before its first change must not be forgotten because somebody else changes it every day."""
    if len(history) <= KEPT:
        return history
    over = [each for each in history[:-1] if each.outcome != "done" or each.undoes]
    repairs = [each for each in history[:-1] if each.by == DRIFT]
    goes = next(iter((*over, *repairs)), history[0])
    return tuple(each for each in history if each is not goes)
