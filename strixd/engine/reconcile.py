"""The one loop that may change the host: look at everything, think, write what differs, tell.

Commands, signals and timers only say "look again" (wake). While things move it looks often; when nothing has
changed for long it looks every half minute, which also feeds the watchdog: a hung loop starves it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from strixd import messages
from strixd.engine import compose as status
from strixd.engine import memory, views
from strixd.engine.accounts import Incidents
from strixd.engine.apply import Begun, begin
from strixd.engine.hold import Hold, hold
from strixd.engine.reboot import Reboots
from strixd.engine.settings import Settings
from strixd.engine.status import Incident, ResourceView, Status
from strixd.engine.supervise import Attempt, GiveUp, Keep, over, paced, verdict, well
from strixd.engine.tally import Tally
from strixd.engine.wish import Wish
from strixd.errors import StrixdError
from strixd.plan import Plan, Resource, Step
from strixd.ports import Host
from strixd.resources import network, vllm

log = logging.getLogger("strixd")

SOONEST, LATEST = 1.0, 30.0  # seconds between passes
BREATH = 0.1  # seconds; a storm of wakes costs no more passes than this


class Reconciler:
    """`beat` is called after every pass and before every step; `latest`: seconds between passes at most."""

    def __init__(self, host: Host, wish: Wish, beat: Callable[[], None], *, latest: float = LATEST) -> None:
        self.host = host
        self._latest = latest
        self._kept = ""
        self._saving = memory.Saving()
        self.wish = wish  # what is asked for now; replaced whole by the engine
        self._wish = wish  # what the present pass works on, and what the status speaks of
        self._wanted = wish.wanted()
        self._beat = beat
        self._wake = asyncio.Event()
        self._news = asyncio.Event()
        self.settings = Settings(host, self._took)
        self._version = 0
        self._begun = self._passes = 0
        self._views: dict[str, ResourceView] = {}
        self.seen: dict[str, object] = {}
        self._holds: dict[str, Hold] = {}
        self._runs: dict[str, tuple[object, tuple[Attempt, ...]]] = {}
        self._incidents = Incidents(host)
        self._moved = self._since = self._at = host.now()
        self._status: Status | None = None
        self._reboots = Reboots(host)
        self.tally = Tally()

    def wake(self, reason: str) -> None:
        log.debug("Looking again: %s", reason)
        self._wake.set()

    def lift(self) -> None:
        """Forget every hold: a person asked."""
        self._holds.clear()
        self._runs.clear()
        self.settings.lift()

    def incidents(self) -> tuple[Incident, ...]:
        return self._incidents.newest_first

    def status(self) -> Status:
        return self._status or self._compose()

    async def changed(self, seen: int) -> int:
        while self._version <= seen:
            await self._news.wait()
        return self._version

    async def after_pass(self) -> None:
        """Returns when a pass that began after this call is complete."""
        begun, seen = self._begun, 0
        self.wake("asked")
        while self._passes <= begun:
            seen = await self.changed(seen)

    async def run(self) -> None:
        await self._incidents.load()
        await self.settings.load()
        while True:
            with self.tally.timed():
                await self._pass()
            self.tally.saw(self.status(), self.seen)
            self._beat()
            await self.host.sleep(BREATH)
            await self._rest()

    async def _rest(self) -> None:
        try:
            async with asyncio.timeout(self._pause()):
                await self._wake.wait()
        except TimeoutError:
            log.debug("Looking again, unasked")

    def _pause(self) -> float:
        """Seconds: the longer nothing has changed, the longer; never past the time of a next try."""
        now = self.host.now()
        calm = max(SOONEST, abs(now - self._moved) / 4)  # the clock may have been set back
        tries = [max(view.next_try - now, SOONEST) for view in self._views.values() if view.next_try]
        return min(calm, self._latest, *tries)

    async def _pass(self) -> None:
        self._wake.clear()
        self._begun += 1
        begun = self._begun
        self._at = self.host.now()
        self._incidents.look_again()
        if self._wish is not self.wish:
            self._wish, self._wanted = self.wish, self.wish.wanted()
        await self._keep_file()
        before = {name: (view.condition, view.why) for name, view in self._views.items()}
        await self._tend_settings()
        for resource, desired in self._wanted:
            if resource.supervised:
                self._note(await self._tend(resource, desired))
        self._views = {resource.name: self._views[resource.name] for resource, _ in self._wanted}
        self.wish = self.wish.after(self._views["ray"].condition, self.host.now())
        if before != {name: (view.condition, view.why) for name, view in self._views.items()}:
            self._moved = self.host.now()
        await self._account(self._views)
        self._views.update(await self._reboots.after_pass(self._wish, self._views, self.seen))
        self._passes = begun
        self._tell()

    async def _account(self, seen: Mapping[str, ResourceView]) -> None:
        await self._incidents.account(self._wish, seen, self.seen.get(vllm.Vllm.name), self._at)

    async def _keep_file(self) -> None:
        """The file in force is the last good one."""
        text = self._wish.file.text
        if text != self._kept and await self._saving(memory.save_last_good(self.host.files, text)):
            self._kept = text

    async def _tend_settings(self) -> None:
        pairs = [(resource, desired) for resource, desired in self._wanted if not resource.supervised]
        tended = await self.settings.tend(self._wish.orders, pairs, text=self._wish.file.text)
        self.seen |= tended.seen
        self._bind(network.card(self.seen.get("network")))
        for name, view in tended.views.items():
            self._incidents.suspect(tended.plans.get(name))
            self._note(view)

    def _bind(self, card: str) -> None:
        """The next pass finds the fabric link by its card, too, whatever it is called now."""
        if card != self.wish.card:
            self.wish = replace(self.wish, card=card)
            self.wake("the card of the fabric link is known")

    async def _tend(self, resource: Resource[Any, Any], desired: object) -> ResourceView:
        try:
            observed = await resource.observe(self.host, desired)
        except StrixdError as failure:
            return views.unseen(resource.name, failure, self.host.now())
        self.seen[resource.name] = observed
        plan = self._incidents.judged(resource.plan(desired, observed), self._wish)
        if not plan.steps:
            self._holds.pop(resource.name, None)
            if plan.condition == "ok":
                self._came_well(resource.name)
            return self._view(plan)
        return await self._act(resource, desired, plan)

    async def _act(self, resource: Resource[Any, Any], desired: object, plan: Plan) -> ResourceView:
        if self._wish.orders.paused:
            return self._view(replace(plan, condition="waiting", why="paused", hint="strixd-cli resume"))
        if unmet := self._unmet(resource, desired, plan.calm):
            why = f"{plan.why}; {unmet}" if plan.why else unmet
            return self._view(replace(plan, condition="waiting", why=why, hint=""))
        if held := self._held(resource, desired, plan):
            return held
        if resource.name == vllm.Vllm.name:  # an incident begins before what is done about it, which can take long
            await self._account({**self._views, resource.name: self._view(plan)})
        self._count(resource, desired, plan)
        return self._judge(resource, desired, await begin(resource, desired, self.host, plan, self._took))

    def _unmet(self, resource: Resource[Any, Any], desired: object, calm: float) -> str:
        for name in resource.needs(desired):
            view = self._views.get(name)
            if view is None or view.condition != "ok":
                return f"waits for {name}" + (f": {view.why}" if view else "")
            if 0 <= self.host.now() - view.since < calm:
                return f"waits until {name} has been well for {calm:.0f} s"
        return ""

    def _held(self, resource: Resource[Any, Any], desired: object, plan: Plan) -> ResourceView | None:
        now = self.host.now()
        held = self._holds.get(resource.name)
        if held and held.holds((desired, plan.steps), now):
            return views.held(resource.name, held, plan, now)
        key, history = self._runs.get(resource.name, (None, ()))
        if key != desired or not paced(plan.steps):
            return None
        self._runs[resource.name] = (key, history := over(history, now))
        pace = verdict(history, now)
        if isinstance(pace, Keep):
            return None
        if isinstance(pace, GiveUp):
            hint = plan.hint or "strixd-cli status; strixd-cli apply tries at once"
            plan = replace(plan, condition="stuck", why=": ".join(filter(None, (plan.why, pace.why))), hint=hint)
        else:
            plan = replace(plan, condition="held")
        return replace(self._view(plan), next_try=now + pace.after)

    def _count(self, resource: Resource[Any, Any], desired: object, plan: Plan) -> None:
        if not paced(plan.steps):
            return
        key, history = self._runs.get(resource.name, (desired, ()))
        attempt = Attempt(self.host.now())
        self._runs[resource.name] = (desired, (*(history if key == desired else ()), attempt)[-20:])

    def _came_well(self, name: str) -> None:
        if run := self._runs.get(name):
            self._runs[name] = (run[0], well(run[1], self.host.now()))

    def _judge(self, resource: Resource[Any, Any], desired: object, begun: Begun) -> ResourceView:
        name, failure = resource.name, begun.failure
        if failure is None:
            self._holds.pop(name, None)
            plan = begun.plan  # steps that are left: asked for, and not to be seen yet
            plan = replace(plan, condition="waiting", why="started", echo=True) if plan.steps else plan
            self._incidents.suspect(plan)
            return self._view(plan)
        held = hold(self._holds.get(name), (desired, begun.plan.steps), failure, self.host.now())
        self._holds[name] = held
        views.log_failure(name, held, undone=True)
        return views.held(name, held, begun.plan, self.host.now())

    def _took(self, name: str, doing: str, step: Step) -> None:
        self._beat()
        views.log_step(name, doing, step, self._begun)
        self._incidents.took(name, step)
        self.tally.took(step)
        self._tell_change()

    def _view(self, plan: Plan) -> ResourceView:
        return views.from_plan(plan, self.host.now())

    def _note(self, view: ResourceView) -> None:
        """Keeps since when a resource is in its condition, and says in the journal when that changes."""
        before = self._views.get(view.name)
        if before and before.condition == view.condition:
            view = replace(view, since=before.since)
        else:
            views.log_condition(view)
        self._views[view.name] = view

    def _digest(self) -> str:
        server = self.seen.get("vllm")
        return server.image.digest if isinstance(server, vllm.Observed) else ""

    def _compose(self) -> Status:
        told = status.Told(
            self._views,
            self.seen,
            {resource.name: desired for resource, desired in self._wanted},
            self._incidents.last,
            self._incidents.usual(self._wish.orders.model, self._digest()),
            change=self.settings.running,
            passes=self._passes,
            since=self._since,
            at=self.host.now(),
        )
        return status.status(self._wish, told)

    def _tell(self) -> None:
        before, self._status = self._status, self._compose()
        if before is None or before.phase != self._status.phase:
            self._since = self.host.now()
            self._status = replace(self._status, since=self._since)
            log.info("%s is %s", self._status.node, self._status.phase, extra=messages.fields("PHASE"))
        self._announce()

    def _tell_change(self) -> None:
        """In the middle of a pass: all but the change stays as of the last one, so that nobody takes an old condition
        for what came of a new order."""
        if self._status is not None:
            self._status = replace(self._status, change=self.settings.running)
            self._announce()

    def _announce(self) -> None:
        self._version += 1
        self._news.set()
        self._news = asyncio.Event()
