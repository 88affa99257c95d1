"""How much is tried at random: a little, the same each time, in `make test`; much, and new, in `make test-faults`."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

THOROUGH = bool(os.environ.get("STRIXD_FAULTS"))
TIMES = 125  # as many


def tried(examples: int) -> settings:
    """A test by Hypothesis with so many examples, or many times as many. What fails is printed whole."""
    return settings(
        max_examples=examples * TIMES if THOROUGH else examples,
        derandomize=not THOROUGH,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
