"""A change turned round: what takes it back, as a change of its own. Pure."""

from __future__ import annotations

from typing import Any

from strixd.engine.record import Change
from strixd.engine.transaction import Look
from strixd.plan import Plan, Resource, Step


def inverse(change: Change, pairs: tuple[tuple[Resource[Any, Any], Any], ...]) -> tuple[Look, ...]:
    """Its steps back, the last one first; what is there afterwards is not compared with what is wanted."""
    known = {resource.name: (resource, desired) for resource, desired in pairs}
    steps: dict[str, tuple[Step, ...]] = {}
    for name, step in change.undo():
        steps[name] = (*steps.get(name, ()), step)
    plans = {name: Plan(name, back, interface=change.interface) for name, back in steps.items() if name in known}
    return tuple(Look(*known[name], plan, verified=False) for name, plan in plans.items())
