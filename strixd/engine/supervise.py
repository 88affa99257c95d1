"""How a workload that ended is brought back: a pure function from its history to a verdict.

The first restart is immediate; later ones within the window wait longer, so that a fault that returns is not a
loop. A start older than the window no longer counts: stable service forgives. What can never work is not decided
here: such a plan has no steps and is `stuck`.
"""

from __future__ import annotations

from dataclasses import dataclass

from strixd.plan import Step
from strixd.resources.image import Fetch
from strixd.workload import Start

WINDOW = 900.0  # seconds
DELAYS = (0.0, 1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0)  # seconds before the nth start in the window


@dataclass(frozen=True, slots=True)
class Keep:
    """Do it now."""


@dataclass(frozen=True, slots=True)
class Restart:
    """Do it `after` so many seconds."""

    after: float


def verdict(starts: tuple[float, ...], now: float) -> Keep | Restart:
    """`starts`: when this workload was started, in seconds since the epoch, oldest first."""
    recent = [at for at in starts if 0 <= now - at < WINDOW]  # a start to come: the clock was set back
    if not recent:
        return Keep()
    wait = recent[-1] + DELAYS[min(len(recent), len(DELAYS)) - 1] - now
    return Restart(wait) if wait > 0 else Keep()


def paced(steps: tuple[Step, ...]) -> bool:
    """Whether taking these counts as a start."""
    return any(isinstance(step, Start | Fetch) for step in steps)
