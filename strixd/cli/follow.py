"""watch and wait: the status as it changes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

from strixd.api import wire
from strixd.cli import client, terminal
from strixd.cli.parse import Asked
from strixd.cli.screen import LEFT_ALONE, View, changing, clock, printable, screen
from strixd.cli.terminal import say
from strixd.errors import Refused

LONGEST_WAIT = 30 * 86400  # seconds; the daemon takes no more
_CLEAR = "\x1b[H\x1b[2J"


def watch(asked: Asked) -> int:
    before: View | None = None
    for reply in client.stream(asked.socket, "Watch"):
        if reply is not None:
            status = _status(reply)
            _show(before, status)
            before = status
        elif before is not None and terminal.is_terminal():
            _show(before, before)  # the seconds go on
    return 0


def _status(reply: wire.Message) -> View:
    status = reply["status"]
    assert isinstance(status, dict)
    return status


def _show(before: View | None, status: View) -> None:
    now = time.time()
    if terminal.is_terminal():
        lines = screen(status, now, width=terminal.width(), paint=terminal.paint())
        say(_CLEAR + "\n".join(lines))
        return
    for line in changes(before, status):
        say(f"{clock(now, now)} {line}")


def changes(before: View | None, after: View) -> Iterator[str]:
    """What a reader of a log wants to know of a new status; pure. All of it when there was none before."""
    old = before or {"phase": "", "resources": [], "members": [], "problem": "", "change": None, "released": []}
    if after["phase"] != old["phase"]:
        yield f"phase: {after['phase']}"
    if after["problem"] != old["problem"]:
        yield f"cluster.toml: {printable(after['problem']) or 'good again'}"
    yield from _settings(old, after)
    yield from _changed("resources", _resource, old, after)
    yield from _changed("members", _member, old, after)


def _settings(old: View, after: View) -> Iterator[str]:
    """The change under way, and what undo has let go."""
    if after["change"] and after["change"] != old["change"]:
        yield printable(f"changing: {changing(after['change'])}")
    if after["released"] != old["released"]:
        names = printable(", ".join(after["released"]))
        yield f"released: {LEFT_ALONE.format(names) if names else 'nothing any more'}"


def _changed(kind: str, tell: Callable[[View], str], old: View, after: View) -> Iterator[str]:
    said = {each["name"]: tell(each) for each in old[kind]}
    for each in after[kind]:
        if said.get(each["name"]) != tell(each):
            yield printable(f"{each['name']}: {tell(each)}")


def _resource(resource: View) -> str:
    return f"{resource['condition']}{': ' if resource['why'] else ''}{resource['why']}"


def _member(member: View) -> str:
    return "joined" if member["joined"] else f"not joined{': ' if member['note'] else ''}{member['note']}"


def wait(asked: Asked) -> int:
    timeout = asked.number("--timeout")
    if timeout is not None and timeout > LONGEST_WAIT:
        longest = f"at most {LONGEST_WAIT} (30 days)"
        raise Refused(f"wait: --timeout is {longest}, not {timeout}", hint="without --timeout it waits for ever")
    end = None if timeout is None else time.monotonic() + timeout
    phase = asked.words["PHASE"]

    def parameters() -> wire.Message:
        """A restart of the daemon on the way gives no new time."""
        left = None if end is None else max(0, math.ceil(end - time.monotonic()))
        return {"phase": phase} if left is None else {"phase": phase, "timeout": left}

    for reply in client.replies(asked.socket, "Wait", parameters):
        if reply is not None:
            say(f"{_status(reply)['node']} is {phase}")
    return 0
