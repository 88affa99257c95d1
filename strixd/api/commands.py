"""What may be asked, and by whom: the one table of the methods of io.strixd, and what each does.

A method may `act` (run to its end, even when the peer has gone: an order is never half taken) and may `follow`
(replies that stop when the peer goes: follow.py). None of them knows of sockets.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from strixd import __version__
from strixd.api import sanity
from strixd.api.access import Need, Peer
from strixd.api.follow import (
    Reply,
    applied,
    public,
    report,
    told,
    until_answering,
    until_applied,
    until_drained,
    until_restarted,
    until_undrained,
    wait,
    watch,
)
from strixd.api.parameters import Again, Awaited, Counted, Nothing, Ordered
from strixd.api.progress import Progress
from strixd.api.wire import Fault, Message
from strixd.decode import Decoded, camel, decode
from strixd.engine.door import Door

_NEWEST: Final = 10  # unless a call asks for another number


@dataclass(frozen=True, slots=True)
class Command:
    """`word`: how strixd-cli spells what changes something. `act` gets the door, the parameters, and who asks with
    which command. `settle`: what a call that is not followed waits for before its reply. `more`: whether the method
    wants its calls with "more"."""

    need: Need
    takes: type = Nothing
    word: str = ""
    act: Callable[[Door, Any, str], Awaitable[Message]] | None = None
    settle: Callable[[Door], Awaitable[None]] | None = None
    follow: Callable[[Door, Any], AsyncIterator[Reply]] | None = None
    more: Literal["no", "may", "must"] = "no"

    def read(self, parameters: Mapping[str, object]) -> object:
        """Raises Fault."""
        decoded: Decoded[object] = decode(self.takes, parameters, key=camel)
        for problem in decoded.problems:
            raise Fault("InvalidParameter", parameter=str(problem.path[0]) if problem.path else "")
        return decoded.value

    def by(self, peer: Peer) -> str:
        """As the history and the journal have it: "uid 1000: apply"."""
        return f"uid {peer.uid}: {self.word}"


async def _version(_door: Door, _: Nothing, _by: str) -> Message:
    return {"version": __version__}


async def _status(door: Door, _: Nothing, _by: str) -> Message:
    return report(door)


async def _plan(door: Door, _: Nothing, _by: str) -> Message:
    return {"plans": public(await door.preview())}


async def _history(door: Door, counted: Counted, _by: str) -> Message:
    return {"changes": public(door.history(counted.count or _NEWEST))}


async def _incidents(door: Door, counted: Counted, _by: str) -> Message:
    return {"incidents": public(door.incidents(counted.count or _NEWEST))}


async def _apply(door: Door, _: Nothing, by: str) -> Message:
    await door.apply(by)
    return {}


async def _undo(door: Door, _: Nothing, by: str) -> Message:
    return {"change": public(await door.undo(by))}


async def _stop(door: Door, _: Nothing, by: str) -> Message:
    await door.stop(by)
    return {}


async def _drain(door: Door, _: Nothing, by: str) -> Message:
    await door.drain(by)
    return told(Progress("order", True, "drain"))


async def _undrain(door: Door, _: Nothing, by: str) -> Message:
    await door.undrain(by)
    return told(Progress("order", True, "undrain"))


async def _restart(door: Door, again: Again, by: str) -> Message:
    workload = again.workload or "vllm"
    await door.restart(workload, by)
    return told(Progress("order", True, f"restart {workload}"))


async def _pause(door: Door, _: Nothing, by: str) -> Message:
    await door.pause(by)
    return {}


async def _resume(door: Door, _: Nothing, by: str) -> Message:
    await door.resume(by)
    return {}


async def _update_image(door: Door, _: Nothing, by: str) -> Message:
    await door.update_image(by)
    return {}


async def _serve(door: Door, ordered: Ordered, by: str) -> Message:
    arguments = ordered.arguments or ()
    sanity.check(ordered.model, arguments)
    await door.serve(ordered.model, arguments, by=by)
    return told(Progress("order", True, ordered.model))


COMMANDS: Final[Mapping[str, Command]] = {
    "Version": Command("look", act=_version),
    "Status": Command("look", act=_status),
    "Watch": Command("look", follow=watch, more="must"),
    "Wait": Command("look", Awaited, follow=wait),
    "Plan": Command("look", act=_plan),
    "History": Command("look", Counted, act=_history),
    "Incidents": Command("look", Counted, act=_incidents),
    "Apply": Command("change", word="apply", act=_apply, settle=applied, follow=until_applied, more="may"),
    "Undo": Command("change", word="undo", act=_undo),
    "Serve": Command("change", Ordered, "serve", act=_serve, follow=until_answering, more="may"),
    "Stop": Command("change", word="stop", act=_stop),
    "Drain": Command("change", word="drain", act=_drain, follow=until_drained, more="may"),
    "Undrain": Command("change", word="undrain", act=_undrain, follow=until_undrained, more="may"),
    "Restart": Command("change", Again, "restart", act=_restart, follow=until_restarted, more="may"),
    "Pause": Command("change", word="pause", act=_pause),
    "Resume": Command("change", word="resume", act=_resume),
    "UpdateImage": Command("change", word="image update", act=_update_image),
}
