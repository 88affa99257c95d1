"""What a node says of itself to the others: its record, which the probe keeps in Ray's key-value store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strixd.plan import Effect, Step
from strixd.ports import Host

SHOWN = 19  # characters: "sha256:" and twelve digits, as podman shows a digest


@dataclass(frozen=True, slots=True)
class Publish:
    """Tell this node's probe what to say about this node in Ray's key-value store."""

    effect: ClassVar[Effect] = Effect.NOW
    record: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return "publish this node's record in Ray: " + ", ".join(f"{key} {_short(value)}" for key, value in self.record)

    def undo(self) -> Step | None:
        return None

    async def apply(self, host: Host) -> None:
        await host.ray.publish(dict(self.record))


def _short(value: str) -> str:
    """Digests and identifiers are told by their beginning."""
    return value if len(value) <= SHOWN else f"{value[:SHOWN]}…"
