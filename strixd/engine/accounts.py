"""Keeps account of incidents: begun when an answering model no longer answers although nobody asked for a change."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Mapping
from dataclasses import replace

from strixd import messages
from strixd.engine import incident, memory
from strixd.engine.status import Incident, ResourceView
from strixd.engine.wish import Wish
from strixd.errors import StrixdError
from strixd.plan import Plan
from strixd.ports import Host

log = logging.getLogger("strixd")


class Incidents:
    """`started`: when the model was last started."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._now: Incident | None = None
        self._past: tuple[Incident, ...] = ()
        self._answered_under: object = None
        self._failed: tuple[str, str] = ("", "")
        self._guessed = False
        self.started = 0.0

    @property
    def last(self) -> Incident | None:
        return self._now or (self._past[-1] if self._past else None)

    @property
    def newest_first(self) -> tuple[Incident, ...]:
        """All that are kept, the open one among them."""
        return (*((self._now,) if self._now else ()), *reversed(self._past))

    async def load(self) -> None:
        self._past = await memory.load_incidents(self._host.files)

    def look_again(self) -> None:
        """A pass begins."""
        self._failed = ("", "")

    def suspect(self, plan: Plan | None) -> None:
        """The first thing on the way to an answer that is not as it should be is the cause."""
        if plan and plan.condition in ("blocked", "held", "stuck") and plan.resource in incident.PATH:
            self._failed = self._failed if self._failed[0] else (plan.resource, plan.why)

    async def account(self, wish: Wish, views: Mapping[str, ResourceView], at: float) -> None:
        """A pass that began at `at` is over."""
        vllm, under = views.get("vllm"), wish.basis()
        if wish.orders.drained:
            self._now = self._answered_under = None
        elif vllm is not None and vllm.condition == "ok" and wish.orders.model:
            self._answered_under = under
            await self._close()
        elif under != self._answered_under:
            self._now = None
        elif self._now is None:
            self._begin(views, at)
        elif self._failed[0] and self._guessed:
            resource, cause = self._failed
            self._now, self._guessed = replace(self._now, resource=resource, cause=cause), False
        self._now = self._now and incident.started(self._now, self.started)

    def _begin(self, views: Mapping[str, ResourceView], at: float) -> None:
        """Seen in the middle of its end, a unit does not tell yet how it ended: then the cause is a guess."""
        self._guessed = not self._failed[0]
        self._now = incident.begin(views, *self._failed, now=at)
        if begun := self._now:
            extra = messages.fields("INCIDENT_BEGAN", incident=begun.id)
            log.warning("Incident %s: %s: %s", begun.id, begun.resource, begun.cause, extra=extra)

    async def _close(self) -> None:
        if self._now is None:
            return
        over = incident.end(self._now, self._host.now())
        self._now, self._past = None, (*self._past, over)[-memory.KEPT :]
        text = "Incident %s is over: the model answers again after %.1f s"
        log.info(text, over.id, over.ended - over.began, extra=messages.fields("INCIDENT_ENDED", incident=over.id))
        await on_disk(memory.save_incidents(self._host.files, self._past))


async def on_disk(saving: Awaitable[None]) -> None:
    """What the daemon can go on without: a full disk is said, and ends nothing."""
    try:
        await saving
    except StrixdError as failure:
        log.warning("%s", failure, extra=messages.fields("CONDITION", code=failure.code))
