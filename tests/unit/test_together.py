"""Several things at once: what a failure of one means for the others."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, ClassVar

import pytest

from strixd.engine.together import together
from strixd.engine.transaction import Look, Outcome, transact
from strixd.errors import Rejected, StrixdError
from strixd.plan import Effect, Plan, Step
from strixd.ports import Host
from strixd.resources.cmdline import Cmdline
from strixd.sim import World, clock, simulated_host


async def done(log: list[str], name: str, after: float = 0.0, error: Exception | None = None) -> str:
    await asyncio.sleep(after)
    if error:
        raise error
    log.append(name)
    return name


def test_results_come_in_order_and_the_waiting_is_side_by_side() -> None:
    log: list[str] = []
    assert asyncio.run(together([done(log, "slow", 0.02), done(log, "quick")])) == ["slow", "quick"]
    assert log == ["quick", "slow"]


def test_all_have_ended_when_a_failure_is_raised() -> None:
    log: list[str] = []
    with pytest.raises(Rejected):
        asyncio.run(together([done(log, "", error=Rejected("no")), done(log, "late", 0.02)]))
    assert log == ["late"]


def test_a_bug_hides_behind_no_failure() -> None:
    works: list[Coroutine[Any, Any, str]] = [done([], "", error=Rejected("no")), done([], "", error=ValueError("bug"))]
    with pytest.raises(ValueError, match="bug"):
        asyncio.run(together(works))


class Noted(Step):
    """Takes its time, then notes that it was taken, or fails."""

    effect: ClassVar[Effect] = Effect.NOW

    def __init__(self, log: list[str], name: str, after: float = 0.0, error: StrixdError | None = None) -> None:
        self.log, self.name, self.after, self.error = log, name, after, error

    def __str__(self) -> str:
        return self.name

    def undo(self) -> Step:
        return Noted(self.log, f"-{self.name}")

    async def apply(self, host: Host) -> None:
        await host.sleep(self.after)
        if self.error:
            raise self.error
        self.log.append(self.name)


class Named(Cmdline):
    def __init__(self, name: str) -> None:
        self.name = name  # type: ignore[misc]


def changed(*plans: Plan) -> Outcome:
    looks = tuple(Look(Named(plan.resource), None, plan, verified=False) for plan in plans)

    async def change() -> Outcome:
        return await transact(looks, simulated_host(World()), lambda name, doing, step: None)

    return clock.run(change())


def test_steps_about_one_interface_wait_for_each_other_and_others_do_not() -> None:
    log: list[str] = []
    zone, link = Plan("firewall", (Noted(log, "zone", 2),), interface="a"), Plan("network", (Noted(log, "link"),))
    files = Plan("cmdline", (Noted(log, "files", 1),))
    changed(files, zone, Plan("network", link.steps, interface="a"))
    assert log == ["files", "zone", "link"]


def test_a_failure_stops_the_other_lane_at_its_next_step_and_then_all_is_undone() -> None:
    log: list[str] = []
    files = Plan("cmdline", (Noted(log, "slow", 2), Noted(log, "never")))
    failed = changed(files, Plan("firewall", (Noted(log, "zone", 1, Rejected("no")),), interface="a"))
    assert (failed.culprit, str(failed.failure), failed.undone) == ("firewall", "no", True)
    assert log == ["slow", "-zone", "-slow"]
