"""An incident: from the first bad sign after the model had answered to the first good completion. Pure.

Its cause is the lowest layer that was seen amiss until the model was started again, since one fault explains the next;
a node that has booted since the model last answered explains them all.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from uuid import uuid4

from strixd import workload
from strixd.elapsed import elapsed
from strixd.engine.status import Incident, Moment, ResourceView

PATH = ("network", "firewall", "fabric", "image", "ray", "vllm")
"""What an answer depends on, in the order in which one fault explains the next."""
HOST = "host"  # stands for the machine where a resource would be named
LATER = ("loaded", "serving")  # moments that a further start makes void
SETTLED = 30.0  # seconds; an end of Ray 7 s after the first answer over a cable that was back was seen


@dataclass(frozen=True, slots=True)
class Blame:
    """A resource and what was seen of it. `sure`: found ended, or failed; else only not yet ok."""

    resource: str
    cause: str
    sure: bool = True


def lowest(views: Mapping[str, ResourceView], echoes: Set[str], suspects: Mapping[str, Blame]) -> Blame | None:
    """None while all is well. `echoes`: those that explain nothing (plan.py); `suspects`: what was seen to fail, which
    says more than how that stands by now ("is activating")."""
    for name in PATH:
        if name in suspects:
            return suspects[name]
        if name in views and name not in echoes and views[name].condition != "ok":
            return Blame(name, views[name].why, sure=False)
    return None


def begin(blame: Blame, now: float) -> Incident:
    return Incident(
        uuid4().hex[:8], blame.resource, blame.cause, began=now, ended=0.0, moments=(Moment("noticed", now),)
    )


def blamed(incident: Incident, blame: Blame, *, orphaned: bool = False) -> Incident:
    """A lower layer explains what was seen first, as long as nothing has been started again. What was killed explains
    itself: a server whose ranks or engine are lost ends by itself, with status 0 (vLLM 0.32, seen). `orphaned`: Ray
    has ended, too; then the kernel killed the server, whose PID namespace is that of Ray's container."""
    order = (HOST, *PATH)
    itself = workload.KILLED in incident.cause and not orphaned
    if itself or at(incident, "started") or order.index(blame.resource) >= order.index(incident.resource):
        return incident
    return replace(incident, resource=blame.resource, cause=blame.cause)


def mark(incident: Incident, moment: Moment) -> Incident:
    """Only the first of each name counts, but for "started": the last start is what led to the answer."""
    if moment.at < incident.began or moment in incident.moments:
        return incident
    if moment.name != "started":
        return incident if at(incident, moment.name) else _added(incident, moment)
    kept = tuple(each for each in incident.moments if each.name not in ("started", *LATER))
    return _added(replace(incident, moments=kept, starts=incident.starts + 1), moment)


def settled(incident: Incident, now: float) -> bool:
    """A model that answers again although nothing was started may yet be ended by the same fault."""
    return bool(at(incident, "started")) or elapsed(at(incident, "serving"), now) >= SETTLED


def relapsed(incident: Incident) -> Incident:
    """It does not answer: what it answered before was not the end of this."""
    return replace(incident, moments=tuple(each for each in incident.moments if each.name != "serving"))


def at(incident: Incident, name: str) -> float:
    """When that was, 0 when it was not."""
    return next((each.at for each in incident.moments if each.name == name), 0.0)


def end(incident: Incident, now: float, *, how: str = "serving") -> Incident:
    return replace(mark(incident, Moment(how, now)), ended=now)


def last(incident: Incident) -> float:
    """When it was last known to last."""
    return max(each.at for each in (Moment("", incident.began), *incident.moments))


def moved(incident: Incident, by: float) -> Incident:
    """The clock was set by so many seconds: all its times as they read now, so that those between them stay."""
    moments = tuple(replace(each, at=each.at + by) for each in incident.moments)
    return replace(incident, began=incident.began + by, moments=moments)


def _added(incident: Incident, moment: Moment) -> Incident:
    return replace(incident, moments=tuple(sorted((*incident.moments, moment), key=lambda each: each.at)))
