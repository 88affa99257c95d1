"""The policy of restarts over random lives of a workload: it is never a loop, keeps the waits that it announces, always
starts again at some time, and forgives. `make test-faults` tries thousands of lives."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strixd.engine.supervise import (
    DELAYS,
    JITTER,
    SELDOM,
    STABLE,
    TRIES,
    Attempt,
    GiveUp,
    Keep,
    Restart,
    over,
    verdict,
    well,
)
from tests.sim.often import tried

HOUR = 3600.0
KEPT = 20  # starts that the loop remembers
LONGEST = max(SELDOM, DELAYS[-1] * (1 + JITTER))
QUICK = len(DELAYS)
STEADY = HOUR / DELAYS[-1]

loading = st.sampled_from([0.1, 2.0, 25.0, 290.0, 1500.0])  # seconds, until it comes well or ends
service = st.sampled_from([0.0, 0.0, 0.0, 3.0, 150.0, STABLE - 1, STABLE, 4 * HOUR])  # seconds; 0: it never came well
alike = st.tuples(st.tuples(loading, service), st.sampled_from([1, 1, 2, 5, 12, 30])).map(
    lambda some: [some[0]] * some[1]
)
lives = st.lists(alike, min_size=1, max_size=6).map(lambda rows: [run for row in rows for run in row])


@dataclass
class Life:
    """As the loop leads it: each end is followed by the next start as soon as the policy allows it. `waits`: those that
    followed each run, counted from its start; `forgiven`: when stable services ended."""

    now: float = 1e9
    history: tuple[Attempt, ...] = ()
    starts: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    forgiven: list[float] = field(default_factory=list)

    def run(self, loads: float, serves: float) -> None:
        self.history = (*self.history, Attempt(self.now))[-KEPT:]
        self.starts.append(self.now)
        self.now += loads
        if serves:
            self.history = well(self.history, self.now)
            self.now += serves
        self.history = over(self.history, self.now)
        if serves >= STABLE:
            self.forgiven.append(self.now)
        self.wait()

    def wait(self) -> None:
        """Whoever asks meanwhile is told the same moment."""
        pace = verdict(self.history, self.now)
        until = self.now + (0.0 if isinstance(pace, Keep) else pace.after)
        for part in (0.01, 0.5, 0.99) if until > self.now + 0.1 else ():
            then = self.now + part * (until - self.now)
            again = verdict(self.history, then)
            assert type(again) is type(pace)
            assert isinstance(again, Restart | GiveUp)
            assert then + again.after == pytest.approx(until)
        self.now = until + 0.001  # the clock's numbers are rounded
        assert verdict(self.history, self.now) == Keep()
        self.waits.append(self.now - self.starts[-1])


@given(lives)
@tried(100)
def test_a_life(runs: list[tuple[float, float]]) -> None:
    life = Life()
    for loads, serves in runs:
        life.run(loads, serves)
    _never_a_loop(life)
    _patient(life, runs)
    _forgiving(life, runs)


def _never_a_loop(life: Life) -> None:
    for at in life.starts:
        began = bisect_right(life.starts, at) - bisect_left(life.starts, at - HOUR)
        forgiven = bisect_right(life.forgiven, at) - bisect_left(life.forgiven, at - HOUR)
        assert began <= STEADY + QUICK * (1 + forgiven)


def _patient(life: Life, runs: list[tuple[float, float]]) -> None:
    """While nothing comes well the waits only grow, up to a bound. A run may have taken longer than its wait."""
    for (first, then), (one, other) in zip(pairwise(life.waits), pairwise(runs), strict=True):
        if not one[1] and not other[1]:
            assert then * (1 + JITTER) + 0.1 >= min(first, LONGEST) or first <= one[0] + 0.1
    assert all(wait <= max(LONGEST, sum(run)) + 0.1 for wait, run in zip(life.waits, runs, strict=True))


def _forgiving(life: Life, runs: list[tuple[float, float]]) -> None:
    for number, (loads, serves) in enumerate(runs):
        if serves >= STABLE:
            assert life.waits[number] == pytest.approx(loads + serves, abs=0.1), "the first one is begun at once"


@given(lives, st.floats(-3 * HOUR, 3 * HOUR), st.lists(st.floats(0.0, 400.0), max_size=TRIES))
@tried(100)
def test_a_clock_that_is_set_makes_no_endless_wait(
    runs: list[tuple[float, float]], jump: float, later: list[float]
) -> None:
    life = Life()
    for loads, serves in runs:
        life.run(loads, serves)
    now, history = life.now + jump, life.history
    for gap in later:
        history = (*history, Attempt(now))[-KEPT:]
        now += gap
    begun = now
    while not isinstance(pace := verdict(history, now), Keep):
        assert 0 < pace.after <= LONGEST
        now += pace.after + 0.001
        assert now - begun <= LONGEST + 0.1
