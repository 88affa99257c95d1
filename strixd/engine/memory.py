"""What must outlive a reboot or a power cut: orders, incidents, the last good file. Written whole, with fsync.

Orders are the only state that decides anything; conditions and phases are always derived.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from strixd import messages
from strixd.decode import known
from strixd.engine.status import Incident, Moment
from strixd.errors import Refused, StrixdError
from strixd.orders import Orders
from strixd.ports import Files

log = logging.getLogger("strixd")

ORDERS = "/var/lib/strixd/orders.json"
INCIDENTS = "/var/lib/strixd/incidents.json"
LAST_GOOD = "/var/lib/strixd/last-good.toml"
KEPT = 50  # incidents


@dataclass(frozen=True, slots=True)
class Answered:
    """When the model last answered: under which wish (hashes: wish.py), in which boot of this host, and by which run.
    `fits` outlives an order for something else."""

    served: str = ""
    basis: str = ""
    boot: str = ""
    run: str = ""
    fits: str = ""


@dataclass(frozen=True, slots=True)
class Book:
    """The account of incidents: the one that is not over, and those that are, oldest first. `loads`: seconds that the
    last starts of a model took to its first completion, by model and image."""

    answered: Answered = Answered()
    now: Incident | None = None
    past: tuple[Incident, ...] = ()
    loads: Mapping[str, tuple[float, ...]] = field(default_factory=dict)


class Saving:
    """Of one file. What the daemon can go on without: a disk that is full ends nothing, and is said once."""

    def __init__(self) -> None:
        self._said = ""

    async def __call__(self, saving: Awaitable[None]) -> bool:
        """Whether it is on disk now."""
        try:
            await saving
        except StrixdError as failure:
            if str(failure) != self._said:
                log.warning("%s", failure, extra=messages.fields("CONDITION", code=failure.code))
            self._said = str(failure)
            return False
        self._said = ""
        return True


async def load_orders(files: Files) -> Orders:
    """No file: no orders. A file that is not ours to read ends the daemon rather than losing an order silently."""
    text = await files.read(ORDERS)
    if text is None:
        return Orders()
    try:
        raw = json.loads(text)
        lists = {name: _words(raw[name]) for name in ("arguments", "released") if name in raw}
        return Orders(**{**known(Orders, raw), **lists})
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        hint = f"mend it, or rm {ORDERS} and give the order again: strixd-cli serve MODEL"
        raise Refused(f"Cannot read the orders in {ORDERS}: {error!r}", hint=hint) from None


def _words(raw: object) -> tuple[str, ...]:
    if not isinstance(raw, list) or not all(isinstance(each, str) for each in raw):
        raise ValueError(f"{raw!r} is no list of words")
    return tuple(raw)


async def save_orders(files: Files, orders: Orders) -> None:
    await files.write(ORDERS, json.dumps(asdict(orders)), mode=0o600)


async def load_book(files: Files) -> Book:
    """An account that cannot be read is said and begun anew: it decides nothing."""
    try:
        raw = json.loads(await files.read(INCIDENTS) or "{}")
        kept: dict[str, Any] = {"past": raw} if isinstance(raw, list) else raw  # as strixd 0.1 wrote it
        book = Book(**known(Book, kept))
        now = _incident(book.now) if book.now else None
        loads = {str(key): tuple(map(float, seconds)) for key, seconds in book.loads.items()}
        return Book(Answered(**known(Answered, kept.get("answered", {}))), now, tuple(map(_incident, book.past)), loads)
    except (StrixdError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        log.warning("Cannot read the incidents in %s, which begin anew: %r", INCIDENTS, error)
        return Book()


def _incident(raw: Any) -> Incident:
    moments = tuple(Moment(**known(Moment, moment)) for moment in raw["moments"])
    return Incident(**{**known(Incident, raw), "moments": moments})


async def save_book(files: Files, book: Book) -> None:
    await files.write(INCIDENTS, json.dumps(asdict(book)), mode=0o644)


async def save_last_good(files: Files, text: str) -> None:
    """Written only when it differs: a daemon start with nothing new writes nothing."""
    if await files.read(LAST_GOOD) != text:
        await files.write(LAST_GOOD, text)
