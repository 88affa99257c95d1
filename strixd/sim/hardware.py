"""The fabric card as the simulated kernel has it: an E810 whose RDMA port follows its link, until a fault."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from strixd.ports import Card, Firmware, Gid, Link, Pci, RdmaPort
from strixd.ports.hardware import Transport
from strixd.sim.clock import Clock
from strixd.sim.gate import Gate
from strixd.sim.network import NetworkManager

THUNDERBOLT = "thunderbolt-net"
Fault = Literal["", "none", "down", "gids", "iwarp", "flaps", "safe mode"]
"""No RDMA device; its port is down; no GID; iWARP; the carrier is lost again and again; no DDP package."""


@dataclass(slots=True)
class Rdma:
    """What is wrong with the RDMA of this node's card, and which index its GID of RoCE v2 has."""

    fault: Fault = ""
    index: int = 3
    driver: str = "ice"


class SimHardware:
    """ports.Hardware."""

    def __init__(self, model: NetworkManager, rdma: Rdma, clock: Clock, gate: Gate) -> None:
        self._nm = model
        self._rdma = rdma
        self._clock = clock
        self._gate = gate
        self._last: dict[str, Card] = {}

    async def card(self, interface: str) -> Card | None:
        async with self._gate.read("hardware", "card"):
            nic = self._nm.nics.get(interface)
            return self._since(_card(nic.link, nic.carrier_changes, self._rdma)) if nic else None

    def _since(self, card: Card) -> Card:
        before = self._last.get(card.interface)
        same = before is not None and replace(before, since=0.0) == card
        since = before.since if before and same else self._clock.now()
        self._last[card.interface] = replace(card, since=since)
        return self._last[card.interface]


def _card(link: Link, changes: int, rdma: Rdma) -> Card:
    if link.driver != rdma.driver:
        bolt = link.driver == THUNDERBOLT
        return Card(link.name, link.driver, link.carrier, 40.0 * bolt, link.mtu, changes, thunderbolt=bolt)
    ports = () if rdma.fault in ("none", "safe mode") else (_port(link, rdma),)
    return Card(
        link.name,
        link.driver,
        link.carrier,
        speed=100.0,
        mtu=link.mtu,
        changes=changes,
        lost=9 if rdma.fault == "flaps" else 0,
        pci=Pci("0000:c2:00.0", 16.0, 4, 16.0, 16),
        ports=ports,
        firmware=Firmware("4.91 0x8001fa1c 1.3909.0", safe_mode=rdma.fault == "safe mode"),
    )


def _port(link: Link, rdma: Rdma) -> RdmaPort:
    up = link.carrier and rdma.fault != "down"
    transport: Transport = "iWARP" if rdma.fault == "iwarp" else "RoCE"
    addresses = [address.partition("/")[0] for address in link.addresses] if rdma.fault != "gids" else []
    gids = [
        Gid(rdma.index - 1 + 2 * place + second, "RoCE v2" if second else "IB/RoCE v1", ip, link.name)
        for place, ip in enumerate(addresses)
        for second in (False, True)
    ]
    state, physical = ("ACTIVE", "LinkUp") if up else ("DOWN", "Disabled")
    return RdmaPort("irdma0", 1, transport, state, physical, "Ethernet", 100.0, 4096, tuple(gids), "1.71")
