"""The last look before the daemon ends: a kernel installed a moment ago must not be booted without its arguments."""

from __future__ import annotations

import asyncio
import logging

from strixd.engine import views
from strixd.engine.apply import apply
from strixd.engine.status import Status
from strixd.engine.wish import Wish
from strixd.errors import StrixdError
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
    except StrixdError as failure:
        log.warning("%s", failure)


async def _mend(host: Host, wish: Wish) -> None:
    resource, desired = next((each, desired) for each, desired in wish.wanted() if each.name == "cmdline")
    plan = resource.plan(desired, await resource.observe(host, desired))
    if not plan.steps:
        return
    outcome = await apply(resource, desired, host, plan, lambda doing, step: views.log_step("cmdline", doing, step, 0))
    if outcome.failure:
        raise outcome.failure
