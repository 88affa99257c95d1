"""The fabric link, and what reaches the peers over it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from strixd import fabric, fence
from strixd.config import Node
from strixd.desired import fabric_of
from strixd.doctor.facts import Cables, Clocks, Crossed, Door, Doors, Lowered, Own
from strixd.doctor.gather import Scene
from strixd.doctor.read.programs import output
from strixd.fabric import Pick
from strixd.host.files import read_text
from strixd.host.hardware import SysfsCards
from strixd.ports import Card, Link, Way
from strixd.resources import mtu

T = TypeVar("T")


def pick(own: Own, links: tuple[Link, ...]) -> Pick:
    return fabric.pick(fabric_of(own.node), links, management=own.config.fabric.management)


def cables(own: Own, links: tuple[Link, ...]) -> Cables:
    named = fabric_of(own.node)
    first, spare = fabric.both(named, links, management=own.config.fabric.management)
    return Cables(first, spare if named.spare else None)


def hardware(scene: Scene, pick: Pick) -> Card | None:
    """None without a link."""
    if pick.link is None:
        return None
    return asyncio.run(SysfsCards(scene.path("/sys"), scene.around.firmware).card(pick.link.name))


def uptime(scene: Scene) -> float:
    """Seconds since the host has booted."""
    return float(scene.path("/proc/uptime").read_text().split()[0])


def lowered(scene: Scene) -> Lowered:
    return Lowered(mtu.loads(read_text(str(scene.path(mtu.RECORD)))))


def crossed(scene: Scene, own: Own, pick: Pick) -> Crossed | None:
    """None where nothing can cross: no link, no carrier or no address of ours."""
    link, source = pick.link, str(own.node.ip.ip)
    if link is None or not link.carrier or not any(each.partition("/")[0] == source for each in link.addresses):
        return None
    addresses = tuple(str(peer.ip.ip) for peer in own.peers)
    way = Way(link.name, source, addresses, link.mtu)
    return Crossed(link.mtu, dict(_each(own, lambda peer: scene.around.sight(way, str(peer.ip.ip)))))


def doors(scene: Scene, own: Own) -> Doors:
    """Ray's port on the head; on a worker that of its node manager, which the fence names."""

    def port(peer: Node) -> int:
        return own.config.cluster.ray_port if peer.role == "head" else fence.ray_ports(own.config)[0]

    def knock(peer: Node) -> Door:
        return scene.around.knock(str(peer.ip.ip), port(peer))

    tried = _each(own, knock)
    ports = {peer.name: port(peer) for peer in own.peers}
    return Doors(tuple((name, ports[name], door) for name, door in tried))


def clocks(scene: Scene, own: Own) -> Clocks:
    """Raises PermissionError but for root."""
    return Clocks(dict(_each(own, lambda peer: scene.around.clock(str(peer.ip.ip)))))


def synchronized() -> bool:
    """Whether a time server sets this host's clock, as systemd knows."""
    return output("timedatectl", "show", "--property=NTPSynchronized", "--value").strip() == "yes"


def _each(own: Own, ask: Callable[[Node], T]) -> list[tuple[str, T]]:
    """All peers at once."""
    with ThreadPoolExecutor(max(1, len(own.peers))) as threads:
        return list(zip([peer.name for peer in own.peers], threads.map(ask, own.peers), strict=True))
