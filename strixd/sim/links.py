"""Links as the simulated kernel has them, and who is logged in over which."""

from __future__ import annotations

from ipaddress import ip_address, ip_interface

from strixd.ports import Counters, Link, Session
from strixd.sim.gate import Gate
from strixd.sim.network import NetworkManager


class SimLinks:
    """ports.Links."""

    def __init__(self, model: NetworkManager, gate: Gate) -> None:
        self._nm = model
        self._gate = gate

    async def read(self) -> tuple[Link, ...]:
        async with self._gate.read("links", "read"):
            return tuple(nic.link for nic in self._nm.nics.values())

    async def counters(self, interface: str) -> Counters | None:
        """No packet is simulated."""
        async with self._gate.read("links", "counters"):
            nic = self._nm.nics.get(interface)
            return Counters(carrier_changes=nic.carrier_changes) if nic else None

    async def sessions(self) -> tuple[Session, ...]:
        async with self._gate.read("links", "sessions"):
            links = tuple(nic.link for nic in self._nm.nics.values() if nic.link.carrier)
            return tuple(Session(peer, own, way(peer, links)) for peer, own in self._nm.sessions)

    async def ssh_ports(self) -> tuple[int, ...]:
        async with self._gate.read("links", "ssh_ports"):
            return self._nm.ssh_ports


def way(peer: str, links: tuple[Link, ...]) -> str:
    """The interface by which packets to this address leave: the one in its network, else the default route's."""
    near = [link.name for link in links if any(ip_address(peer) in ip_interface(a).network for a in link.addresses)]
    far = [link.name for link in links if link.default_route]
    return (near or far or [""])[0]
