"""A setting that failed and was taken back is held: tried again after a growing delay, or as soon as what is wanted
or what is there differs. Otherwise rollback and reconcile would chase each other for ever. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from strixd.errors import CutsOff, StrixdError

FIRST, LONGEST = 5.0, 600.0  # seconds


@dataclass(frozen=True, slots=True)
class Hold:
    """`key`: what was wanted and planned when it failed; None: whatever is planned."""

    key: object
    until: float
    times: int
    failure: StrixdError

    def holds(self, key: object, now: float) -> bool:
        """None is longer than LONGEST: one that would be comes from before the clock was set back."""
        return self.key is None or (key == self.key and 0 < self.until - now <= LONGEST)


def hold(before: Hold | None, key: object, failure: StrixdError, now: float) -> Hold:
    times = before.times + 1 if before and before.key == key else 1
    wait = LONGEST if isinstance(failure, CutsOff) else min(FIRST * 2 ** (times - 1), LONGEST)
    return Hold(key, now + wait, times, failure)
