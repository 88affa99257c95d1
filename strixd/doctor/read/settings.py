"""cluster.toml, orders and known versions as they lie on the disk, and what a running strixd says."""

from __future__ import annotations

import asyncio

from strixd import config
from strixd.config import find_node
from strixd.doctor.facts import Complaints, Daemon, Own
from strixd.doctor.gather import Scene
from strixd.doctor.known import OVER, Known, known
from strixd.engine.memory import load_orders
from strixd.errors import ConfigError, StrixdError
from strixd.host.files import LocalFiles, read_text
from strixd.orders import Orders
from strixd.ports import Link


class Below(LocalFiles):
    """The files of a host whose root is a folder."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    async def read(self, path: str) -> str | None:
        return read_text(str(self._scene.path(path)))


def own(scene: Scene) -> Own:
    """The cards are read from sysfs: for who this host is, netlink need not answer. Raises ConfigError."""
    read = config.read(scene.path(config.EXPECTED_AT), config.EXPECTED_AT).config
    name = scene.path("/proc/sys/kernel/hostname").read_text().strip()
    macs = [path.read_text().strip() for path in scene.path("/sys/class/net").glob("*/address")]
    return Own(read, find_node(read, name, macs))


def complaints(scene: Scene) -> Complaints:
    """What own() refuses is a fact, too."""
    try:
        own(scene)
    except ConfigError as error:
        return Complaints(error.complaints, error.hint)
    return Complaints()


def links(scene: Scene) -> tuple[Link, ...]:
    return scene.around.links()


def orders(scene: Scene) -> Orders:
    return asyncio.run(load_orders(Below(scene)))


def known_versions(scene: Scene) -> Known:
    return known(read_text(str(scene.path(OVER))))


def daemon(scene: Scene) -> Daemon:
    try:
        return Daemon(scene.around.status())
    except StrixdError as error:
        return Daemon(None, str(error), error.hint)
