"""Reading what another node's strixd says of itself: words that anybody with the cluster's key can write. Pure."""

from __future__ import annotations

import re

NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{1,6})?")


def number(text: str) -> float:
    """0 for what is none: an older probe says nothing of it."""
    return float(text) if NUMBER.fullmatch(text) else 0.0
