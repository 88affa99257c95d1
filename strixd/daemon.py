"""The composition root: config → host or simulation → engine → socket; signals, readiness, watchdog.

One TaskGroup; the death of any task is the death of the daemon, and systemd starts it again. Nothing here touches a
workload: SIGTERM ends the daemon and leaves the model answering.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path

from strixd import __version__, config, messages
from strixd.api import metrics, wire
from strixd.api.listen import bind, inherited
from strixd.api.scrape import Scrape
from strixd.api.server import Server
from strixd.engine import memory
from strixd.engine.engine import Engine
from strixd.engine.lastlook import last_look
from strixd.engine.reconcile import LATEST, Reconciler
from strixd.engine.wish import File, Wish
from strixd.errors import CardAway, ConfigError, Refused, StrixdError, Unavailable
from strixd.host.alone import alone
from strixd.host.journal import setup_logging
from strixd.host.notify import Notify
from strixd.node import SIMULATED, real_host, simulated_node
from strixd.ports import Host, Identity

log = logging.getLogger("strixd")

LATE = 5.0
"""Seconds that a card by which the file knows this host gets to come, before another start looks for it."""


def main(argv: Sequence[str] | None = None) -> int:
    options = _options(argv)
    setup_logging(debug=options.debug)
    try:
        asyncio.run(_until_stopped(options))
    except StrixdError as failure:
        _say(failure)
        return failure.exit_status
    return 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="strixd", description="Keep one large model answering (see strixd-cli).")
    parser.add_argument("--config", default="", metavar="FILE", help=f"default {config.EXPECTED_AT}")
    where = os.environ.get("STRIXD_SOCKET", wire.ADDRESS)
    parser.add_argument("--socket", default=where, metavar="PATH", help="the control socket, unless systemd passes it")
    parser.add_argument("--simulate", action="store_true", help="a node in memory: no root, D-Bus or network")
    parser.add_argument("--debug", action="store_true", help="log everything that is read")
    parser.add_argument("--version", action="version", version=f"strixd {__version__}")
    return parser.parse_args(argv)


def _say(failure: StrixdError) -> None:
    extra = messages.fields("CONFIG_REFUSED", code=failure.code) if isinstance(failure, ConfigError) else None
    for line in (*str(failure).splitlines(), *filter(None, [failure.hint])):
        log.error("%s", line, extra=extra)


async def _until_stopped(options: argparse.Namespace) -> None:
    """SIGTERM and SIGINT end everything; the loop's own cleanup is all there is to do."""
    running = asyncio.current_task()
    assert running
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, running.cancel)
    notify = Notify()
    with suppress(asyncio.CancelledError), nullcontext() if options.simulate else alone():
        async with simulated_node(options.socket) if options.simulate else real_host() as host:
            await _run(options, host, notify)
    notify.stopping()
    log.info("Stopped; what it started runs on", extra=messages.fields("STOPPED"))


async def _run(options: argparse.Namespace, host: Host, notify: Notify) -> None:
    wish = await _wish(partial(_read, options, host.identity), host)
    listener = inherited() or bind(options.socket)
    loop = Reconciler(host, wish, notify.watchdog, latest=min(LATEST, notify.patience / 3))
    engine = Engine(loop)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, partial(_hangup, engine, notify))
    node, whose = wish.file.node, wish.file.config.cluster.name
    log.info(
        "strixd %s: %s of cluster %s, %s", __version__, node.role, whose, node.name, extra=messages.fields("STARTED")
    )
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(host.watch(loop.wake), name="watch")
            tasks.create_task(loop.run(), name="reconcile")
            tasks.create_task(Server(engine, listener).run(), name="serve")
            _measure(tasks, loop, wire.metrics_beside(options.socket))
            tasks.create_task(_narrate(engine, notify), name="narrate")
    except asyncio.CancelledError:
        await last_look(host, loop.wish, engine.status())
        raise


def _measure(tasks: asyncio.TaskGroup, loop: Reconciler, path: str) -> None:
    scrape = Scrape(partial(metrics.page, loop))
    tasks.create_task(scrape.on_unix(path), name="metrics")
    tasks.create_task(scrape.on_tcp(lambda: loop.wish.file.config.metrics.listen, loop.changed), name="metrics by TCP")


async def _narrate(engine: Engine, notify: Notify) -> None:
    """Ready after the first pass; then one line for `systemctl status`."""
    seen = await engine.changed(0)
    while not engine.status().passes:  # told in the middle of the first one, too
        seen = await engine.changed(seen)
    notify.ready()
    while True:
        now = engine.status()
        model = f", {now.model.name}" if now.model else ""
        notify.status(f"{now.phase}{model}")
        seen = await engine.changed(seen)


def _hangup(engine: Engine, notify: Notify) -> None:
    notify.reloading()
    try:
        engine.reread()
    except Refused as refused:
        _say(refused)
    notify.ready()


async def _wish(read: Callable[[], File], host: Host) -> Wish:
    """A file that cannot be used is refused, unless there is a last good one: then that is kept true, degraded."""
    orders, problem = await memory.load_orders(host.files), ""
    try:
        file = read()
    except ConfigError as error:
        file, problem = await _last_good(host, error), str(error)
        text = f"{error}\nUntil it is mended, {memory.LAST_GOOD} is kept true"
        log.error("%s", text, extra=messages.fields("CONFIG_REFUSED", code=error.code))
    return Wish(file, orders, read, problem)


async def _last_good(host: Host, refused: ConfigError) -> File:
    """Where there is none that can be used either, raises what was refused: that is what can be mended. Unavailable
    where a card may be what is missing: its driver may come after strixd, and the next start will see it."""
    problems = [refused]
    good = await host.files.read(memory.LAST_GOOD)
    try:
        if good is not None:
            return _file(config.parse(good, memory.LAST_GOOD), host.identity)
    except ConfigError as error:
        problems.append(error)
    if not any(isinstance(problem, CardAway) for problem in problems):
        raise refused
    await host.sleep(LATE)
    raise Unavailable(str(refused), hint="Its card may come later: strixd is started again and looks for it")


def _read(options: argparse.Namespace, identity: Identity) -> File:
    if options.simulate and not options.config:
        return _file(config.parse(SIMULATED, "the simulated cluster.toml"), identity)
    return _file(config.read(Path(options.config or config.EXPECTED_AT)), identity)


def _file(read: config.ConfigFile, identity: Identity) -> File:
    try:
        node = config.find_node(read.config, identity.hostname, identity.macs)
    except ConfigError as error:
        raise type(error)(tuple(f"{read.path}:0: {each}" for each in error.complaints)) from None
    return File(read.config, node, read.text)
