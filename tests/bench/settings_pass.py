"""Runs inside a lab host, for tests/bench/settings.py: passes of strixd over its settings in one process, as the daemon
makes them (its watches run, everything is imported and was looked at once), each with its time and its writing calls.

    python3 -m tests.bench.settings_pass PASSES
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from strixd import config
from strixd.engine.settings import Settings
from strixd.engine.wish import File, Wish
from strixd.node import real_host
from strixd.orders import Orders
from tests.lab.lawpass import CLUSTER, WRITES, Fault, Faulty

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from strixd.ports import Host


@asynccontextmanager
async def watched_host(counted: Fault) -> AsyncIterator[Host]:
    """With every writing call counted."""
    async with real_host() as host:
        ports = {name: cast("Any", Faulty(getattr(host, name), name, counted)) for name in WRITES}
        watching = asyncio.create_task(host.watch(lambda _: None))
        yield replace(host, **ports)
        watching.cancel()


async def passes(count: int) -> list[dict[str, Any]]:
    counted, steps = Fault(), list[tuple[float, str]]()
    async with watched_host(counted) as host:
        read = config.read(CLUSTER)
        node = config.find_node(read.config, host.identity.hostname, host.identity.macs)
        wish = Wish(File(read.config, node, read.text), Orders(), read=lambda: wish.file)
        pairs = [(resource, desired) for resource, desired in wish.wanted() if not resource.supervised]
        settings = Settings(host, lambda name, doing, step: steps.append((time.monotonic(), f"{doing} {name}: {step}")))
        await settings.load()
        for resource, desired in pairs:
            resource.plan(desired, await resource.observe(host, desired))
        return [await one_pass(settings, wish, pairs, (counted, steps)) for _ in range(count)]


async def one_pass(
    settings: Settings, wish: Wish, pairs: list[Any], told: tuple[Fault, list[tuple[float, str]]]
) -> dict[str, Any]:
    counted, steps = told
    counted.calls.clear()
    steps.clear()
    began = time.monotonic()
    tended = await settings.tend(wish.orders, pairs, text=wish.file.text)
    took = time.monotonic() - began
    left = [f"{name}: {view.why} {step}" for name, view in tended.views.items() for step in view.steps]
    at = [(when - began, words) for when, words in steps]
    return {"seconds": took, "calls": list(counted.calls), "left": left, "steps": at}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(passes(int(sys.argv[1])))) + "\n")
