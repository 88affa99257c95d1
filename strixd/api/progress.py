"""How far an order has come: a pure function over the states that follow it.

The way has stages. One is done when all its resources are ok, and the last when a completion has come out. The
way ends early when a resource on it is stuck, or cannot go on for longer than PATIENCE; the order stays. Not every
order has to go to the end: `goal`; the way of a drain is one stage of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from strixd.engine.status import ModelView, ResourceView, Status
from strixd.errors import CannotServe

Stage = Literal["order", "drain", "image", "ray", "load", "completion"]
PATIENCE: Final = 15.0  # seconds; a link that comes up or a second try often ends the trouble before
_STAGES: Final[Mapping[Stage, tuple[str, ...]]] = {  # the last resource of a stage gives it its words
    "drain": ("vllm",),
    "image": ("image",),
    "ray": ("network", "firewall", "fabric", "ray"),
    "load": ("vllm",),
    "completion": ("vllm",),
}


@dataclass(frozen=True, slots=True)
class Progress:
    """`text` says what was found (done) or what is going on."""

    stage: Stage
    done: bool
    text: str


@dataclass(frozen=True, slots=True)
class Journey:
    """What has been said so far of the way to `model`, to which each state knows the order. `errand`: that order, in
    the words of its command. `goal`: the last stage. `trouble`: since when (in the caller's clock) a resource has not
    been able to go on."""

    errand: str
    model: str = ""
    goal: Stage = "completion"
    done: tuple[Stage, ...] = ("order",)
    said: Progress | None = None
    trouble: Mapping[str, float] = field(default_factory=dict)

    @property
    def arrived(self) -> bool:
        return self.goal in self.done


def advance(journey: Journey, status: Status, now: float) -> tuple[Journey, tuple[Progress, ...]]:
    """What is new with this state. Raises CannotServe when the way ends here."""
    journey = replace(journey, trouble=_trouble(journey, status, now))
    news = []
    for stage in _stages(journey.goal):
        progress = _look(stage, status)
        if progress.done and stage not in journey.done:
            journey = replace(journey, done=(*journey.done, stage))
            news.append(progress)
        elif not progress.done:
            if progress != journey.said:
                news.append(progress)
            return replace(journey, said=progress), tuple(news)
    return journey, tuple(news)


def _stages(goal: Stage) -> tuple[Stage, ...]:
    names = tuple(_STAGES)
    return (goal,) if goal == "drain" else names[1 : names.index(goal) + 1]


def _look(stage: Stage, status: Status) -> Progress:
    resources = [each for each in status.resources if each.name in _STAGES[stage]]
    for resource in resources:
        if resource.condition != "ok":
            return Progress(stage, False, f"{resource.name}: {_doing(resource)}")
    if stage in ("load", "completion"):
        return _answer(stage, status.model)
    return Progress(stage, True, ", ".join(resources[-1].facts) if resources else "")


def _doing(resource: ResourceView) -> str:
    """Why it is not ok; else the step that is due, else what was seen of it last."""
    said = (resource.why, *(step.text for step in resource.steps), *reversed(resource.facts), resource.condition)
    return next(text for text in said if text)


def _answer(stage: Stage, model: ModelView | None) -> Progress:
    if model is None or model.answered_at == 0:
        return Progress(stage, False, "no completion yet")
    if stage == "load":
        return Progress(stage, True, model.name)
    over = f", {model.over}" if model.over else ""
    return Progress(stage, True, f"{model.url} answers, in {model.seconds:.1f} s{over}")


def _trouble(journey: Journey, status: Status, now: float) -> Mapping[str, float]:
    _still_ordered(journey, status)
    on_the_way = [each for each in status.resources if each.name in _names(journey.goal)]
    for resource in on_the_way:
        if resource.condition == "stuck":
            raise CannotServe(f"Cannot {journey.errand}: {resource.name}: {resource.why}", hint=resource.hint)
    halted = [each for each in on_the_way if each.condition in ("blocked", "held", "reboot")]
    trouble = {each.name: journey.trouble.get(each.name, now) for each in halted}
    for resource in halted:
        if now - trouble[resource.name] >= PATIENCE:
            raise CannotServe(_for_now(journey, resource), hint=resource.hint)
    return trouble


def _names(goal: Stage) -> set[str]:
    return {name for stage in _stages(goal) for name in _STAGES[stage]}


def _for_now(journey: Journey, resource: ResourceView) -> str:
    state = f"{resource.name} is {resource.condition}: {resource.why}"
    return f"Cannot {journey.errand} yet: {state}. The order stays, and strixd goes on trying"


def _still_ordered(journey: Journey, status: Status) -> None:
    cannot = f"Cannot {journey.errand}"
    if status.phase == "paused":
        raise CannotServe(f"{cannot}: strixd is paused here", hint="strixd-cli resume")
    if status.drained != (journey.goal == "drain") and journey.goal != "ray":
        raise CannotServe(f"{cannot}: a later order says to {'drain' if status.drained else 'undrain'}")
    if journey.goal != "completion":
        return
    if status.model is None:
        raise CannotServe(f"{cannot}: a later order says to stop")
    if status.model.name != journey.model:
        raise CannotServe(f"{cannot}: a later order names {status.model.name}")
