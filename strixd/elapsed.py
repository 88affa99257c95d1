"""How long ago something was by the wall clock, which somebody may have set since. Pure.

Within one boot a clock that nobody sets is the better one (ports.Host.steady); what is kept on disk has no other.
"""

from __future__ import annotations

from math import inf

SLACK = 10.0
"""Seconds by which two looks at the clock may contradict each other without anybody having set it."""


def elapsed(at: float, now: float) -> float:
    """Seconds from `at` to `now`. A time that is yet to come was kept before the clock was set back: it is past, and
    nobody knows for how long. Endless then, and for 0, which is never."""
    return inf if not at or at > now + SLACK else max(now - at, 0.0)


def later(one: float, other: float, now: float) -> bool:
    """Whether `one` came after `other`, as far as the clock tells."""
    return elapsed(one, now) < elapsed(other, now)
