"""Interfaces that come, go and are called otherwise, as Thunderbolt's do and any card's after a change of slots."""

from __future__ import annotations

from dataclasses import replace

from strixd.ports import Link
from strixd.sim.network import Nic
from strixd.sim.world import SPARE, World


def remove(world: World, name: str) -> Link:
    """The interface is gone; gives what it was. What NetworkManager did with it ends."""
    nic = world.network.nics[name]
    world.network.release(nic, "unavailable")
    del world.network.nics[name]
    world.changed(f"link {name}")
    return nic.link


def insert(world: World, link: Link) -> Nic:
    """An interface comes; a stored profile that fits gets it by itself."""
    nic = world.network.add(replace(link, addresses=(), mtu=1500))
    world.network.autoconnect(nic)
    world.changed(f"link {link.name}")
    return nic


def rename(world: World, old: str, new: str) -> Nic:
    """As between two boots."""
    return insert(world, replace(remove(world, old), name=new))


def spared(world: World) -> World:
    """The same with a second cable between two nodes, by Thunderbolt."""
    insert(world, Link(SPARE, "02:ab:c0:00:00:01", "thunderbolt-net", carrier=True, max_mtu=65522))
    return world
