"""What may be asked, and by whom: the one table of the methods of io.strixd, and what each does.

A method may `act` (run to its end, even when the peer has gone: an order is never half taken) and may `follow`
(replies that stop when the peer goes). None of them knows of sockets.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Annotated, Any, Final, Literal

from strixd import __version__
from strixd.api.access import Need
from strixd.api.progress import Journey, Progress, advance
from strixd.api.wire import Fault, Message
from strixd.config.checks import vllm_argument
from strixd.decode import Decoded, camel, decode
from strixd.engine.door import Door
from strixd.engine.incident import PATH
from strixd.engine.status import Phase, Status
from strixd.errors import Refused, TimedOut

_LOOK_AGAIN: Final = 1.0  # seconds: patience has to end without a change too
_MOST_ARGUMENTS: Final = 256
_LONGEST_ARGUMENT: Final = 4096
_LONGEST_WAIT: Final = 30 * 86400

Reply = tuple[Message, bool]  # with whether more follow


@dataclass(frozen=True, slots=True)
class Nothing:
    """No parameters."""


@dataclass(frozen=True, slots=True)
class Ordered:
    model: str
    arguments: tuple[str, ...] | None = None


def _waitable(seconds: int) -> str:
    """A JSON number may have thousands of digits, of which no clock is made."""
    return "" if 0 <= seconds <= _LONGEST_WAIT else f"must be 0 to {_LONGEST_WAIT} seconds"


@dataclass(frozen=True, slots=True)
class Awaited:
    phase: Phase
    timeout: Annotated[int, _waitable] | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """`more`: whether the method wants its calls with "more"."""

    need: Need
    takes: type = Nothing
    act: Callable[[Door, Any], Awaitable[Message]] | None = None
    follow: Callable[[Door, Any], AsyncIterator[Reply]] | None = None
    more: Literal["no", "may", "must"] = "no"

    def read(self, parameters: Mapping[str, object]) -> object:
        """Raises Fault."""
        decoded: Decoded[object] = decode(self.takes, parameters, key=camel)
        for problem in decoded.problems:
            raise Fault("InvalidParameter", parameter=str(problem.path[0]) if problem.path else "")
        return decoded.value


def public(value: object) -> Any:
    """A view as JSON has it; names in the custom of Varlink."""
    if is_dataclass(value):
        return {camel(each.name): public(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, tuple):
        return [public(item) for item in value]
    return value


def _report(door: Door) -> Message:
    return {"status": public(door.status())}


async def _version(_door: Door, _: Nothing) -> Message:
    return {"version": __version__}


async def _status(door: Door, _: Nothing) -> Message:
    return _report(door)


async def _plan(door: Door, _: Nothing) -> Message:
    return {"plans": public(await door.preview())}


async def _apply(door: Door, _: Nothing) -> Message:
    await door.apply()
    return {}


async def _stop(door: Door, _: Nothing) -> Message:
    await door.stop()
    return {}


async def _pause(door: Door, _: Nothing) -> Message:
    await door.pause()
    return {}


async def _resume(door: Door, _: Nothing) -> Message:
    await door.resume()
    return {}


async def _update_image(door: Door, _: Nothing) -> Message:
    await door.update_image()
    return {}


async def _serve(door: Door, ordered: Ordered) -> Message:
    arguments = ordered.arguments or ()
    _sane(ordered.model, arguments)
    await door.serve(ordered.model, arguments)
    return _told(Progress("order", True, ordered.model))


def _sane(model: str, arguments: tuple[str, ...]) -> None:
    """What no start command could carry. Whether vLLM likes it, vLLM says."""
    if not model or model.startswith("-") or not model.isprintable() or " " in model:
        raise Refused(f"Cannot serve {model!r}: that is no model's name", hint="strixd-cli serve Qwen/Qwen3-0.6B")
    if len(arguments) > _MOST_ARGUMENTS or any(len(each) > _LONGEST_ARGUMENT for each in (model, *arguments)):
        raise Refused(f"Cannot serve: more than {_MOST_ARGUMENTS} arguments, or one over {_LONGEST_ARGUMENT} letters")
    for argument in arguments:
        if not argument.isprintable():
            raise Refused(f"Cannot serve {model}: the argument {argument!r} has characters that do not print")
        if problem := argument and vllm_argument(argument):
            hint = "strixd-cli config show    tells what is set; sudoedit /etc/strixd/cluster.toml && strixd-cli apply"
            raise Refused(f"Cannot serve {model}: the argument {problem}", hint=hint)


def _told(progress: Progress) -> Message:
    return {"stage": progress.stage, "done": progress.done, "text": progress.text}


async def _until_answering(door: Door, ordered: Ordered) -> AsyncIterator[Reply]:
    journey = Journey(ordered.model, door.ordered())
    async for status in _states(door):
        journey, news = advance(journey, status, time.monotonic())
        for progress in news:
            yield _told(progress), progress.stage != "completion" or not progress.done
        if journey.arrived:
            return


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


async def _watch(door: Door, _: Nothing) -> AsyncIterator[Reply]:
    seen = 0
    while True:
        seen = await door.changed(seen)
        yield _report(door), True


async def _wait(door: Door, awaited: Awaited) -> AsyncIterator[Reply]:
    seen = 0
    try:
        async with asyncio.timeout(awaited.timeout):
            while door.status().phase != awaited.phase or door.status().ordered < door.ordered():
                seen = await door.changed(seen)
    except TimeoutError:
        raise TimedOut(_late(door.status(), awaited), hint="strixd-cli status") from None
    yield _report(door), False


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


COMMANDS: Final[Mapping[str, Command]] = {
    "Version": Command("look", act=_version),
    "Status": Command("look", act=_status),
    "Watch": Command("look", follow=_watch, more="must"),
    "Wait": Command("look", Awaited, follow=_wait),
    "Plan": Command("look", act=_plan),
    "Apply": Command("change", act=_apply),
    "Serve": Command("change", Ordered, act=_serve, follow=_until_answering, more="may"),
    "Stop": Command("change", act=_stop),
    "Pause": Command("change", act=_pause),
    "Resume": Command("change", act=_resume),
    "UpdateImage": Command("change", act=_update_image),
}
