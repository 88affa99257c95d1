"""Kept times and a clock that may have been set since."""

from __future__ import annotations

from math import inf

import pytest

from strixd.elapsed import SLACK, elapsed, later

NOW = 10_000.0


@pytest.mark.parametrize(
    ("at", "ago"),
    [(0.0, inf), (NOW - 7, 7.0), (NOW, 0.0), (NOW + SLACK / 2, 0.0), (NOW + SLACK + 1, inf), (-1.0, NOW + 1)],
)
def test_a_time_to_come_is_long_past(at: float, ago: float) -> None:
    assert elapsed(at, NOW) == ago


@pytest.mark.parametrize(
    ("one", "other", "is_later"),
    [
        (NOW - 1, NOW - 2, True),
        (NOW - 2, NOW - 2, False),
        (NOW - 2, NOW - 1, False),
        (NOW - 1, NOW + 7200, True),  # kept before the clock was set back
        (NOW + 7200, NOW - 1, False),
        (NOW + 7200, NOW + 3600, False),  # nobody knows
        (0.0, NOW + 7200, False),
        (NOW - 1, 0.0, True),
    ],
)
def test_of_two_times(one: float, other: float, is_later: bool) -> None:
    assert later(one, other, NOW) is is_later
