"""The door that commands come through: an order is recorded, durably, and the loop is woken. See door.py."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from strixd import messages
from strixd.engine import memory, record
from strixd.engine.preview import preview
from strixd.engine.reconcile import Reconciler
from strixd.engine.record import Change
from strixd.engine.settings import TOGETHER
from strixd.engine.status import ChangeView, Incident, PlanView, Status
from strixd.errors import NothingToUndo, Refused, Rejected
from strixd.orders import Orders, Workload
from strixd.ports import Files
from strixd.resources import ray, vllm

log = logging.getLogger("strixd")

UNITS: Mapping[Workload, str] = {"ray": ray.NAME, "vllm": vllm.NAME}


class Engine:
    """Implements door.Door over one Reconciler."""

    def __init__(self, loop: Reconciler) -> None:
        self._loop = loop
        self._writing = asyncio.Lock()

    def status(self) -> Status:
        return self._loop.status()

    async def changed(self, seen: int) -> int:
        return await self._loop.changed(seen)

    def ordered(self) -> float:
        return self._orders.at

    async def preview(self) -> tuple[PlanView, ...]:
        return await preview(self._loop.host, self._loop.wish, self._loop.seen)

    async def apply(self, by: str) -> None:
        self.reread()
        self._loop.settings.cause = by  # the pass may begin before the order is on disk
        at = self._now()
        await self._order("apply", by, lambda now: replace(now, at=at, applied=at, released=(), undo=""))

    def history(self, count: int) -> tuple[ChangeView, ...]:
        changes = reversed(self._loop.settings.history[-count:] if count > 0 else ())
        return tuple(change.view(taken=len(change.parts)) for change in changes)

    def incidents(self, count: int) -> tuple[Incident, ...]:
        return self._loop.incidents()[: max(count, 0)]

    async def undo(self, by: str) -> ChangeView:
        """The order comes first, so that a crash in between ends in what was asked for; it is taken back when it
        cannot be done."""
        before, change = self._orders, self._last_done()

        def undoing(now: Orders) -> Orders:
            released = tuple(sorted({*now.released, *_with_its_zone(change.resources)}))
            return replace(now, released=released, undo=change.id, at=self._now())

        await self._order(f"undo {change.id}", by, undoing)
        await self._loop.after_pass()
        now = next((each for each in self._loop.settings.history if each.id == change.id), change)
        if now.outcome != "undone":
            last = self._loop.settings.history[-1]
            not_undoing = partial(_not_undoing, change=change.id, released=before.released)
            await self._order(f"no undo of {change.id}", by, not_undoing)
            raise Rejected(f"Cannot undo change {change.id}: {last.why}", hint="strixd-cli history; strixd-cli status")
        return now.view(taken=len(now.parts))

    def _last_done(self) -> Change:
        """The newest change that is in force. One that takes another back is none, nor is a repair, which would only
        bring the damage back."""
        self._not_paused("undo")
        history = self._loop.settings.history
        for number, change in reversed(tuple(enumerate(history))):
            if change.outcome == "done" and not record.repairs(change, history[:number]) and change.undo():
                return change
        raise NothingToUndo("Cannot undo: no change that is done is left to be undone", hint="strixd-cli history")

    def reread(self) -> None:
        """Raises ConfigError, after noting it in the status: the last good file stays in force."""
        wish = self._loop.wish
        try:
            self._loop.wish = replace(wish, file=wish.read(), problem="")
        except Refused as problem:
            self._loop.wish = replace(wish, problem=str(problem))
            raise
        finally:
            self._loop.wake("cluster.toml was read again")

    async def serve(self, model: str, arguments: tuple[str, ...], *, by: str) -> None:
        self._only_on_head()
        self._not_drained(f"serve {model}")
        at = self._now()
        await self._order(f"serve {model}", by, lambda now: replace(now, model=model, arguments=arguments, at=at))

    async def stop(self, by: str) -> None:
        self._only_on_head()
        await self._order("stop", by, lambda now: replace(now, model="", arguments=(), at=self._now()))

    async def drain(self, by: str) -> None:
        self._only_on_head()
        self._not_paused("drain")
        await self._order("drain", by, lambda now: replace(now, drained=True, at=self._now()))

    async def undrain(self, by: str) -> None:
        self._only_on_head()
        self._not_paused("undrain")
        await self._order("undrain", by, lambda now: replace(now, drained=False, at=self._now()))

    async def restart(self, workload: Workload, by: str) -> None:
        if workload == "vllm":
            self._only_on_head()
            self._not_drained("restart vllm")
            if not self._orders.model:
                raise Refused("Cannot restart vllm: no model is ordered", hint="strixd-cli serve MODEL")
        self._not_paused("restart")
        unit = await self._loop.host.units.read(f"{UNITS[workload]}.service")
        again = partial(_again, workload=workload, run=unit.invocation)
        await self._order(f"restart {workload}", by, lambda now: replace(again(now), at=self._now()))

    async def pause(self, by: str) -> None:
        await self._order("pause", by, lambda now: replace(now, paused=True))

    async def resume(self, by: str) -> None:
        await self._order("resume", by, lambda now: replace(now, paused=False, at=self._now()))

    async def update_image(self, by: str) -> None:
        await self._order("image update", by, lambda now: replace(now, update_after=self._now(), at=self._now()))

    @property
    def _orders(self) -> Orders:
        return self._loop.wish.orders

    def _now(self) -> float:
        return self._loop.host.now()

    def _only_on_head(self) -> None:
        file = self._loop.wish.file
        if file.node.role != "head":
            head = file.config.head
            where = f"{head.name} ({head.ip.ip})"
            raise Refused(
                f"Cannot do that on {file.node.name}: it is a worker", hint=f"run the command on the head, {where}"
            )

    def _not_paused(self, word: str) -> None:
        if self._orders.paused:
            raise Refused(f"Cannot {word}: strixd is paused", hint=f"strixd-cli resume, then strixd-cli {word}")

    def _not_drained(self, what: str) -> None:
        if self._orders.drained:
            raise Refused(f"Cannot {what}: the cluster is drained", hint="strixd-cli undrain, then the same again")

    async def _order(self, words: str, by: str, change: Callable[[Orders], Orders]) -> None:
        """On disk before it counts. `by` begins with who asks. What is changed is what stands when the one before is on
        disk: of two orders at the same time none is lost."""
        async with self._writing:
            orders = change(self._orders)
            await memory.save_orders(self._files, orders)
            self._loop.wish = replace(self._loop.wish, orders=orders)
        log.info("Ordered: %s (%s)", words, by.partition(":")[0], extra=messages.fields("ORDER"))
        self._loop.lift()
        self._loop.settings.cause = by
        self._loop.wake(words)

    @property
    def _files(self) -> Files:
        return self._loop.host.files


def _not_undoing(now: Orders, *, change: str, released: tuple[str, ...]) -> Orders:
    """Unless something else has been ordered meanwhile."""
    return replace(now, released=released, undo="") if now.undo == change else now


def _again(now: Orders, *, workload: Workload, run: str) -> Orders:
    return replace(now, restart_ray=run) if workload == "ray" else replace(now, restart_vllm=run)


def _with_its_zone(resources: tuple[str, ...]) -> tuple[str, ...]:
    """What can only be left alone together: with the profile of the link goes its zone."""
    return (*resources, *TOGETHER) if TOGETHER & set(resources) else resources
