"""A strixd over a world, started, killed and rebooted at will, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from strixd import config
from strixd.engine import memory
from strixd.engine.engine import Engine
from strixd.engine.reconcile import Reconciler
from strixd.engine.status import Status
from strixd.engine.wish import File, Wish
from strixd.ports import Host
from strixd.sim import World, clock, simulated_host
from strixd.sim.gate import Killed
from tests.cluster_file import cluster_file

KEY = "/etc/strixd/cluster.key"
MODEL = "strixd/tiny"


def names(count: int) -> tuple[str, ...]:
    return tuple(f"halo{number}" for number in range(1, count + 1))


def cluster_toml(count: int = 2) -> str:
    return cluster_file(count=count, name="sim", prefix=24, card='driver = "ice"')


def world(hostname: str = "halo1", *, count: int = 2) -> World:
    """A node as installed, with the cluster key in place."""
    made = World(hostname=hostname, names=names(count))
    made.disk.put(KEY, "secret\n", 0o600)
    return made


Make = Callable[[Host, Wish, Callable[[], None]], Reconciler]


class Node:
    """One node: `world` stays, strixd comes and goes. `make`: what its loop is made by."""

    def __init__(self, world: World, *, count: int = 2, make: Make = Reconciler) -> None:
        self.world = world
        self._make = make
        self.text = cluster_toml(count)
        self._task: asyncio.Task[None] | None = None
        self.engine: Engine | None = None
        self.loop: Reconciler | None = None

    @property
    def status(self) -> Status:
        assert self.engine
        return self.engine.status()

    async def start(self) -> Engine:
        host = simulated_host(self.world)
        wish = Wish(self._read(), await memory.load_orders(host.files), self._read)
        self.loop = loop = self._make(host, wish, lambda: None)
        self.engine = Engine(loop)
        self._task = asyncio.create_task(_live(loop), name="strixd")
        await self.engine.changed(0)
        return self.engine

    def _read(self) -> File:
        settings = config.parse(self.text, "cluster.toml").config
        node = config.find_node(settings, self.world.hostname, self.world.identity.macs)
        return File(settings, node, self.text)

    async def kill(self) -> None:
        """As SIGKILL: nothing is said or written any more."""
        if self._task:
            self._task.cancel()
            with suppress(asyncio.CancelledError, BaseExceptionGroup, Killed):
                await self._task
        self._task = None

    async def restart(self) -> None:
        await self.kill()
        await self.start()

    async def reboot(self, *, seconds: float = 20.0) -> None:
        await self.kill()
        self.world.reboot()
        await self.world.clock.sleep(seconds)
        await self.start()

    @property
    def dead(self) -> bool:
        return self._task is None or self._task.done()

    async def until(self, wanted: Callable[[Status], bool], *, seconds: float) -> float:
        """Waits for a status that knows a whole pass, and gives the simulated seconds that it took."""
        begun = self.world.clock.steady()
        while not (self.status.passes and wanted(self.status)):
            assert self._task
            if self._task.done():
                self._task.result()
            assert self.world.clock.steady() - begun < seconds, explain(self.status)
            await self.world.clock.sleep(0.5)
        return self.world.clock.steady() - begun

    async def answers(self, *, seconds: float) -> float:
        return await self.until(answering, seconds=seconds)


async def _live(loop: Reconciler) -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(loop.host.watch(loop.wake))
        tasks.create_task(loop.run())


def answering(status: Status) -> bool:
    return status.phase == "ready" and status.model is not None and status.model.answered_at > 0


def explain(status: Status) -> str:
    views = "; ".join(f"{view.name} {view.condition} {view.why}" for view in status.resources)
    return f"{status.phase}: {views}"


@asynccontextmanager
async def living(world: World, *, count: int = 2, make: Make = Reconciler) -> AsyncIterator[Node]:
    node = Node(world, count=count, make=make)
    await node.start()
    try:
        yield node
    finally:
        await node.kill()


@asynccontextmanager
async def serving(*, count: int = 2, make: Make = Reconciler) -> AsyncIterator[Node]:
    """A head whose model answers."""
    async with living(world(count=count), count=count, make=make) as node:
        assert node.engine
        await node.engine.serve(MODEL, (), by="uid 0: serve")
        await node.answers(seconds=120)
        yield node


def starts(world: World, unit: str) -> int:
    """How often strixd has started this unit."""
    return sum(1 for call in world.calls.writes if (call.method, call.args) == ("start", (unit,)))


def virtual(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """An async test in virtual time."""

    def run(*args: Any, **kwargs: Any) -> None:
        async def main() -> None:
            await test(*args, **kwargs)

        clock.run(main())

    run.__name__ = getattr(test, "__name__", "test")
    run.__doc__ = test.__doc__
    run.__wrapped__ = test  # type: ignore[attr-defined]  # pytest reads the parameters there
    return run
