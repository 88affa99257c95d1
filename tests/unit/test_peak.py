"""A count that has become less is noticed; what an earlier run left is not a part of it."""

from __future__ import annotations

import pytest

from strixd.peak import Peak


@pytest.mark.parametrize(
    ("counts", "seconds"),
    [
        ((), 0.0),
        ((0, 0), 0.0),
        ((0, 1, 2, 2), 0.0),
        ((0, 2, 1, 1), 1.0),
        ((0, 2, 0), 0.0),  # just now
        ((0, 2, 1, 0, 1), 2.0),
        ((0, 2, 1, 2), 0.0),
        ((0, 2, 1, None, 1), 0.0),
        ((None, 0, 2, 1, 1, 1), 2.0),
        # left of the former run, gone while this one still imports (seen: the new one was ended for it)
        ((2, 0, 0, 0), 0.0),
        ((1, None, 1, 0, 0, 0), 0.0),
        ((2, 1, 1), 0.0),
        ((2, 0, 2, 1, 1), 1.0),
        ((2, 3, 2, 2), 0.0),  # never none: whose they are is not known
    ],
)
def test_how_long_there_have_been_fewer(counts: tuple[int | None, ...], seconds: float) -> None:
    peak = Peak()
    for at, count in enumerate(counts, start=1):
        peak = peak.counted(count, float(at))
    assert peak.fewer(float(len(counts))) == seconds
