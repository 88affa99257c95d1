"""Keeps account of incidents: begun when an answering model no longer answers although nobody asked for a change.

What is kept on disk outlives a restart of strixd and of the host: under which wish the model last answered, in which
boot and by which run, and an incident that is not over. The times of that one go along when the clock is set.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from math import isinf
from statistics import median

from strixd import messages
from strixd.elapsed import elapsed, later
from strixd.engine import incident, memory
from strixd.engine.incident import HOST, Blame
from strixd.engine.memory import Answered, Book
from strixd.engine.status import Incident, Moment, ResourceView
from strixd.engine.wish import Wish
from strixd.plan import Plan, Step
from strixd.ports import Host
from strixd.resources import vllm
from strixd.workload import Start

log = logging.getLogger("strixd")

STARTS = 10  # of a model that are remembered
STEP = 1.0  # seconds by which a clock that was set differs at least


class Incidents:
    """Fed by the one loop: what each pass sees and does, and its end."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._book = self._kept = Book()
        self._suspects: dict[str, Blame] = {}  # by resource, since the last good answer: it may come for a while yet
        self._suspected = 0.0  # when the newest came
        self._echoes: set[str] = set()
        self._guessed = False
        self._amiss = False  # this daemon has seen that the model did not answer
        self._saving = memory.Saving()
        self._zero = host.now() - host.steady()
        self._moments: tuple[Moment, ...] = ()

    @property
    def last(self) -> Incident | None:
        return self._book.now or (self._book.past[-1] if self._book.past else None)

    @property
    def newest_first(self) -> tuple[Incident, ...]:
        """All that are kept, the open one before the others."""
        return (*((self._book.now,) if self._book.now else ()), *reversed(self._book.past))

    async def load(self) -> None:
        self._book = self._kept = await memory.load_book(self._host.files)
        if self._book.now and isinf(elapsed(latest := incident.last(self._book.now), self._host.now())):
            self._move(self._host.now() - latest)

    def look_again(self) -> None:
        """A pass begins."""
        self._moments = ()
        self._echoes.clear()

    def judged(self, plan: Plan, wish: Wish) -> Plan:
        """Of a workload, and suspected."""
        if plan.hopeless and wish.fits() != self._book.answered.fits:
            plan = replace(plan, steps=(), condition="stuck")
        self.suspect(plan)
        return plan

    def suspect(self, plan: Plan | None) -> None:
        """The first thing on the way to an answer that is not as it should be is the cause."""
        if plan is None:
            return
        (self._echoes.add if plan.echo else self._echoes.discard)(plan.resource)
        if plan.condition in ("blocked", "held", "stuck") and plan.resource not in self._suspects:
            self._suspects[plan.resource] = Blame(plan.resource, plan.why)
            self._suspected = self._host.now()

    def took(self, name: str, step: Step) -> None:
        """A step is about to be taken."""
        if name not in ("ray", "vllm"):
            return
        now = self._host.now()
        self._moments += (Moment("decided", now),)
        if isinstance(step, Start) and name == "vllm":
            self._moments += (Moment("stopped", now), Moment("started", now))

    async def account(self, wish: Wish, views: Mapping[str, ResourceView], seen: object, at: float) -> None:
        """A pass that began at `at` is over. `seen`: the last observation of the model server."""
        view, run = views.get("vllm"), seen if isinstance(seen, vllm.Observed) else None
        if view is None or run is None:
            return
        self._follow_clock()
        self._amiss = self._amiss or run.unit.active != "active" or bool(run.answer.failed_at)
        if view.condition == "ok" and wish.orders.served:
            self._answers(wish, run)
        elif wish.served() != self._book.answered.served:
            self._asked_otherwise()
        elif self._book.now or (wish.basis() == self._book.answered.basis and not self._unasked(run)):
            self._suffers(views, run, at)
        book = self._book  # until it is on disk: what is open there would be open again for the next daemon
        if book != self._kept and await self._saving(memory.save_book(self._host.files, book)):
            self._kept = book

    def _follow_clock(self) -> None:
        zero = self._host.now() - self._host.steady()
        if abs(zero - self._zero) >= STEP:
            self._move(zero - self._zero)
        self._zero = zero

    def _move(self, by: float) -> None:
        if self._book.now:
            self._book = replace(self._book, now=incident.moved(self._book.now, by))

    def usual(self, model: str, digest: str) -> float:
        """Seconds that a start of this model with this image takes, 0 when none is known."""
        loads = self._book.loads.get(f"{model} {digest}", ())
        return median(loads) if loads else 0.0

    def _answers(self, wish: Wish, run: vllm.Observed) -> None:
        if later(run.answer.at, self._suspected, self._host.now()):
            self._suspects.clear()
        if self._amiss and run.unit.invocation != self._book.answered.run:
            key, seconds = f"{wish.orders.model} {run.image.digest}", max(run.answer.at - run.unit.since, 0.0)
            last = (*self._book.loads.get(key, ()), round(seconds, 1))[-STARTS:]
            self._book = replace(self._book, loads={**self._book.loads, key: last})
        boot, invocation = self._host.identity.boot, run.unit.invocation
        answered = Answered(wish.served(), wish.basis(), boot, invocation, wish.fits())
        self._book = replace(self._book, answered=answered)
        if self._book.now and self._amiss:
            now = incident.mark(self._marked(self._book.now, run), Moment("serving", run.answer.at))
            self._book = replace(self._book, now=now)
            if incident.settled(now, self._host.now()):
                self._close(now, "serving", run.answer.at)
        elif self._book.now:  # an earlier daemon's, which could not write that it was over
            usual = self.usual(wish.orders.model, run.image.digest)
            self._close(self._book.now, "serving", min(run.unit.since + usual, run.answer.at))

    def _asked_otherwise(self) -> None:
        """Somebody wants something else now: what comes next is no fault."""
        self._book = replace(self._book, answered=Answered(fits=self._book.answered.fits))
        if self._book.now:
            self._close(self._book.now, "ordered", self._host.now())

    def _unasked(self, run: vllm.Observed) -> bool:
        """The run that answered is still there and nobody has asked it yet, since strixd has just started."""
        same = run.unit.invocation == self._book.answered.run and run.unit.active == "active"
        return same and not run.answer.failed_at

    def _suffers(self, views: Mapping[str, ResourceView], run: vllm.Observed, at: float) -> None:
        now = incident.relapsed(self._book.now) if self._book.now else self._begin(views, run, at)
        blame = incident.lowest(views, self._echoes, self._suspects)
        if self._guessed and blame and blame.sure and blame.resource == now.resource:
            now, self._guessed = replace(now, resource=blame.resource, cause=blame.cause), False
        elif blame:
            now = incident.blamed(now, blame, orphaned="ray" in self._suspects)
        for moment in self._moments:
            now = incident.mark(now, moment)
        self._book = replace(self._book, now=self._marked(now, run))

    def _marked(self, now: Incident, run: vllm.Observed) -> Incident:
        heard = run.answer.heard_at
        return now if isinf(elapsed(heard, self._host.now())) else incident.mark(now, Moment("loaded", heard))

    def _begin(self, views: Mapping[str, ResourceView], run: vllm.Observed, at: float) -> Incident:
        """Seen in the middle of its end, a unit does not tell yet how it ended: then the cause is a guess."""
        failed = incident.lowest({}, set(), self._suspects)
        found = failed or incident.lowest(views, self._echoes, self._suspects)
        blame = found or Blame("vllm", "it stopped answering", sure=False)
        if self._book.answered.boot != self._host.identity.boot:
            blame = Blame(HOST, "this node has booted since the model last answered")
        self._guessed = not blame.sure
        begun = incident.begin(blame, min(at, run.answer.failing or at, self._host.now()))
        extra = messages.fields("INCIDENT_BEGAN", incident=begun.id)
        log.warning("Incident %s: %s: %s", begun.id, begun.resource, begun.cause, extra=extra)
        return begun

    def _close(self, now: Incident, how: str, at: float) -> None:
        """A model that answered before somebody wanted something else was serving again."""
        how = "serving" if (served := incident.at(now, "serving")) else how
        over = incident.end(now, served or min(max(at, incident.last(now)), self._host.now()), how=how)
        self._book = replace(self._book, now=None, past=(*self._book.past, over)[-memory.KEPT :])
        what = "the model answers again" if how == "serving" else "something else is wanted now"
        text = "Incident %s is over: %s after %.1f s (%s: %s)"
        extra = messages.fields("INCIDENT_ENDED", incident=over.id)
        log.info(text, over.id, what, over.ended - over.began, over.resource, over.cause, extra=extra)
