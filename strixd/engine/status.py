"""What the daemon says of itself: plain data made after every pass, shown by `strixd-cli status`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from strixd.plan import Condition

Phase = Literal["starting", "converging", "ready", "degraded", "drained", "paused", "stuck"]
Outcome = Literal["running", "done", "failed", "undone", "left over"]


@dataclass(frozen=True, slots=True)
class StepView:
    """A step and its inverse in words; `effect` is "now", "reboot" or "lasting" (taken when all else is verified);
    `undo` is "" where nothing is to be taken back."""

    text: str
    undo: str
    effect: str


@dataclass(frozen=True, slots=True)
class ResourceView:
    """One resource after a pass. `since`: when it came into this condition; `next_try`: 0, or when a hold
    ends, or what blocks it is looked at again."""

    name: str
    condition: Condition
    why: str
    hint: str
    facts: tuple[str, ...]
    since: float
    observed_at: float
    next_try: float = 0.0
    steps: tuple[StepView, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangeView:
    """One change of the host's settings. `by`: who or what asked for it ("uid 1000: apply", "drift", "start"); `taken`:
    how many of the steps are taken; `outcome`: running; done; failed (all of it taken back; `why`); undone (by a later
    `strixd-cli undo`, `why` names it); left over (not all could be taken back: a person must look). `undoes`: the id of
    the change that this one takes back, if it does."""

    id: str
    began: float
    ended: float  # 0 while it runs
    by: str
    outcome: Outcome
    why: str
    resources: tuple[str, ...]
    steps: tuple[StepView, ...]
    taken: int
    undoes: str = ""


@dataclass(frozen=True, slots=True)
class MemberView:
    """A node of the file: what the file says of it and what Ray says."""

    name: str
    role: str
    address: str
    joined: bool
    gpus: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class ModelView:
    """The ordered model. `parallel`: over how many ranks it is split; `answered_at`: the last completion seen (0: none
    in this run); `seconds` it took. `usual`: seconds that its starts took before, 0 when none is known. `over`: the way
    of its ranks in words, "" when unknown; `better`: the one that the next start takes instead, "" for none."""

    name: str
    parallel: int
    url: str
    answered_at: float
    seconds: float
    since: float  # when this run first answered, 0: not yet
    usual: float = 0.0
    over: str = ""
    better: str = ""


@dataclass(frozen=True, slots=True)
class Moment:
    """One point of an incident: noticed (the first bad sign), decided (the first step), stopped (no process of the
    old run is left), started, loaded (the server listens), serving (a completion), ordered (a new wish)."""

    name: str
    at: float


@dataclass(frozen=True, slots=True)
class Incident:
    """From the first bad sign to the first good answer. `ended` is 0 while it lasts; `starts`: how often the model was
    started meanwhile."""

    id: str
    resource: str
    cause: str
    began: float
    ended: float
    moments: tuple[Moment, ...]
    starts: int = 0


@dataclass(frozen=True, slots=True)
class Status:
    """The whole of it. `ordered`: the time of the newest order that the last pass knew. `problem`: what is wrong with
    the file itself, if anything: the last good one is then kept. `change`: the one under way; all else is then as of
    the last complete pass. `released`: resources let go by undo, until the next apply. `drained`: by order the model is
    not served."""

    version: str
    node: str
    role: str
    cluster: str
    head: str
    head_address: str
    phase: Phase
    since: float
    at: float
    passes: int
    ordered: float
    problem: str
    resources: tuple[ResourceView, ...]
    members: tuple[MemberView, ...]
    model: ModelView | None
    incident: Incident | None
    change: ChangeView | None = None
    released: tuple[str, ...] = ()
    drained: bool = False


@dataclass(frozen=True, slots=True)
class PlanView:
    """What an apply would do to one resource."""

    resource: str
    steps: tuple[StepView, ...]
    condition: Condition
    why: str
