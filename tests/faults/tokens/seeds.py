"""What is drawn at random in this run, and how to draw it again: STRIXD_FAULTS_SEED=N, printed at the beginning and at
the end of each run."""

from __future__ import annotations

import os
import random

SEED = int(os.environ.get("STRIXD_FAULTS_SEED") or random.randrange(1_000_000))


def drawing(what: str) -> random.Random:
    """Of its own for each purpose, so that a single test draws what it drew in the whole run."""
    return random.Random(f"{SEED} {what}")
