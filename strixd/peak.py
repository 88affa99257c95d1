"""Whether something that is counted again and again, and begins with none, has become less. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Peak:
    """The largest count so far, None until there was none: what is there before that is left of something else.
    `since`: when fewer were first counted, 0 while as many are there."""

    count: int | None = None
    since: float = 0.0

    def counted(self, count: int | None, now: float) -> Peak:
        """One that is unknown (None) is taken for no less."""
        if count is None:
            return replace(self, since=0.0)
        if self.count is None:
            return self if count else Peak(0)
        return replace(self, since=self.since or now) if count < self.count else Peak(count)

    def fewer(self, now: float) -> float:
        """For how many seconds there have been fewer."""
        return now - self.since if self.since else 0.0
