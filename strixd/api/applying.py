"""How far an apply has come: a pure function over the changes that a status tells of while it is under way.

A slow reader skips states, so what a change did that no state told of is told at its end, from the history.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

from strixd.engine.status import ChangeView, Status, StepView

ApplyStage = Literal["step", "check", "undo", "end"]
SETTINGS: Final = ("cmdline", "firewall", "network", "dscp")
"""What an apply makes true. The rest is started, and judged by later passes: it says nothing of an apply."""


@dataclass(frozen=True, slots=True)
class Told:
    """One reply. `done`: of a step that it is taken; of the end that all settings are as they should be."""

    stage: ApplyStage
    done: bool
    text: str


@dataclass(frozen=True, slots=True)
class Heard:
    """What has been said so far. `taken`: how many steps of the change `id`; `last`: the last reply, never repeated."""

    id: str = ""
    taken: int = 0
    back: bool = False
    last: Told | None = None


def advance(heard: Heard, change: ChangeView | None) -> tuple[Heard, tuple[Told, ...]]:
    """What is new with this state of the change under way."""
    if change is None:
        return heard, ()
    if change.id != heard.id:
        heard = Heard(change.id)
    if change.taken < heard.taken or heard.back:
        news = [Told("undo", False, _numbered(change, change.taken, back=True))]
        heard = replace(heard, taken=change.taken, back=True)
    else:
        news = [*_taken(heard.taken, change), _next(change)]
        heard = replace(heard, taken=change.taken)
    said = tuple(each for each in news if each != heard.last)
    return replace(heard, last=news[-1]), said


def end(heard: Heard, status: Status, changes: tuple[ChangeView, ...]) -> Iterator[Told]:
    """The steps not told of yet, then the outcome. `changes`: those since the order, the oldest first."""
    for change in changes:
        if change.outcome == "done":
            yield from _taken(heard.taken if change.id == heard.id else 0, change)
    yield _outcome(status, changes)


def _outcome(status: Status, changes: tuple[ChangeView, ...]) -> Told:
    for change in reversed(changes):
        if change.outcome == "failed":
            return Told("end", False, f"{', '.join(change.resources)}: {change.why}; all of it is taken back")
        if change.outcome == "left over":
            left = "not all could be taken back: strixd-cli history tells what was done"
            return Told("end", False, f"{', '.join(change.resources)}: {change.why}; {left}")
    if status.phase == "paused":
        return Told("end", False, "nothing was changed: strixd is paused here, strixd-cli resume ends that")
    halted = [each for each in status.resources if each.name in SETTINGS and each.condition in ("held", "stuck")]
    if halted:
        return Told("end", False, "; ".join(f"{each.name} is {each.condition}: {each.why}" for each in halted))
    steps = sum(len(change.steps) for change in changes)
    return Told("end", True, f"{steps} step{'s' if steps != 1 else ''} taken" if steps else "nothing to change")


def _taken(since: int, change: ChangeView) -> Iterator[Told]:
    for number in range(since, change.taken):
        yield Told("step", True, _numbered(change, number))


def _next(change: ChangeView) -> Told:
    if change.taken < len(change.steps):
        return Told("step", False, _numbered(change, change.taken))
    return Told("check", False, "looking whether it holds")


def _numbered(change: ChangeView, number: int, *, back: bool = False) -> str:
    """`number` counts from 0."""
    number = min(number, len(change.steps) - 1)
    step = change.steps[number] if change.steps else StepView("", "", "now")
    return f"{number + 1} of {len(change.steps)}: {(step.undo if back else step.text) or step.text}"
