"""What may be asked of the engine: all that the control socket knows of it. Commands only record an order and wake
the one loop that changes the host; none of them changes the host itself.

`by` says who asks, and with which command: "uid 1000: apply"."""

from __future__ import annotations

from typing import Protocol

from strixd.engine.status import ChangeView, Incident, PlanView, Status
from strixd.orders import Workload


class Door(Protocol):
    """Implemented by engine.engine.Engine."""

    def status(self) -> Status:
        """As of the last pass."""

    async def changed(self, seen: int) -> int:
        """Waits until the status differs from number `seen` and returns its number. The newest is what counts: a
        slow reader skips states and holds nothing up. Start with 0 for an answer at once."""

    def ordered(self) -> float:
        """When the newest order was recorded, which is its name, too. A status whose `ordered` is another does not know
        it: no order of time between the two can be trusted, since a clock may be set."""

    async def preview(self) -> tuple[PlanView, ...]:
        """Reads cluster.toml and the host now, and says what an apply would do. Changes nothing. Raises ConfigError."""

    def history(self, count: int) -> tuple[ChangeView, ...]:
        """The newest changes of the host's settings, at most so many, the newest first. None that still runs."""

    def incidents(self, count: int) -> tuple[Incident, ...]:
        """The newest incidents, at most so many, the newest first: the open one, if there is one, then those that are
        over."""

    async def apply(self, by: str) -> None:
        """Reads cluster.toml again, lifts every hold, takes up what undo let go, and wakes the loop; returns when that
        is recorded. What came of it, a status tells that is as new as ordered(). Raises ConfigError."""

    async def undo(self, by: str) -> ChangeView:
        """Takes back the newest change that is done and not yet undone, lets its resources go until the next apply,
        and returns that change as it is afterwards. Refused when there is none. Raises what the taking back met."""

    async def serve(self, model: str, arguments: tuple[str, ...], *, by: str) -> None:
        """Records the order, durably. Refused on a worker, with the head's name and address, and while drained; name
        and arguments are known to make sense (api/sanity.py)."""

    async def stop(self, by: str) -> None: ...
    async def drain(self, by: str) -> None:
        """The model stays ordered and is not served until undrain. Refused on a worker and while paused."""

    async def undrain(self, by: str) -> None:
        """Refused as drain is."""

    async def restart(self, workload: Workload, by: str) -> None:
        """Orders another run in place of the present one, if there is one. Refused while paused; vllm on a worker too,
        and while drained."""

    async def pause(self, by: str) -> None: ...
    async def resume(self, by: str) -> None: ...
    async def update_image(self, by: str) -> None:
        """Orders the newest image of the configured reference; the recorded digest gives way to it."""
