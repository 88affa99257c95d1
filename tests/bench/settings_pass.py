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
from tests.lab.lawpass import CLUSTER, WRITES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from strixd.ports import Host


Calls = list[tuple[str, float]]
"""Writing calls in their order, each with the seconds until it returned."""


class Timed:
    """A port whose writing calls are noted."""

    def __init__(self, port: object, name: str, calls: Calls) -> None:
        self._port, self._name, self._calls = port, name, calls

    def __getattr__(self, method: str) -> Any:
        call = getattr(self._port, method)
        return self._writing(method, call) if method in WRITES[self._name] else call

    def _writing(self, method: str, call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def writing(*args: Any, **named: Any) -> Any:
            began = time.monotonic()
            try:
                return await call(*args, **named)
            finally:
                self._calls.append((f"{self._name}.{method}", time.monotonic() - began))

        return writing


@asynccontextmanager
async def watched_host(calls: Calls) -> AsyncIterator[Host]:
    async with real_host() as host:
        ports = {name: cast("Any", Timed(getattr(host, name), name, calls)) for name in WRITES}
        watching = asyncio.create_task(host.watch(lambda _: None))
        yield replace(host, **ports)
        watching.cancel()


async def passes(count: int) -> list[dict[str, Any]]:
    calls: Calls = []
    async with watched_host(calls) as host:
        read = config.read(CLUSTER)
        node = config.find_node(read.config, host.identity.hostname, host.identity.macs)
        wish = Wish(File(read.config, node, read.text), Orders(), read=lambda: wish.file)
        pairs = [(resource, desired) for resource, desired in wish.wanted() if not resource.supervised]
        settings = Settings(host, lambda name, doing, step: None)
        await settings.load()
        for resource, desired in pairs:
            resource.plan(desired, await resource.observe(host, desired))
        return [await one_pass(settings, wish, pairs, calls) for _ in range(count)]


async def one_pass(settings: Settings, wish: Wish, pairs: list[Any], calls: Calls) -> dict[str, Any]:
    calls.clear()
    began = time.monotonic()
    tended = await settings.tend(wish.orders, pairs, text=wish.file.text)
    took = time.monotonic() - began
    left = [f"{name}: {view.why} {step}" for name, view in tended.views.items() for step in view.steps]
    return {"seconds": took, "calls": list(calls), "left": left}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(passes(int(sys.argv[1])))) + "\n")
