"""What must outlive a reboot or a power cut: orders, incidents, the last good file. Written whole, with fsync.

Orders are the only state that decides anything; conditions and phases are always derived.
"""

from __future__ import annotations

import json
import logging
from dataclasses import asdict

from strixd.engine.status import Incident, Moment
from strixd.errors import Refused, StrixdError
from strixd.orders import Orders
from strixd.ports import Files

log = logging.getLogger("strixd")

ORDERS = "/var/lib/strixd/orders.json"
INCIDENTS = "/var/lib/strixd/incidents.json"
LAST_GOOD = "/var/lib/strixd/last-good.toml"
KEPT = 50  # incidents


async def load_orders(files: Files) -> Orders:
    """No file: no orders. A file that is not ours to read ends the daemon rather than losing an order silently."""
    text = await files.read(ORDERS)
    if text is None:
        return Orders()
    try:
        raw = json.loads(text)
        return Orders(**{**raw, "arguments": tuple(raw["arguments"]), "released": tuple(raw.get("released", ()))})
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        hint = f"mend it, or rm {ORDERS} and give the order again: strixd-cli serve MODEL"
        raise Refused(f"Cannot read the orders in {ORDERS}: {error!r}", hint=hint) from None


async def save_orders(files: Files, orders: Orders) -> None:
    await files.write(ORDERS, json.dumps(asdict(orders)), mode=0o600)


async def load_incidents(files: Files) -> tuple[Incident, ...]:
    """A history that cannot be read is said and begun anew: it decides nothing."""
    try:
        raw = json.loads(await files.read(INCIDENTS) or "[]")
        return tuple(Incident(**{**one, "moments": tuple(Moment(**m) for m in one["moments"])}) for one in raw)
    except (StrixdError, ValueError, TypeError, KeyError, RecursionError) as error:
        log.warning("Cannot read the history in %s, which begins anew: %r", INCIDENTS, error)
        return ()


async def save_incidents(files: Files, incidents: tuple[Incident, ...]) -> None:
    await files.write(INCIDENTS, json.dumps([asdict(one) for one in incidents[-KEPT:]]), mode=0o644)


async def save_last_good(files: Files, text: str) -> None:
    """Written only when it differs: a daemon start with nothing new writes nothing."""
    if await files.read(LAST_GOOD) != text:
        await files.write(LAST_GOOD, text)
