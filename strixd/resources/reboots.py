"""Which reboots strixd has asked for, and whether they helped. Pure.

The record is on disk before a reboot is asked for, so none is forgotten; it goes when the arguments run.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

RECORD = "/var/lib/strixd/reboots.json"
MOST = 2
"""Reboots for the same arguments. A third would not help either."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A reboot that was asked for: to make which arguments run, in which boot, when."""

    arguments: str
    boot: str
    at: float


def attempts_in(text: str | None) -> tuple[Attempt, ...]:
    """A record that cannot be read proves nothing."""
    try:
        raw = json.loads(text or "[]")
        return tuple(Attempt(str(one["arguments"]), str(one["boot"]), float(one["at"])) for one in raw)
    except (ValueError, TypeError, KeyError):
        return ()


def written(attempts: tuple[Attempt, ...]) -> str:
    return json.dumps([asdict(attempt) for attempt in attempts], indent=1) + "\n"


def done(attempts: tuple[Attempt, ...], arguments: str, boot: str, *, since: float) -> tuple[Attempt, ...]:
    """Those that did reboot this host for these arguments and did not help. `since`: when a person last said "try"."""
    return tuple(one for one in attempts if one.arguments == arguments and one.boot != boot and one.at >= since)
