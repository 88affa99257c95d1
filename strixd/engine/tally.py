"""What is counted while the daemon runs, for the metrics: from zero at its start, never kept, and decides nothing."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

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
    """`born`: when the counting began. `starts`: by workload, `incidents`: by the resource at fault. `link` (its
    name) and `image`: as they were last seen."""

    def __init__(self, born: float) -> None:
        self._born = born
        self.passes = Histogram(PASS_SECONDS)
        self.recoveries = Histogram(RECOVERY_SECONDS)
        self.starts: Counter[str] = Counter()
        self.incidents: Counter[str] = Counter()
        self.link = ""
        self.image = image.Report()
        self._suspect = ("", "")
        self._counted: deque[str] = deque(maxlen=64)  # ids; an older one comes to light again when a newer is dropped
        self._recovered: deque[str] = deque(maxlen=64)

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
        if status.incident:
            self._incident(status.incident)

    def _incident(self, last: Incident) -> None:
        """What began before this daemon was counted by the one before. A cause is at first a guess, and a counter takes
        nothing back: it counts when two passes name the same resource, or when the incident is over."""
        if last.began >= self._born and last.id not in self._counted:
            if last.ended or self._suspect == (last.id, last.resource):
                self._counted.append(last.id)
                self.incidents[last.resource] += 1
            self._suspect = (last.id, last.resource)
        if last.ended >= self._born and last.id not in self._recovered:
            self._recovered.append(last.id)
            self.recoveries.add(max(last.ended - last.began, 0.0))  # the clock may have been set back
