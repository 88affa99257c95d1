"""Two parties who change the same thing back and forth: after two repairs within a minute strixd holds. Pure."""

from __future__ import annotations

from strixd.engine.hold import LONGEST, Hold
from strixd.errors import Rejected

WITHIN = 60.0  # seconds
REPAIRS = 2


def third(repairs: tuple[float, ...], now: float) -> bool:
    return len([at for at in repairs if now - at < WITHIN]) >= REPAIRS


def counted(repairs: tuple[float, ...], now: float) -> tuple[float, ...]:
    return (*repairs, now)[-REPAIRS:]


def held(key: object, found: str, now: float) -> Hold:
    why = f"{found}, a third time within a minute: somebody else wants it otherwise, and strixd does not fight"
    hint = "journalctl -n 50 tells who; when that is settled: strixd-cli apply"
    return Hold(key, now + LONGEST, 1, Rejected(why, hint=hint))
