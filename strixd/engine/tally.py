"""What is counted while the daemon runs, for the metrics: from zero at its start, never kept, and decides nothing."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from strixd.engine import incident
from strixd.engine.status import Incident, Status
from strixd.plan import Step
from strixd.resources import image, network
from strixd.workload import Start

PASS_SECONDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
RECOVERY_SECONDS: Final = (5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 2400.0, 4800.0)
"""A warm start of a large model takes minutes, its first compile about forty."""


@dataclass(slots=True)
class Histogram:
    """`counts` has one place per bound, for what is at most that much, and a last one for all else."""

    bounds: tuple[float, ...]
    counts: list[int] = field(default_factory=list)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = self.counts or [0] * (len(self.bounds) + 1)

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


class Tally:
    """`starts`: by workload; `incidents`: those that are over, by the resource at fault; `link` (its name) and `image`:
    as they were last seen."""

    def __init__(self) -> None:
        self.passes = Histogram(PASS_SECONDS)
        self.recoveries = Histogram(RECOVERY_SECONDS)
        self.starts: Counter[str] = Counter()
        self.incidents: Counter[str] = Counter()
        self.link = ""
        self.image = image.Report()
        self._over: str | None = None  # id of the last incident that was over; "" for none, None before the first pass

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Around a pass. By a clock that nobody sets."""
        begun = time.monotonic()
        yield
        self.passes.add(time.monotonic() - begun)

    def took(self, step: Step) -> None:
        if isinstance(step, Start):
            self.starts[step.unit.removeprefix("strixd-").removesuffix(".service")] += 1

    def saw(self, status: Status, seen: Mapping[str, object]) -> None:
        """After a pass. `seen`: the last observation of each resource."""
        link, report = seen.get(network.Network.name), seen.get(image.Image.name)
        self.link = link.pick.link.name if isinstance(link, network.Observed) and link.pick.link else ""
        self.image = report.report if isinstance(report, image.Observed) else image.Report()
        self._incident(status.incident)

    def _incident(self, last: Incident | None) -> None:
        """Counted when it is over: until then its cause may turn out to be another, and a counter takes nothing back.
        So one that outlives a daemon is counted once, by the daemon that sees its end."""
        before, over = self._over, last.id if last and last.ended else ""
        self._over = over or before or ""
        if last is None or before is None or over in ("", before):
            return
        self.incidents[last.resource] += 1
        if incident.at(last, "serving"):  # not so when somebody wanted something else meanwhile
            self.recoveries.add(max(last.ended - last.began, 0.0))  # the clock may have been set back
