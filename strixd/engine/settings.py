"""The host's settings (kernel arguments, firewall, link), kept true together: what differs becomes one change, recorded
on disk before its first step, and taken back whole when any of it fails.

A change that was killed is taken up again, once. When that attempt is killed too, it is taken back and left alone until
something else is wanted: whatever it does here, it must not do it for ever.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any
from uuid import uuid4

from strixd import messages
from strixd.engine import fights, record, views
from strixd.engine.hold import Hold, hold
from strixd.engine.inverse import inverse
from strixd.engine.memory import Saving
from strixd.engine.record import DRIFT, Change
from strixd.engine.status import ChangeView, ResourceView
from strixd.engine.status import Outcome as Ended
from strixd.engine.together import together
from strixd.engine.transaction import Killed, Look, Outcome, transact
from strixd.errors import Rejected, StrixdError
from strixd.orders import Orders
from strixd.plan import Condition, Plan, Resource, Step, unguarded
from strixd.ports import Host

log = logging.getLogger("strixd")

Pair = tuple[Resource[Any, Any], Any]
ATTEMPTS = 2
ITSELF, UNDO = "strixd", "undo"
TOGETHER = frozenset({"firewall", "network"})
"""What is held together: a fence for the addresses of a link that was taken back would shut the peers out."""
TRUE: frozenset[Condition] = frozenset({"ok", "reboot", "ineffective"})


@dataclass(frozen=True, slots=True)
class Tended:
    """What came of one pass: the view of each resource, and what was read and thought of it."""

    views: Mapping[str, ResourceView]
    seen: Mapping[str, object]
    plans: Mapping[str, Plan]


class Settings:
    """`took` is told of each step as it is taken. Only `tend` changes the host."""

    def __init__(self, host: Host, took: Callable[[str, str, Step], None]) -> None:
        self._host = host
        self._took = took
        self._holds: dict[str, Hold] = {}
        self._repairs: dict[str, fights.Repairs] = {}
        self._true: dict[str, object] = {}  # what held in the last pass, as it was wanted
        self._open: Change | None = None
        self._barred: Change | None = None
        self._taken = 0
        self._going = False
        self._history_saved, self._change_saved = Saving(), Saving()
        self._basis = ""
        self.history: tuple[Change, ...] = ()  # oldest first
        self.cause = ""  # who asked for the next change

    @property
    def running(self) -> ChangeView | None:
        """Not one that was killed and waits to be taken up: nobody shall wait for its end."""
        return self._open.view(taken=self._taken) if self._open and self._going else None

    @property
    def left_open(self) -> bool:
        """A change was begun and has not ended."""
        return self._open is not None

    async def load(self) -> None:
        self.history = await record.load_history(self._host.files)
        left = await record.load_change(self._host.files)
        self._open = left if left and left.outcome == "running" else None
        self._barred = left if left and left.outcome != "running" else None

    def lift(self) -> None:
        """Forget every hold: a person asked."""
        self._holds.clear()
        self._repairs.clear()

    async def tend(self, orders: Orders, pairs: Iterable[Pair], *, text: str = "") -> Tended:
        """`text`: cluster.toml, from which the pairs were made."""
        cause, self.cause = self.cause, ""
        pairs = tuple(pairs)
        self._basis = sha256(f"{orders.applied} {text}".encode()).hexdigest()
        if asked := self._to_undo(orders):
            await self._take_back(asked, pairs, cause)
            cause = ""
        looks, unseen, seen = await self._look(pairs)
        views = {look.name: await self._idle(look, orders) for look in looks}
        acting = tuple(look for look in looks if views[look.name] is None)
        if not orders.paused and (acting or self._open):
            views |= await self._act(looks, acting, cause)
        known = unseen | {name: view for name, view in views.items() if view}
        self._true = {each.name: desired for each, desired in pairs if known[each.name].condition in TRUE}
        ordered = {resource.name: known[resource.name] for resource, _ in pairs}
        return Tended(ordered, seen, {look.name: look.plan for look in looks})

    async def _look(self, pairs: Iterable[Pair]) -> tuple[tuple[Look, ...], dict[str, ResourceView], dict[str, object]]:
        """What can be seen, and the views of what cannot."""
        looks, unseen, seen = [], {}, {}
        for look in await together(self._look_at(*pair) for pair in pairs):
            if isinstance(look, ResourceView):
                unseen[look.name] = look
            else:
                looks.append(look[0])
                seen[look[0].name] = look[1]
        return tuple(looks), unseen, seen

    async def _look_at(self, resource: Resource[Any, Any], desired: object) -> tuple[Look, object] | ResourceView:
        try:
            observed = await resource.observe(self._host, desired)
        except StrixdError as failure:
            return views.unseen(resource.name, failure, self._host.now())
        return Look(resource, desired, resource.plan(desired, observed)), observed

    async def _idle(self, look: Look, orders: Orders) -> ResourceView | None:
        """How it stands, when nothing is to be done about it now; None when something is."""
        name, plan, now = look.name, look.plan, self._host.now()
        if not plan.steps:
            self._holds.pop(name, None)
            return views.from_plan(plan, now)
        if orders.paused:
            return views.from_plan(replace(plan, condition="waiting", why="paused", hint="strixd-cli resume"), now)
        if name in orders.released:
            why, hint = "left alone since strixd-cli undo", "strixd-cli apply takes it up again"
            return views.from_plan(replace(plan, condition="waiting", why=why, hint=hint), now)
        held = self._barred_by(name) or self._holds.get(name)
        if held and held.holds((look.desired, plan.steps), now):
            return views.held(name, held, plan, now)
        return await self._in_fight(look)

    def _barred_by(self, name: str) -> Hold | None:
        barred = self._barred
        if barred is None or barred.basis != self._basis or name not in barred.resources:
            return None
        failure = Rejected(f"Cannot make this change: {barred.why}", hint="strixd-cli apply tries it again")
        return Hold(None, 0.0, ATTEMPTS, failure)

    def _drifted(self, look: Look) -> bool:
        """It held, nobody wants it otherwise, and what there is to do does not come from strixd's own insight."""
        return self._true.get(look.name) == look.desired and not look.plan.cause

    async def _in_fight(self, look: Look) -> ResourceView | None:
        """Somebody who changes it back again and again is not fought."""
        if not self._drifted(look):
            return None
        now, found = self._host.now(), views.found(look.plan)
        log.warning("%s", found, extra=messages.fields("DRIFT", resource=look.name))
        repairs = self._repairs.get(look.name, ())
        if not fights.third(repairs, look.plan.steps, now):
            self._repairs[look.name] = fights.counted(repairs, look.plan.steps, now)
            return None
        who = await fights.other_party(self._host, look.plan, since=repairs[-1][0])
        held = self._holds[look.name] = fights.held((look.desired, look.plan.steps), found, who, now)
        return views.held(look.name, held, look.plan, now)

    # Changes

    async def _act(
        self, looks: tuple[Look, ...], acting: tuple[Look, ...], cause: str
    ) -> dict[str, ResourceView | None]:
        if self._open and self._open.undoes:  # killed while taking back: the order stands, or it is over
            self._open = None
        if self._open and self._open.attempts >= ATTEMPTS:
            return await self._give_up(self._open, looks, acting)
        left = self._open
        chosen = tuple(look for look in looks if look in acting or (left and look.name in left.resources))
        if not chosen or (not acting and any(map(_uncertain, chosen))):
            return {}
        unasked = DRIFT if acting and all(map(self._drifted, acting)) else ITSELF
        why = next(filter(None, (left.by if left else "", cause, *(look.plan.cause for look in acting))), unasked)
        change = self._begun(chosen, why)
        if left:
            parts = (*left.parts, *change.parts)
            change = replace(change, id=left.id, began=left.began, parts=parts, attempts=left.attempts + 1)
        return self._judged(chosen, await self._run(change, chosen, Killed(left.undo()) if left else None))

    def _begun(self, looks: tuple[Look, ...], by: str) -> Change:
        parts = tuple(record.part(look.name, step) for look in looks for step in look.plan.steps)
        interface = next((look.plan.interface for look in looks if look.plan.interface), "")
        parts = tuple(sorted(parts, key=lambda each: each.view.effect == "lasting"))  # as they are taken
        return Change(uuid4().hex[:8], self._host.now(), by, self._basis, interface, parts)

    async def _run(self, change: Change, looks: tuple[Look, ...], killed: Killed | None) -> Outcome:
        """Its inverses are on disk before its first step."""
        self._open, self._going = change, True
        self._taken = len(change.parts) - sum(len(look.plan.steps) for look in looks)
        try:
            await record.save_change(self._host.files, change)
        except StrixdError as failure:
            outcome = Outcome({look.name: look.plan for look in looks}, failure, looks[0].name)
        else:
            outcome = await transact(looks, self._host, self._note, killed=killed)
        await self._ended(change, outcome)
        return outcome

    async def _ended(self, change: Change, outcome: Outcome) -> None:
        now, failure = self._host.now(), outcome.failure
        how: Ended = "done" if failure is None else "failed" if outcome.undone else "left over"
        self._open, self._barred, self._going = None, None, False
        self.history = record.with_change(self.history, record.ended(change, how, str(failure or ""), now))
        await self._keep()

    async def _keep(self, barred: Change | None = None) -> None:
        """A full disk costs the history, and nothing else: a change that is over must not be found open."""
        files = self._host.files
        await self._history_saved(record.save_history(files, self.history))
        await self._change_saved(record.save_change(files, barred) if barred else files.remove(record.CHANGE))

    def _judged(self, looks: tuple[Look, ...], outcome: Outcome) -> dict[str, ResourceView | None]:
        now, failure = self._host.now(), outcome.failure
        if failure is None:
            for look in looks:
                self._holds.pop(look.name, None)
            return {name: views.from_plan(plan, now) for name, plan in outcome.plans.items()}
        culprit = next(look for look in looks if look.name == outcome.culprit)
        for look in looks:
            if look.plan.steps and (look is culprit or {look.name, culprit.name} <= TOGETHER):
                key = (look.desired, look.plan.steps)
                self._holds[look.name] = hold(self._holds.get(look.name), key, failure, now)
        key = (culprit.desired, culprit.plan.steps)
        held = self._holds.setdefault(culprit.name, hold(None, key, failure, now))  # it may have failed without steps
        views.log_failure(culprit.name, held, outcome.undone)
        why = f"taken back with the change in which {culprit.name} failed"
        waiting = [replace(look.plan, condition="waiting", why=why) for look in looks if look.plan.steps]
        told: dict[str, ResourceView | None] = {plan.resource: views.from_plan(plan, now) for plan in waiting}
        return told | {culprit.name: views.held(culprit.name, held, culprit.plan, now)}

    async def _give_up(
        self, change: Change, looks: tuple[Look, ...], acting: tuple[Look, ...]
    ) -> dict[str, ResourceView | None]:
        """Killed twice. Nothing else is done in this pass, nor before all that it was about can be seen."""
        now = self._host.now()
        later: dict[str, ResourceView | None] = {look.name: views.from_plan(look.plan, now) for look in acting}
        if not {look.name for look in looks} >= set(change.resources):
            return later
        back = inverse(change, tuple((look.resource, look.desired) for look in looks))
        outcome = await transact(back, self._host, self._note, killed=Killed())
        why = f"strixd was killed during it {change.attempts} times" + ("" if outcome.undone else "; not all is undone")
        over = record.ended(change, "failed" if outcome.failure is None else "left over", why, self._host.now())
        self._open, self._barred = None, over
        self.history = record.with_change(self.history, over)
        await self._keep(over)
        held = {look.name: self._barred_by(look.name) for look in looks}
        return later | {look.name: views.held(look.name, h, look.plan, now) for look in looks if (h := held[look.name])}

    # Undo

    def _to_undo(self, orders: Orders) -> Change | None:
        held = self._holds.get(UNDO)
        if orders.paused or (held and held.holds(orders.undo, self._host.now())):
            return None
        return next((each for each in self.history if each.id == orders.undo and each.outcome == "done"), None)

    async def _take_back(self, change: Change, pairs: tuple[Pair, ...], cause: str) -> None:
        looks = inverse(change, pairs)
        killed = Killed() if self._open else None
        if not looks:
            return
        taking = replace(self._begun(looks, cause or ITSELF), undoes=change.id)
        outcome = await self._run(taking, looks, killed)
        if outcome.failure is None:
            self._true = {name: one for name, one in self._true.items() if name not in change.resources}
            undone = record.ended(change, "undone", f"by {taking.by} in change {taking.id}", change.ended)
            self.history = tuple(undone if each.id == change.id else each for each in self.history)
            await self._keep()
        else:
            held = self._holds[UNDO] = hold(self._holds.get(UNDO), change.id, outcome.failure, self._host.now())
            views.log_failure(UNDO, held, outcome.undone)

    def _note(self, name: str, doing: str, step: Step) -> None:
        """Before the step: it counts as taken when the next one begins."""
        if doing == "undo":
            self._taken = max(0, self._taken - 1)
        self._took(name, doing, step)
        self._taken += doing == "apply"


def _uncertain(look: Look) -> bool:
    """There is nothing to do now, and all the same nothing to be confirmed to a foreign system yet."""
    return look.resource.guard is not unguarded and look.plan.condition in ("waiting", "blocked")
