"""A workload's steps taken. What they start is judged by later passes and never taken back: engine/supervise paces it.
Settings go another way: engine/transaction.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from strixd.errors import StrixdError
from strixd.plan import Plan, Resource, Step
from strixd.ports import Host


@dataclass(frozen=True, slots=True)
class Begun:
    """`plan`: as the world was seen afterwards, or the one that failed."""

    plan: Plan
    failure: StrixdError | None = None


async def begin(
    resource: Resource[Any, Any], desired: object, host: Host, plan: Plan, note: Callable[[str, str, Step], None]
) -> Begun:
    """Never raises StrixdError: a failure is part of the outcome."""
    try:
        for step in plan.steps:
            note(resource.name, "apply", step)
            await step.apply(host)
        return Begun(resource.plan(desired, await resource.observe(host, desired)))
    except StrixdError as failure:
        return Begun(plan, failure)
