"""An engine that only remembers what it was asked and says what a test told it to say, and a thread that serves it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from strixd.api.access import Access
from strixd.api.connection import Limits
from strixd.api.listen import bind
from strixd.api.server import Server
from strixd.engine.status import (
    ChangeView,
    Incident,
    MemberView,
    ModelView,
    Moment,
    PlanView,
    ResourceView,
    Status,
    StepView,
)
from strixd.errors import NothingToUndo, StrixdError
from strixd.orders import Workload
from strixd.plan import Condition

NOON = 1_764_417_600.0  # 2025-11-29 12:00:00 UTC
MOVE = StepView("move enp1s0 from zone public to trusted", "move enp1s0 from zone trusted to public", "now")
MTU = StepView("set the MTU of enp1s0 to 9000", "set the MTU of enp1s0 to 1500", "now")


def resource(name: str, condition: Condition = "ok", why: str = "", *facts: str, hint: str = "") -> ResourceView:
    return ResourceView(name, condition, why, hint, facts, NOON - 200, NOON - 1)


def status(*resources: ResourceView, passes: int = 7) -> Status:
    """A head of two nodes that serves "tiny"; all resources ok but those given."""
    usual = {name: resource(name, "ok", "", f"fact of {name}") for name in LAYERS}
    usual |= {each.name: each for each in resources}
    return Status(
        version="0.1.0",
        node="halo1",
        role="head",
        cluster="halo",
        head="halo1",
        head_address="192.168.100.1",
        phase="ready",
        since=NOON - 200,
        at=NOON - 1,
        passes=passes,
        ordered=float(passes),
        problem="",
        resources=tuple(usual.values()),
        members=(
            MemberView("halo1", "head", "192.168.100.1", joined=True, gpus=1),
            MemberView("halo2", "worker", "192.168.100.2", joined=False, gpus=0, note="another cluster key"),
        ),
        model=ModelView("tiny", 2, "http://127.0.0.1:8000", NOON - 10, 0.4, NOON - 190),
        incident=Incident(
            "3", "vllm", "killed by signal 9", NOON - 900, NOON - 860, (Moment("noticed", NOON - 899.8),)
        ),
    )


def change(**fields: Any) -> ChangeView:
    """Two steps of uid 1000's apply, done."""
    usual = ChangeView(
        id="c1",
        began=NOON - 62.5,
        ended=NOON - 60,
        by="uid 1000: apply",
        outcome="done",
        why="",
        resources=("firewall", "network"),
        steps=(MOVE, MTU),
        taken=2,
    )
    return replace(usual, **fields)


LAYERS = ("cmdline", "network", "firewall", "image", "ray", "vllm")


class RecordedDoor:
    """A Door. `asked` has every order, `by` who gave it; `refusal` is raised by the next ones; `bug` by status()."""

    def __init__(self) -> None:
        self.now = status()
        self.number = 1
        self._ordered = 7.0  # as pass 7 says
        self.asked: list[tuple[object, ...]] = []
        self.refusal: StrixdError | None = None
        self.bug: Exception | None = None
        self.watchers = 0
        self.by: list[str] = []
        self.after_serve: list[Status] = []
        self.after_apply: list[Status] = []
        self.changes: list[ChangeView] = []  # the newest first
        self.past: list[Incident] = []  # the newest first
        self._changed = asyncio.Condition()

    def status(self) -> Status:
        if self.bug is not None:
            raise self.bug
        return self.now

    async def say(self, status: Status) -> None:
        self.now = status
        self.number += 1
        async with self._changed:
            self._changed.notify_all()

    async def changed(self, seen: int) -> int:
        self.watchers += 1
        try:
            async with self._changed:
                await self._changed.wait_for(lambda: self.number != seen)
        finally:
            self.watchers -= 1
        return self.number

    def ordered(self) -> float:
        return self._ordered

    async def preview(self) -> tuple[PlanView, ...]:
        self._note("preview")
        return (
            PlanView("network", (MOVE,), "ok", ""),
            PlanView("image", (), "blocked", "no route to docker.io"),
            PlanView("ray", (), "ok", ""),
        )

    def history(self, count: int) -> tuple[ChangeView, ...]:
        return tuple(self.changes[:count])

    def incidents(self, count: int) -> tuple[Incident, ...]:
        return tuple(self.past[:count])

    async def apply(self, by: str) -> None:
        """The states of `after_apply` follow, the last of which is of a pass that knew of it."""
        self._note("apply", by=by)
        self._ordered += 1
        self._coming = asyncio.create_task(self._after_apply(self._ordered))

    async def _after_apply(self, ordered: float) -> None:
        *before, last = self.after_apply or [self.now]
        for each in before:
            await asyncio.sleep(0.05)
            await self.say(replace(each, ordered=0.0))
        await asyncio.sleep(0.05)
        await self.say(replace(last, ordered=ordered))

    async def undo(self, by: str) -> ChangeView:
        self._note("undo", by=by)
        for number, each in enumerate(self.changes):
            if each.outcome == "done":
                self.changes[number] = replace(each, outcome="undone", why="c2")
                return self.changes[number]
        raise NothingToUndo("Cannot undo: nothing that was done is left to take back", hint="strixd-cli history")

    async def serve(self, model: str, arguments: tuple[str, ...], *, by: str) -> None:
        self._note("serve", model, *arguments, by=by)
        self._order()

    async def _after_serve(self) -> None:
        for number, each in enumerate(self.after_serve, 100):
            await asyncio.sleep(0.05)
            await self.say(replace(each, passes=number, ordered=self._ordered))

    async def stop(self, by: str) -> None:
        self._note("stop", by=by)

    async def drain(self, by: str) -> None:
        self._note("drain", by=by)
        self._order()

    async def undrain(self, by: str) -> None:
        self._note("undrain", by=by)
        self._order()

    async def restart(self, workload: Workload, by: str) -> None:
        self._note("restart", workload, by=by)
        self._order()

    def _order(self) -> None:
        self._ordered = 9.0  # as pass 9 says, not 7, which it says at first, nor any other
        self._coming = asyncio.create_task(self._after_serve())

    async def pause(self, by: str) -> None:
        self._note("pause", by=by)

    async def resume(self, by: str) -> None:
        self._note("resume", by=by)

    async def update_image(self, by: str) -> None:
        self._note("update_image", by=by)

    def _note(self, *what: object, by: str = "") -> None:
        self.asked.append(what)
        self.by += [by] if by else []
        if self.refusal is not None:
            raise self.refusal


class Served:
    """A door served by a thread of its own, for clients that are other processes."""

    def __init__(self, path: Path, door: RecordedDoor) -> None:
        self.path = path
        self.door = door
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None

    def run(self, ready: threading.Event) -> None:
        self._loop.run_until_complete(self._serve(ready))

    async def _serve(self, ready: threading.Event) -> None:
        with bind(str(self.path)) as listener:
            self._task = asyncio.current_task()
            ready.set()
            with contextlib.suppress(asyncio.CancelledError):
                await Server(self.door, listener, access=Access(), limits=Limits()).run()

    def say(self, status: Status) -> None:
        asyncio.run_coroutine_threadsafe(self.door.say(status), self._loop).result(5)

    def stop(self) -> None:
        assert self._task is not None
        self._loop.call_soon_threadsafe(self._task.cancel)


@contextlib.contextmanager
def served(path: Path, door: RecordedDoor) -> Iterator[Served]:
    server, ready = Served(path, door), threading.Event()
    thread = threading.Thread(target=server.run, args=(ready,))
    thread.start()
    assert ready.wait(5)
    try:
        yield server
    finally:
        server.stop()
        thread.join(5)
