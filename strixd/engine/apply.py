"""One resource made true: apply each step, verify by planning again, and undo in reverse on a named failure.

An error rolls back; a crash rolls forward: whatever kills the process in between, the next pass reconciles.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from strixd.errors import NotSettled, StrixdError
from strixd.plan import Effect, Plan, Resource, Step
from strixd.ports import Host

Note = Callable[[str, Step], None]
"""Told of each step as it is taken ("apply" or "undo"): the journal and the watchdog listen."""
Take = Callable[[Step], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """`plan`: as the world was last seen. `failure`: what went wrong; `undone`: whether all of it was taken back."""

    plan: Plan
    failure: StrixdError | None = None
    undone: bool = True


async def apply(  # noqa: PLR0913 - what is to be made true, where, how, and who is told
    resource: Resource[Any, Any], desired: object, host: Host, plan: Plan, note: Note, *, resumed: bool = False
) -> Outcome:
    """Never raises StrixdError: a failure is part of the outcome. `resumed`: an earlier attempt was killed."""
    taken: list[Step] = []
    seen, failure = plan, None
    try:
        async with resource.guard(host, plan, resumed=resumed):
            try:
                seen = await _make(resource, desired, host, plan, partial(_take, host, note, taken))
            except StrixdError as error:
                failure = error
                if not (resource.supervised or await _undo(taken, host, note)):
                    raise
    except StrixdError as error:  # the guard was not to be had or not to be confirmed, or not all was undone inside it
        return Outcome(plan, failure or error, await _undo(taken, host, note))
    return Outcome(seen, failure)


async def _make(resource: Resource[Any, Any], desired: object, host: Host, plan: Plan, take: Take) -> Plan:
    """What only makes last what holds already comes when the rest is verified."""
    lasting = [step for step in plan.steps if step.effect is Effect.LASTING]
    for step in plan.steps:
        if step not in lasting:
            await take(step)
    if lasting:
        await _verify(resource, desired, host, lambda step: step.effect is Effect.LASTING)
    for step in lasting:
        await take(step)
    return await _verify(resource, desired, host, lambda step: False)


async def _take(host: Host, note: Note, taken: list[Step], step: Step) -> None:
    taken.append(step)  # before it is applied: one that fails half-way is undone too
    note("apply", step)
    await step.apply(host)


async def _verify(
    resource: Resource[Any, Any], desired: object, host: Host, may_remain: Callable[[Step], bool]
) -> Plan:
    """The plan when nothing else remains, or when the world had `settle` seconds; a workload is judged by later
    passes."""
    deadline = host.now() + resource.settle
    while True:
        plan = resource.plan(desired, await resource.observe(host, desired))
        if all(may_remain(step) for step in plan.steps) or resource.supervised:
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
