"""An incident: from the first bad sign after the model had answered to the first good completion. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from uuid import uuid4

from strixd.engine.status import Incident, Moment, ResourceView

PATH = ("network", "firewall", "image", "ray", "vllm")
"""What an answer depends on, in the order in which one fault explains the next."""


def begin(views: Mapping[str, ResourceView], now: float) -> Incident | None:
    """None while all is well. The cause is the lowest layer that is not ok."""
    bad = [views[name] for name in PATH if name in views and views[name].condition != "ok"]
    if not bad:
        return None
    cause = f"{bad[0].name}: {bad[0].why}"
    return Incident(uuid4().hex[:8], bad[0].name, cause, began=now, ended=0.0, moments=(Moment("noticed", now),))


def mark(incident: Incident, name: str, now: float) -> Incident:
    """Something that happened on the way: "started"."""
    return replace(incident, moments=(*incident.moments, Moment(name, now)))


def end(incident: Incident, now: float) -> Incident:
    return replace(mark(incident, "answering", now), ended=now)
