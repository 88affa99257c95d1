"""What may be asked of the engine: all that the control socket knows of it. Commands only record an order and wake
the one loop that changes the host; none of them changes the host itself."""

from __future__ import annotations

from typing import Protocol

from strixd.engine.status import PlanView, Status


class Door(Protocol):
    """Implemented by engine.reconcile.Engine."""

    def status(self) -> Status:
        """As of the last pass."""

    async def changed(self, seen: int) -> int:
        """Waits until the status differs from number `seen` and returns its number. The newest is what counts: a
        slow reader skips states and holds nothing up. Start with 0 for an answer at once."""

    def ordered(self) -> float:
        """When the newest order was recorded. A status whose `ordered` is older knows nothing of it."""

    async def preview(self) -> tuple[PlanView, ...]:
        """Reads cluster.toml and the host now, and says what an apply would do. Changes nothing. Raises ConfigError."""

    async def apply(self) -> None:
        """Reads cluster.toml again and lifts every hold; returns after a pass. Raises ConfigError."""

    async def serve(self, model: str, arguments: tuple[str, ...]) -> None:
        """Records the order, durably. Refused on a worker, with the head's name and address."""

    async def stop(self) -> None: ...
    async def pause(self) -> None: ...
    async def resume(self) -> None: ...
    async def update_image(self) -> None:
        """Orders the newest image of the configured reference; the recorded digest gives way to it."""
