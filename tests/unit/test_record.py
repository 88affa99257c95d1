"""What another node's strixd says of itself is read as if anybody had written it."""

from __future__ import annotations

import pytest

from strixd.resources import record


@pytest.mark.parametrize(("text", "number"), [("0", 0.0), ("3", 3.0), ("12.5", 12.5), ("123456789012", 123456789012.0)])
def test_numbers(text: str, number: float) -> None:
    assert record.number(text) == number


@pytest.mark.parametrize("text", ["", "many", "nan", "inf", "-1", "1e9", "²", "٣", " 1", "1\n", "9" * 5000])
def test_what_is_none(text: str) -> None:
    assert record.number(text) == 0.0
