"""One resource made true: apply each step, verify by planning again, and undo in reverse on a named failure.

An error rolls back; a crash rolls forward: whatever kills the process in between, the next pass reconciles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from strixd.errors import NotSettled, StrixdError
from strixd.plan import Plan, Resource, Step
from strixd.ports import Host

Note = Callable[[str, Step], None]
"""Told of each step as it is taken ("apply" or "undo"): the journal and the watchdog listen."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """`plan`: as the world was last seen. `failure`: what went wrong; `undone`: whether all of it was taken back."""

    plan: Plan
    failure: StrixdError | None = None
    undone: bool = True


async def apply(resource: Resource[Any, Any], desired: object, host: Host, plan: Plan, note: Note) -> Outcome:
    """Never raises StrixdError: a failure is part of the outcome."""
    taken: list[Step] = []
    try:
        for step in plan.steps:
            taken.append(step)  # before it is applied: one that fails half-way is undone too
            note("apply", step)
            await step.apply(host)
        return Outcome(await _verify(resource, desired, host))
    except StrixdError as failure:
        return Outcome(plan, failure, resource.supervised or await _undo(taken, host, note))


async def _verify(resource: Resource[Any, Any], desired: object, host: Host) -> Plan:
    """The plan when it is empty, or when the world had `settle` seconds; a workload is judged by later passes."""
    deadline = host.now() + resource.settle
    while True:
        plan = resource.plan(desired, await resource.observe(host, desired))
        if not plan.steps or resource.supervised:
            return plan
        if host.now() >= deadline:
            left = "; ".join(str(step) for step in plan.steps)
            raise NotSettled(f"Cannot make {resource.name} true: all steps were accepted, and still to do is: {left}")
        await host.sleep(0.1)


async def _undo(taken: list[Step], host: Host, note: Note) -> bool:
    """In reverse; goes on past a step that cannot be undone, and says whether all could."""
    whole = True
    for step in reversed(taken):
        back = step.undo()
        if back is None:
            continue
        note("undo", back)
        try:
            await back.apply(host)
        except StrixdError:
            whole = False
    return whole
