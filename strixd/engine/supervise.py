"""How a workload that ended is brought back: a pure function from its history to a verdict.

The first restart is immediate; later ones wait longer, so that a fault that returns is not a loop. Stable service
forgives. A workload that never came well in many tries is given up: a person must look, and it is tried only now and
then, for the world may have mended itself. What can never work is not decided here: such a plan has no steps and is
`stuck`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from strixd.plan import Step
from strixd.resources.image import Fetch
from strixd.workload import Start

WINDOW = 3600.0  # seconds without a start, before which what was tried counts no more
STABLE = 300.0  # seconds of service that forgive what was before
DELAYS = (0.0, 1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0)  # seconds before the nth start in a row
TRIES = 8  # in a row, none of which came well, until it is given up
SELDOM = 900.0  # seconds between tries of what was given up
JITTER = 0.1  # of a delay, at most: nodes that fail together do not start together


@dataclass(frozen=True, slots=True)
class Attempt:
    """A start, when it came well and when that was over (0: not yet); in seconds since the epoch."""

    at: float
    well: float = 0.0
    over: float = 0.0


@dataclass(frozen=True, slots=True)
class Keep:
    """Do it now."""


@dataclass(frozen=True, slots=True)
class Restart:
    """Do it `after` so many seconds."""

    after: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """A person must look; it is done once more `after` so many seconds."""

    why: str
    after: float


def verdict(history: Sequence[Attempt], now: float) -> Keep | Restart | GiveUp:
    """`history`: the starts of this workload under the present wish, oldest first."""
    recent = _since_stable(_in_a_row(history, now))
    if not recent:
        return Keep()
    last = recent[-1].at
    vain = _vain(recent)
    if vain >= TRIES:
        wait = last + SELDOM - now
        why = f"{vain} starts within {(now - recent[-vain].at) / 60:.0f} min, and none came well"
        return GiveUp(why, wait) if wait > 0 else Keep()
    delay = DELAYS[min(len(recent), len(DELAYS)) - 1]
    wait = last + delay * (1 + JITTER * _fraction(last)) - now
    return Restart(wait) if wait > 0 else Keep()


def well(history: tuple[Attempt, ...], now: float) -> tuple[Attempt, ...]:
    """The last start has come well, if that is not known yet."""
    if not history or history[-1].well:
        return history
    return (*history[:-1], replace(history[-1], well=now))


def over(history: tuple[Attempt, ...], now: float) -> tuple[Attempt, ...]:
    """The last run is found ended, or must be: if that is not known yet."""
    if not history or history[-1].over:
        return history
    return (*history[:-1], replace(history[-1], over=now))


def paced(steps: tuple[Step, ...]) -> bool:
    """Whether taking these counts as a start."""
    return any(isinstance(step, Start | Fetch) for step in steps)


def _in_a_row(history: Sequence[Attempt], now: float) -> Sequence[Attempt]:
    """Each within WINDOW of the next, the last of now. An hour that went along with now would forget the first of them
    in the middle of a wait that was announced. None when the last is yet to come: the clock was set back, and nobody
    knows how long ago it was; and of starts before one that came after that, none that is yet to come."""
    past = [one for one in history if one.at <= now] if history and history[-1].at <= now else []
    row: list[Attempt] = []
    for one in reversed(past):
        if (row[-1].at if row else now) - one.at >= WINDOW:
            break
        row.append(one)
    return row[::-1]


def _since_stable(history: Sequence[Attempt]) -> Sequence[Attempt]:
    stable = [number for number, one in enumerate(history) if one.well and one.over - one.well >= STABLE]
    return history[stable[-1] + 1 :] if stable else history


def _vain(history: Sequence[Attempt]) -> int:
    """How many of the last in a row never came well."""
    return next((number for number, one in enumerate(reversed(history)) if one.well), len(history))


def _fraction(at: float) -> float:
    """0 to 1, the same for the same start, so that a wait that was announced is kept."""
    return int.from_bytes(sha256(repr(at).encode()).digest()[:4], "big") / (1 << 32)
