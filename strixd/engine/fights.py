"""Two parties who change the same thing back and forth: after two repairs within a minute strixd holds, and names the
other one where NetworkManager knows it. Pure, but for the reading.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from strixd.elapsed import elapsed
from strixd.engine.hold import LONGEST, Hold
from strixd.errors import Rejected, StrixdError
from strixd.plan import Plan
from strixd.ports import Host

WITHIN = 60.0  # seconds
REPAIRS, KEPT = 2, 10
MANAGER = "NetworkManager.service"
LINES = 300
"""Of NetworkManager's journal: about ten changes of a link."""

_AUDIT = re.compile(r"\[(\d+\.\d+)\] audit: (.*)")
_FIELD = re.compile(r'([\w-]+)=(?:"([^"]*)"|(\S+))')


Repairs = tuple[tuple[float, object], ...]
"""When, and by which steps: what takes the same steps again is the same thing."""


def third(repairs: Repairs, steps: object, now: float) -> bool:
    return len([at for at, by in repairs if by == steps and elapsed(at, now) < WITHIN]) >= REPAIRS


def counted(repairs: Repairs, steps: object, now: float) -> Repairs:
    return (*repairs, (now, steps))[-KEPT:]


def held(key: object, found: str, who: str, now: float) -> Hold:
    why = f"{found}; that is a third time within a minute, and strixd does not fight{f': {who}' if who else ''}"
    hint = "journalctl -u NetworkManager -u firewalld -n 50 tells more; when that is settled: strixd-cli apply"
    return Hold(key, now + LONGEST, 1, Rejected(why, hint=hint))


async def other_party(host: Host, plan: Plan, *, since: float) -> str:
    """Who changed it after `since`, the time of the last repair, in words; "" where that cannot be known."""
    if plan.resource != "network":
        return ""
    try:
        unit = await host.units.read(MANAGER)
        lines = await host.journal.last(MANAGER, unit.invocation, LINES)
    except StrixdError:
        return ""
    return named(lines, about=" ".join((*plan.facts, *map(str, plan.steps))), since=since, me=os.getpid())


def named(lines: Iterable[str], *, about: str, since: float, me: int) -> str:
    """By the newest line with which NetworkManager owns to have done something for another process, to a profile or
    device that `about` speaks of: `… [1795982143.13] audit: op="…" name="…" pid=4 uid=0 result="success"`."""
    who = ""
    for found in filter(None, map(_AUDIT.search, lines)):
        line = {key: quoted or plain for key, quoted, plain in _FIELD.findall(found[2])}
        what = line.get("name") or line.get("interface", "")
        theirs = line.get("pid", str(me)) != str(me) and line.get("result") == "success"
        if theirs and float(found[1]) >= since and what and what in about:
            who = f'process {line["pid"]} of uid {line.get("uid")} had NetworkManager do {line.get("op")} "{what}"'
    return who
