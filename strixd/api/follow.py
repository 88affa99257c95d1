"""Replies that go on: Watch, Wait, and what comes of Serve and Apply. They end when the peer goes: an order stays."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import fields, is_dataclass
from typing import Any, Final

from strixd.api import applying
from strixd.api.applying import Told
from strixd.api.parameters import Again, Awaited, Nothing, Ordered
from strixd.api.progress import Journey, Progress, advance
from strixd.api.wire import Message
from strixd.decode import camel
from strixd.elapsed import later
from strixd.engine.door import Door
from strixd.engine.incident import PATH
from strixd.engine.status import ModelView, Status
from strixd.errors import TimedOut

_LOOK_AGAIN: Final = 1.0  # seconds: patience has to end without a change too
_CHANGES: Final = 10  # more than one apply makes

Reply = tuple[Message, bool]  # with whether more follow


def public(value: object) -> Any:
    """A view as JSON has it; names in the custom of Varlink."""
    if is_dataclass(value):
        return {camel(each.name): public(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, tuple):
        return [public(item) for item in value]
    return value


def report(door: Door) -> Message:
    return {"status": public(door.status())}


def told(progress: Progress | Told) -> Message:
    return {"stage": progress.stage, "done": progress.done, "text": progress.text}


async def until_answering(door: Door, ordered: Ordered) -> AsyncIterator[Reply]:
    async for reply in _travel(door, Journey(f"serve {ordered.model}", ordered.model)):
        yield reply


async def until_drained(door: Door, _: Nothing) -> AsyncIterator[Reply]:
    async for reply in _travel(door, Journey("drain", goal="drain")):
        yield reply


async def until_undrained(door: Door, _: Nothing) -> AsyncIterator[Reply]:
    async for reply in _travel(door, _way_back("undrain", door.status().model)):
        yield reply


async def until_restarted(door: Door, again: Again) -> AsyncIterator[Reply]:
    status, errand = door.status(), f"restart {again.workload or 'vllm'}"
    async for reply in _travel(door, _way_back(errand, None if status.drained else status.model)):
        yield reply


def _way_back(errand: str, model: ModelView | None) -> Journey:
    """Until the model answers again; where none is to be served, until Ray is as it should be."""
    return Journey(errand, model.name, "completion") if model else Journey(errand, goal="ray")


async def _travel(door: Door, journey: Journey) -> AsyncIterator[Reply]:
    async for status in _since_order(door):
        journey, news = advance(journey, status, time.monotonic())
        for progress in news:
            yield told(progress), progress.stage != journey.goal or not progress.done
        if journey.arrived:
            return


async def until_applied(door: Door, _: Nothing) -> AsyncIterator[Reply]:
    """The order is recorded already. Of a change that began before it only the steps are told, not the outcome."""
    since, heard = door.ordered(), applying.Heard()
    async for status in _states(door):
        heard, news = applying.advance(heard, status.change)
        for each in news:
            yield told(each), True
        if _knows_all(door, status):
            break
    now, newest = door.status().at, reversed(door.history(_CHANGES))
    changes = tuple(change for change in newest if not later(since, change.began, now))
    for each in applying.end(heard, door.status(), changes):
        yield told(each), each.stage != "end"


async def applied(door: Door) -> None:
    """Returns when a pass is complete that knew the newest order."""
    seen = 0
    while not _knows_all(door, door.status()):
        seen = await door.changed(seen)


def _knows_all(door: Door, status: Status) -> bool:
    return status.ordered == door.ordered() and status.change is None


async def _since_order(door: Door) -> AsyncIterator[Status]:
    """Those that know the newest order of now, or a later one: from the first that names this or the newest of then."""
    ordered, known = door.ordered(), False
    async for status in _states(door):
        known = known or status.ordered in (ordered, door.ordered())
        if known:
            yield status


async def _states(door: Door) -> AsyncIterator[Status]:
    """The status now, at every change, and every second."""
    seen = 0
    while True:
        try:
            async with asyncio.timeout(_LOOK_AGAIN):
                seen = await door.changed(seen)
        except TimeoutError:
            pass
        yield door.status()


async def watch(door: Door, _: Nothing) -> AsyncIterator[Reply]:
    seen = 0
    while True:
        seen = await door.changed(seen)
        yield report(door), True


async def wait(door: Door, awaited: Awaited) -> AsyncIterator[Reply]:
    seen = 0
    try:
        async with asyncio.timeout(awaited.timeout):
            while door.status().phase != awaited.phase or door.status().ordered != door.ordered():
                seen = await door.changed(seen)
    except TimeoutError:
        raise TimedOut(_late(door.status(), awaited), hint="strixd-cli status") from None
    yield report(door), False


def _late(status: Status, awaited: Awaited) -> str:
    on_the_way = [each for each in status.resources if each.name in PATH]  # the others change no phase
    missing = next((each for each in on_the_way if each.condition != "ok"), None)
    if status.phase == "paused":
        return f"{_not_yet(status, awaited)}; it waits for strixd-cli resume"
    what = f"{missing.name} is {missing.condition}: {missing.why}" if missing else "nothing that it knows of"
    return f"{_not_yet(status, awaited)}; it waits for {what}"


def _not_yet(status: Status, awaited: Awaited) -> str:
    where = status.node or "this node"
    return f"Cannot wait longer: {where} is {status.phase} after {awaited.timeout} s, not {awaited.phase}"
