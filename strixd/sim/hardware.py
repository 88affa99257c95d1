"""The fabric card as the simulated kernel has it: an E810 whose RDMA port follows its link, until a fault."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from strixd.errors import Rejected, Unavailable
from strixd.ports import Card, Firmware, Gid, Link, Pci, RdmaPort
from strixd.ports.hardware import Transport
from strixd.sim.clock import Clock
from strixd.sim.gate import Gate
from strixd.sim.network import NetworkManager

PORT = ("irdma0", 1)
THUNDERBOLT = "thunderbolt-net"
Fault = Literal["", "none", "down", "gids", "iwarp", "flaps", "safe mode"]
"""No RDMA device; its port is down; no GID; iWARP; the carrier is lost again and again; no DDP package."""


@dataclass(slots=True)
class Rdma:
    """What is wrong with the RDMA of this node's card, and which index its GID of RoCE v2 has. `tos`: what rdma_cm
    gives connections over its port; `loaded`: rdma_cm is."""

    fault: Fault = ""
    index: int = 3
    driver: str = "ice"
    tos: int = 0
    loaded: bool = True

    @property
    def there(self) -> bool:
        return self.fault not in ("none", "safe mode")


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
        """By the same as the real one goes by."""
        before = self._last.get(card.interface)
        same = before is not None and _deciding(before) == _deciding(card)
        since = before.since if before and same else self._clock.now()
        self._last[card.interface] = replace(card, since=since)
        return self._last[card.interface]


def _deciding(card: Card) -> object:
    return card.driver, card.carrier, card.changes, card.ports


class SimRdmaCm:
    """ports.RdmaCm."""

    def __init__(self, rdma: Rdma, gate: Gate) -> None:
        self._rdma = rdma
        self._gate = gate

    async def tos(self, device: str, number: int) -> int:
        async with self._gate.read("rdma_cm", "tos"):
            self._loaded()
            return self._rdma.tos if self._rdma.there and (device, number) == PORT else 0

    async def set_tos(self, device: str, number: int, tos: int) -> None:
        async with self._gate.write("rdma_cm", "set_tos", device, number, tos):
            self._loaded()
            if not self._rdma.there or (device, number) != PORT:
                raise Rejected(f"Cannot set the TOS of {device} port {number}: No such device")
            self._rdma.tos = tos

    def _loaded(self) -> None:
        if not self._rdma.loaded:
            raise Unavailable("Cannot read what rdma_cm gives its connections: not loaded", hint="modprobe rdma_cm")


def _card(link: Link, changes: int, rdma: Rdma) -> Card:
    if link.driver != rdma.driver:
        bolt = link.driver == THUNDERBOLT
        return Card(link.name, link.driver, link.carrier, 40.0 * bolt, link.mtu, changes, thunderbolt=bolt)
    ports = (_port(link, rdma),) if rdma.there else ()
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
    return RdmaPort(*PORT, transport, state, physical, "Ethernet", 100.0, 4096, tuple(gids), "1.71")
