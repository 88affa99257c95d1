"""The last look before the daemon ends: a kernel installed a moment ago must not be booted without its arguments."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from strixd.engine import views
from strixd.engine.settings import Settings
from strixd.engine.status import Status
from strixd.engine.wish import Wish
from strixd.ports import Host

log = logging.getLogger("strixd")

WITHIN = 3.0
"""Seconds; systemd waits five for the daemon to end."""


async def last_look(host: Host, wish: Wish, status: Status) -> None:
    """Mends the command lines that are written, and nothing else. Not when strixd is paused, or holds because it failed
    or somebody else changes them too. Raises nothing but a cancellation."""
    held = any(view.name == "cmdline" and view.condition == "held" for view in status.resources)
    if wish.orders.paused or held or not status.passes:
        return
    try:
        async with asyncio.timeout(WITHIN):
            await _mend(host, wish)
    except TimeoutError:
        log.warning("Cannot look at the boot entries once more: it took longer than %.0f s", WITHIN)


async def _mend(host: Host, wish: Wish) -> None:
    """A change that is under way is left to the next start, as after a kill, and so is an undo."""
    settings = Settings(host, lambda name, doing, step: views.log_step(name, doing, step, 0))
    await settings.load()
    if not settings.left_open:
        pairs = [pair for pair in wish.wanted() if pair[0].name == "cmdline"]
        await settings.tend(replace(wish.orders, undo=""), pairs, text=wish.file.text)
