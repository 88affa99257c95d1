"""bench link: this node and each of its peers, one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from strixd.bench import driver, history, scene
from strixd.bench.plan import Wanted, jobs
from strixd.bench.readings import WORDS, Readings, Row, gather
from strixd.errors import Rejected

KEY = "link"


@dataclass(frozen=True, slots=True)
class Outcome:
    """`at`: seconds since the epoch."""

    at: float
    readings: Readings
    worse: tuple[history.Worse, ...]


def measure(wanted: Wanted, socket: str, tell: Callable[[str], None]) -> Outcome:
    """`tell` is given what a person should know meanwhile. Raises StrixdError."""
    here = scene.read(socket)
    said = [message for job in jobs(here, wanted) for message in _asked(job, tell)]
    readings = gather(said, here.tcp)
    run, earlier = history.Run(time.time(), KEY, values(readings.rows)), history.load()
    history.keep(run, earlier)
    return Outcome(run.at, readings, history.worse(run, earlier))


def _asked(job: dict[str, Any], tell: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """One peer that cannot be measured keeps no other from it."""
    peer = job["peer"]["name"]
    try:
        for message in driver.messages(job):
            if "by_hand" in message:
                tell(f"{peer} is not known as a member of the Ray cluster. To measure all the same, as root on {peer},")
                tell(f"within {message['seconds']:.0f} s:  {message['by_hand']}")
            else:
                yield message
            if "tool" in message:
                tell(f"{peer}: {WORDS.get(message['what'], message['what'])} is measured")
    except Rejected as error:
        yield {"peer": peer, "failed": str(error)}


def values(rows: tuple[Row, ...]) -> dict[str, float]:
    """By the names under which they are compared."""
    named = [(f"{row.peer} {row.rung}", row) for row in rows]
    latencies = {f"{which} latency ({row.latency_by}), µs": row.latency for which, row in named}
    bandwidths = {f"{which} bandwidth ({row.bandwidth_by}), Gb/s": row.bandwidth for which, row in named}
    return {name: value for name, value in (latencies | bandwidths).items() if value is not None}
