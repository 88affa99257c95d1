"""Earlier runs, and what has become worse since the last one. Pure, but for the file.

A value is compared with the newest earlier one of the same name and key: the same peer, rung and tool, or the same
model, image and rung. The unit at the end of its name tells which way is better.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from strixd.host.files import read_text, write_whole

FILE = "/var/lib/strixd/bench.json"
KEPT = 100  # runs
NOISE = 1.25
"""What is not worse by more than this factor is taken for noise: a second run of the same differs by as much."""
_FASTER_IS_LESS = ("µs", "ms")


@dataclass(frozen=True, slots=True)
class Run:
    """`values`, all above 0, by names that end in their units ("halo2 tcp latency (strixd), µs")."""

    at: float
    key: str
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Worse:
    """By which factor, and since when. `before` was measured at `at`."""

    name: str
    factor: float
    before: float
    now: float
    at: float


def worse(run: Run, earlier: tuple[Run, ...]) -> tuple[Worse, ...]:
    """`earlier`: oldest first."""
    known = {name: (value, each.at) for each in earlier if each.key == run.key for name, value in each.values.items()}
    found = [_compared(name, value, *known[name]) for name, value in run.values.items() if name in known]
    return tuple(each for each in found if each.factor > NOISE)


def _compared(name: str, now: float, before: float, at: float) -> Worse:
    more, less = (now, before) if name.endswith(_FASTER_IS_LESS) else (before, now)
    return Worse(name, more / less, before, now, at)


def load(path: str = FILE) -> tuple[Run, ...]:
    """Oldest first; what is not of our making is passed over. Raises Rejected when it cannot be read."""
    try:
        raw = json.loads(read_text(path) or "[]")
    except (ValueError, RecursionError):
        return ()
    return tuple(run for each in raw if (run := _run(each))) if isinstance(raw, list) else ()


def _run(raw: Any) -> Run | None:
    try:
        values = {str(name): number for name, value in raw["values"].items() if (number := float(value)) > 0}
        return Run(float(raw["at"]), str(raw["key"]), values)
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


def keep(run: Run, earlier: tuple[Run, ...], path: str = FILE) -> None:
    """Raises Rejected. A run that measured nothing is not kept."""
    if run.values:
        write_whole(path, json.dumps([asdict(each) for each in (*earlier, run)[-KEPT:]]))
