"""What a soak has brought about."""

from __future__ import annotations

from dataclasses import dataclass

import pytest


@dataclass
class Soaked:
    """What came of the lives with so many nodes. `passes`, `seconds`: those in which nothing was waited for."""

    count: int
    faults: int = 0
    incidents: int = 0
    ray: int = 0
    model: int = 0
    all_passes: int = 0
    passes: int = 0
    seconds: float = 0.0

    @property
    def cost(self) -> float:
        """CPU milliseconds of a pass."""
        return 1000 * self.seconds / self.passes


SOAKED = pytest.StashKey[list[Soaked]]()
