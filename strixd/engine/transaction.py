"""Several settings made true as one change: apply each step, verify by planning again, see that nobody is locked out,
make it last; and on a named failure undo every step in reverse.

An error rolls back; a crash rolls forward: whatever kills the process in between, the next pass takes the change up
again (engine/settings.py), or the guards of the foreign systems take it back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from strixd.engine import paths
from strixd.engine.together import together
from strixd.errors import CutsOff, NotSettled, StrixdError, Unavailable
from strixd.plan import Effect, Plan, Resource, Step
from strixd.ports import Host

T = TypeVar("T")

Note = Callable[[str, str, Step], None]
"""Told of each step as it is taken: the resource, "apply" or "undo", the step. Journal and watchdog listen."""
PATIENCE = 3.0
"""Seconds that another path into the host may be away before the change counts as having broken it."""

RETURN = 10.0
"""Seconds, over all steps that are taken back, in which a service that is away may return."""


@dataclass(frozen=True, slots=True)
class Look:
    """A resource, what it shall be, and what is to be done about it. `verified`: whether it must be so afterwards."""

    resource: Resource[Any, Any]
    desired: object
    plan: Plan
    verified: bool = True

    @property
    def name(self) -> str:
        return self.resource.name


@dataclass(frozen=True, slots=True)
class Killed:
    """An attempt at this change that was killed: how to undo what it may have done, the last step first."""

    undo: tuple[tuple[str, Step], ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """`plans`: by resource, as the world was last seen. `failure`: what went wrong, with `culprit`, the resource at
    which it did; `undone`: whether all of it was taken back."""

    plans: Mapping[str, Plan]
    failure: StrixdError | None = None
    culprit: str = ""
    undone: bool = True


async def transact(looks: tuple[Look, ...], host: Host, note: Note, *, killed: Killed | None = None) -> Outcome:
    """Never raises StrixdError: a failure is part of the outcome."""
    return await _Change(looks, host, note, killed).run()


@dataclass(slots=True)
class _Change:
    """A change under way: what was taken, at which resource it is, and at which something went wrong first."""

    looks: tuple[Look, ...]
    host: Host
    note: Note
    killed: Killed | None
    at: str = ""
    first: tuple[str, StrixdError] | None = None
    patience: float = 0.0
    taken: list[tuple[str, Step]] = field(default_factory=list)

    async def run(self) -> Outcome:
        plans: Mapping[str, Plan] = {look.name: look.plan for look in self.looks}
        failure: StrixdError | None = None
        undone = True
        try:
            async with AsyncExitStack() as guards:
                await self._enter(guards)
                try:
                    plans = await self._do()
                except StrixdError as error:
                    failure, undone = error, await self._undo()
                    if not undone:
                        raise
        except StrixdError as error:
            if error is not failure:  # a guard refused to stand, or could not be confirmed
                failure, undone = error, await self._undo()
        culprit = next((name for name, error in [self.first or ("", None)] if error is failure), self.at)
        return Outcome(plans, failure, culprit if failure else "", undone)

    async def _enter(self, guards: AsyncExitStack) -> None:
        for look in self.looks:
            self.at = look.name
            resumed = self.killed is not None
            await guards.enter_async_context(look.resource.guard(self.host, look.plan, resumed=resumed))

    async def _do(self) -> Mapping[str, Plan]:
        before = await paths.read(self.host)
        await self._take({look.name: look.plan for look in self.looks}, lasting=False)
        plans = await self._verify(lasting=False)
        await self._nobody_locked_out(before)
        if not any(plan.steps for plan in plans.values()):
            return plans
        await self._take(plans, lasting=True)
        return await self._verify(lasting=True)

    async def _take(self, plans: Mapping[str, Plan], *, lasting: bool) -> None:
        """Those about the same interface one after the other, beside the others, who share nothing with them."""
        lanes: dict[str, list[tuple[str, Step]]] = {}
        for name, plan in plans.items():
            steps = [(name, step) for step in plan.steps if (step.effect is Effect.LASTING) == lasting]
            lanes.setdefault(plan.interface or name, []).extend(steps)
        await self._all(self._lane(steps) for steps in lanes.values() if steps)

    async def _lane(self, steps: Iterable[tuple[str, Step]]) -> None:
        for name, step in steps:
            if self.first:
                return
            self.taken.append((name, step))  # before it is applied: one that fails half-way is undone too
            self.note(name, "apply", step)
            await self._blaming(name, step.apply(self.host))

    async def _verify(self, *, lasting: bool) -> Mapping[str, Plan]:
        looks = [self._blaming(look.name, self._settled(look, lasting=lasting)) for look in self.looks]
        return dict(zip((look.name for look in self.looks), await self._all(looks), strict=True))

    async def _all(self, works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
        """Raises what went wrong first, when all have come to rest: then it can be undone."""
        try:
            return await together(works)
        except StrixdError as failure:
            raise (self.first[1] if self.first else failure) from None

    async def _blaming(self, name: str, work: Coroutine[Any, Any, T]) -> T:
        try:
            return await work
        except StrixdError as failure:
            self.first = self.first or (name, failure)
            raise

    async def _settled(self, look: Look, *, lasting: bool) -> Plan:
        """The plan when nothing is left of it, but perhaps what makes it last, within `settle` seconds."""
        resource = look.resource
        if not look.verified:
            return replace(look.plan, steps=())
        deadline = _elapsed() + resource.settle
        while True:
            plan = resource.plan(look.desired, await resource.observe(self.host, look.desired))
            left = [step for step in plan.steps if lasting or step.effect is not Effect.LASTING]
            if not left or self.first:
                return plan
            if _elapsed() >= deadline:
                words = "; ".join(map(str, left))
                raise NotSettled(f"Cannot make {look.name} true: all steps were accepted, and still to do is: {words}")
            await self.host.sleep(0.1)

    async def _nobody_locked_out(self, before: paths.Paths) -> None:
        """Every way into this host that there was is still there. Raises CutsOff."""
        ours = {look.plan.interface for look in self.looks}
        deadline = _elapsed() + PATIENCE
        while lost := paths.lost(before, await paths.read(self.host), ours=ours):
            if _elapsed() >= deadline:
                raise CutsOff(f"Cannot keep this change: with it {'; '.join(lost)}")
            await self.host.sleep(0.1)

    async def _undo(self) -> bool:
        """In reverse; goes on past a step that cannot be undone, and says whether all could."""
        self.patience = _elapsed() + RETURN
        mine = tuple((name, back) for name, step in reversed(self.taken) if (back := step.undo()))
        earlier = self.killed.undo if self.killed else ()
        return all([await self._take_back(name, back) for name, back in (*mine, *earlier)])

    async def _take_back(self, name: str, back: Step) -> bool:
        """A service that is being restarted, which may be what went wrong, is waited for."""
        self.note(name, "undo", back)
        while True:
            try:
                await back.apply(self.host)
            except StrixdError as failure:
                if not isinstance(failure, Unavailable) or _elapsed() >= self.patience:
                    return False
                await self.host.sleep(0.5)
            else:
                return True


def _elapsed() -> float:
    """Seconds by a clock that nobody sets: NTP often does just when a host has booted and strixd makes its change."""
    return asyncio.get_running_loop().time()
