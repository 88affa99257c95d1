"""The lab's networks, seen from outside of the hosts: the fabric cable, the management network, and, in a lab that
asks for it, a second cable.

Each is a bridge in a namespace of its own, so that a cable can be pulled, slowed or made lossy without touching
anything inside a host. A host's namespace lives from power-on to power-off: a dead host keeps no address and no rule.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.lab.layout import (
    CABLE_NETNS,
    FABRIC,
    MANAGEMENT,
    MANAGEMENT_NETNS,
    PREFIX,
    REGISTRY_ADDRESS,
    SPARE,
    SPARE_NETNS,
    Seat,
    run_folder,
)
from tests.lab.shell import attempt, run

BRIDGE = "wire"
JUMBO = "9000"
DEFAULT_MTU = "1500"  # what a network card starts with


def lay_networks() -> None:
    """Their bridges, with nothing plugged in yet."""
    for netns, mtu in ((CABLE_NETNS, JUMBO), (SPARE_NETNS, JUMBO), (MANAGEMENT_NETNS, DEFAULT_MTU)):
        _ip("netns", "add", netns)
        run(["nsenter", f"--net=/run/netns/{netns}", "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1"])
        _ip("-n", netns, "link", "set", "lo", "up")
        quiet = ("stp_state", "0", "forward_delay", "0", "mcast_snooping", "0")
        _ip("-n", netns, "link", "add", BRIDGE, "mtu", mtu, "type", "bridge", *quiet)
        _ip("-n", netns, "link", "set", BRIDGE, "up")
    _ip("-n", MANAGEMENT_NETNS, "addr", "add", f"{REGISTRY_ADDRESS}/24", "dev", BRIDGE)


def plug_host(seat: Seat, *, spare: bool) -> None:
    """A namespace with fresh network cards, as a host has them before its first instruction."""
    unplug_host(seat)
    _ip("netns", "add", seat.netns)
    _ip("-n", seat.netns, "link", "set", "lo", "up")
    _plug(seat, MANAGEMENT_NETNS, (MANAGEMENT, seat.management_mac), DEFAULT_MTU)
    _plug(seat, CABLE_NETNS, (FABRIC, seat.fabric_mac), JUMBO)
    if spare:
        _plug(seat, SPARE_NETNS, (SPARE, seat.spare_mac), JUMBO)
    _ip("-n", MANAGEMENT_NETNS, "link", "set", seat.name, "up")


def unplug_host(seat: Seat) -> None:
    """Power is off: the cards are gone, the far ends of their cables too."""
    for netns in (CABLE_NETNS, SPARE_NETNS, MANAGEMENT_NETNS):
        attempt(["ip", "-n", netns, "link", "del", seat.name])
    attempt(["ip", "netns", "del", seat.netns])


def settle_cables(all_seats: Sequence[Seat]) -> None:
    """Give each host the carriers that it should see now.

    Two hosts share one cable: both lose the carrier when either is without power, or the cable is pulled at either end.
    More than two hang on a switch, and each has its own cable. One at a time: of two hosts that are switched on at
    once, the first would leave both without a carrier, should its look at the second be older than that one's own.
    """
    with _alone():
        for netns in (CABLE_NETNS, SPARE_NETNS):
            _settle(all_seats, netns)


@contextmanager
def _alone() -> Iterator[None]:
    """Among all processes of this lab."""
    folder = os.open(run_folder(), os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _settle(all_seats: Sequence[Seat], netns: str) -> None:
    live = {seat.name for seat in all_seats if _plugged(seat, netns) and not _pulled(seat, netns).exists()}
    whole = len(live) == len(all_seats) or len(all_seats) > 2
    for seat in all_seats:
        if _plugged(seat, netns):
            state = "up" if whole and seat.name in live else "down"
            attempt(["ip", "-n", netns, "link", "set", seat.name, state])


def pull(seat: Seat, all_seats: Sequence[Seat], netns: str = CABLE_NETNS) -> None:
    _pulled(seat, netns).touch()
    settle_cables(all_seats)


def push(seat: Seat, all_seats: Sequence[Seat], netns: str = CABLE_NETNS) -> None:
    _pulled(seat, netns).unlink(missing_ok=True)
    settle_cables(all_seats)


@contextmanager
def losing_large(seat: Seat) -> Iterator[None]:
    """A device on the cable drops what this host sends in packets of more than 1500 bytes, and nothing that it gets."""
    chain = f"type filter hook ingress device {seat.name} priority 0; meta length > {DEFAULT_MTU} drop;"
    nft = ["ip", "netns", "exec", CABLE_NETNS, "nft"]
    run([*nft, f"table netdev large {{ chain {seat.name} {{ {chain} }}; }}"])
    try:
        yield
    finally:
        run([*nft, "delete", "table", "netdev", "large"])


def take_card(seat: Seat) -> None:
    """The fabric card is not in the host any more."""
    _ip("-n", seat.netns, "link", "set", FABRIC, "netns", CABLE_NETNS)


def give_card(seat: Seat) -> None:
    """It comes back."""
    _ip("-n", CABLE_NETNS, "link", "set", FABRIC, "netns", seat.netns)


def lab_namespaces() -> list[str]:
    return [path.name for path in Path("/run/netns").glob(f"{PREFIX}-*")]


def _pulled(seat: Seat, netns: str) -> Path:
    return seat.folder / ("pulled" if netns == CABLE_NETNS else "pulled-spare")


def _plugged(seat: Seat, netns: str) -> bool:
    return attempt(["ip", "-n", netns, "link", "show", "dev", seat.name]).ok


def _plug(seat: Seat, wall: str, card: tuple[str, str], mtu: str) -> None:
    """A cable whose near end is `card` (name, MAC) in the host and whose far end, named for the host, is in `wall`."""
    name, mac = card
    near = ("name", name, "netns", seat.netns, "address", mac, "mtu", DEFAULT_MTU)
    _ip("link", "add", seat.name, "netns", wall, "mtu", mtu, "type", "veth", "peer", *near)
    _ip("-n", wall, "link", "set", seat.name, "master", BRIDGE)


def _ip(*words: str) -> None:
    run(["ip", *words])
