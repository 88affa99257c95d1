"""Whether something that is counted again and again has become less. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Peak:
    """The largest count so far; `since`: when fewer were first counted, 0 while as many are there."""

    count: int = 0
    since: float = 0.0

    def counted(self, count: int | None, now: float) -> Peak:
        """One that is unknown (None) is taken for no less."""
        if count is not None and count < self.count:
            return replace(self, since=self.since or now)
        return Peak(max(self.count, count or 0))

    def fewer(self, now: float) -> float:
        """For how many seconds there have been fewer."""
        return now - self.since if self.since else 0.0
