"""An incident: from the first bad sign after the model had answered to the first good completion. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from uuid import uuid4

from strixd.engine.status import Incident, Moment, ResourceView

PATH = ("network", "firewall", "image", "ray", "vllm")
"""What an answer depends on, in the order in which one fault explains the next."""


def begin(views: Mapping[str, ResourceView], resource: str, cause: str, *, now: float) -> Incident | None:
    """None while all is well. `resource`, `cause`: the first workload found ended, or failure, of this pass; without
    one the lowest layer that is not ok is the cause."""
    bad = [views[name] for name in PATH if name in views and views[name].condition != "ok"]
    if not bad:
        return None
    if not resource:
        resource, cause = bad[0].name, bad[0].why
    return Incident(uuid4().hex[:8], resource, cause, began=now, ended=0.0, moments=(Moment("noticed", now),))


def started(incident: Incident, at: float) -> Incident:
    """`at`: when the model was last started; counts if that was after the first bad sign and is not yet noted."""
    if at < incident.began or Moment("started", at) in incident.moments:
        return incident
    return replace(incident, moments=(*incident.moments, Moment("started", at)))


def end(incident: Incident, now: float) -> Incident:
    return replace(incident, ended=now, moments=(*incident.moments, Moment("answering", now)))
