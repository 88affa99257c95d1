"""What differs between two snapshots of a host (tests/lab/lawpass.py), for the message of a failed test."""

from __future__ import annotations

import json
from typing import Any


def difference(there: dict[str, Any], now: dict[str, Any]) -> str:
    """What was there and is not, and what is there and was not."""
    told = {}
    for key in there:
        before, after = (set(_items(each[key])) for each in (there, now))
        if before != after:
            told[key] = [sorted(before - after), sorted(after - before)]
    return json.dumps(told or "the same, in another order", indent=1)


def _items(part: Any) -> list[str]:
    return [f"{key}: {value}" for key, value in part.items()] if isinstance(part, dict) else part
