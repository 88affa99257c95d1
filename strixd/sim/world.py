"""One node in memory, with the cluster around it: what every simulated port reads and changes.

It outlives the strixd processes that look at it. Nothing here knows of strixd: files, units and faults have the
consequences that facts about the real services give them.
"""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from typing import Any

from strixd.engine.record import HISTORY
from strixd.ports import BootEntry, Identity, Link, Wake
from strixd.sim.boot import BootFiles, booted
from strixd.sim.clock import Clock
from strixd.sim.crossing import Wire
from strixd.sim.fetch import Fetch, Registry
from strixd.sim.files import Disk
from strixd.sim.firewall import Firewalld
from strixd.sim.gate import Calls, Fault, Killed, When
from strixd.sim.hardware import Rdma
from strixd.sim.network import Automatic, NetworkManager
from strixd.sim.pace import Pace
from strixd.sim.programs import Plain
from strixd.sim.ray import Cluster, Node, RayNode
from strixd.sim.units import Program, Systemd
from strixd.sim.vllm import Server, Serving

FABRIC = "enp194s0np0"
MANAGEMENT = "mgmt0"
SPARE = "thunderbolt0"
RAY, VLLM, IMAGE = "strixd-ray.service", "strixd-vllm.service", "strixd-image.service"
EVIDENCE = "strixd-evidence.service"
CLEANED_UP = 1.5  # seconds from the end of a container's first process to that of its unit (2 s on a busy host, seen)
DEVICES = frozenset({"/dev/kfd", "/dev/dri"})


class World:
    """`names`: the nodes of the cluster in the order of their addresses, this one among them; `head`: which leads."""

    def __init__(
        self,
        *,
        hostname: str = "halo1",
        names: tuple[str, ...] = ("halo1", "halo2"),
        head: str = "halo1",
        clock: Clock | None = None,
        pace: Pace | None = None,
    ) -> None:
        self.hostname = hostname
        self.clock = clock or Clock()
        self.pace = pace or Pace()
        self.calls = Calls()
        self.watchers: list[Wake] = []
        self.boots = 1
        self.reboots_asked = 0
        self.disk = Disk(present=set(DEVICES))
        self.boot_files = BootFiles()
        self.registry = Registry()
        self.serving = Serving()
        self.hub: dict[str, str] = {}
        self.firewalld = Firewalld(self.changed)
        self.network = NetworkManager(self.clock, self.firewalld, self.changed)
        self.peers_on = ""  # the link of theirs that the other nodes are on; "" while they follow this one
        self.wire = Wire()
        self.rdma = Rdma()
        self.cluster = _cluster(self, names, head)
        self.systemd = Systemd(self.clock, self.disk, self._program, self.changed)
        self.cluster.titled = lambda titles: self.systemd.titles.update({RAY: titles})
        self._install(names.index(hostname) + 1)

    def _install(self, number: int) -> None:
        """What a freshly installed node has: two links, the fabric one occupied, and the units of the package."""
        self.network.add(
            Link(MANAGEMENT, "52:54:00:00:00:01", "virtio_net", True, addresses=("10.0.0.5/24",), default_route=True),
            automatic=Automatic("auto-mgmt0", "Wired connection 2", MANAGEMENT, "10.0.0.5/24"),
        )
        self.network.add(
            Link(FABRIC, f"50:7c:6f:00:00:{number:02x}", "ice", True, max_mtu=9702),
            automatic=Automatic("auto-fabric", "Wired connection 1", FABRIC),
            state="activating",
        )
        self.systemd.fixed[IMAGE] = "[Service]\nType=oneshot\n"
        self.systemd.fixed[EVIDENCE] = "[Service]\nType=oneshot\nExecStart=/bin/sleep 1\n"
        self.systemd.reload()

    @property
    def boot_id(self) -> str:
        return f"{self.boots:08x}-simulated"

    @property
    def identity(self) -> Identity:
        macs = tuple(sorted(nic.link.mac for nic in self.network.nics.values()))
        return Identity(self.hostname, self.boot_id, macs)

    def changed(self, reason: str) -> None:
        """Something happened by itself or by a call: whoever watches looks again."""
        if SPARE in self.network.nics:
            self.cluster.plug(cable=self._reached())
        for wake in tuple(self.watchers):
            wake(reason)

    def _program(self, name: str, text: str) -> Program:
        if name == IMAGE:
            return Fetch(self.registry, self.disk, self.clock.now, self.boot_id)
        image = re.search(r"^Image=(.*)$", text, re.M)
        if image and not self.registry.runs(image.group(1)):
            return Plain('Exec=sh -c "exit 125"')
        if not image or name not in (RAY, VLLM):
            return Plain(text)
        return RayNode(self.cluster) if name == RAY else Server(self.serving, self.cluster, text)

    def server(self) -> Server | None:
        record = self.systemd.records.get(VLLM)
        return record.program if record and isinstance(record.program, Server) else None

    # What may go wrong.

    def fail(self, call: str, error: BaseException, *, at: int = 1, when: When = "before") -> None:
        """The `at`-th matching call from now on raises `error`; `call` as in gate.Fault."""
        self.calls.faults.append(Fault(call, at, error, when))

    def kill_at(self, at: int, *, call: str = "write", when: When = "before") -> None:
        """strixd is killed at its `at`-th matching call from now on."""
        self.fail(call, Killed(f"at call {at}"), at=at, when=when)

    def plug(self, *, cable: bool, link: str = FABRIC) -> None:
        self.network.carrier(link, present=cable)
        if SPARE not in self.network.nics:
            self.cluster.plug(cable=cable)

    def _reached(self) -> bool:
        """Of two cables the one whose link has the fabric's address leads to the other nodes, when they are on it."""
        links = [nic.link for nic in self.network.nics.values() if self.peers_on in ("", nic.name)]
        own = f"{self.cluster.own.address}/"
        return any(link.carrier and any(each.startswith(own) for each in link.addresses) for link in links)

    def kill(self, unit: str) -> None:
        """SIGKILL to a unit's main process. Ray's `--block` sees its raylet die and exits 1."""
        record = self.systemd.records.get(unit)
        if record and record.run:
            run = record.run
            run.after(0.8, lambda: run.dies(1, CLEANED_UP)) if unit == RAY else run.killed()

    def reboot(self) -> None:
        """All that strixd does not survive either: build a new host on this world afterwards."""
        self.boots += 1
        self.watchers.clear()
        self.disk.boot()
        self.systemd.boot()
        self.firewalld.runtime.clear()
        self.network.boot()
        self.rdma.tos = 0
        self.boot_files.content = booted(self.boot_files.content)

    def ask_reboot(self) -> None:
        """login1 was told to; whoever plays the host reboots it (`reboot`), for strixd must end first."""
        self.reboots_asked += 1

    def install_kernel(self, version: str, options: str) -> None:
        """A new kernel's entry, first in line."""
        boot = self.boot_files.content
        self.boot_files.content = replace(boot, entries=(BootEntry(version, options), *boot.entries))
        self.changed("boot entries")

    # What a law compares.

    @property
    def writes(self) -> list[str]:
        return [str(call) for call in self.calls.writes]

    def snapshot(self) -> dict[str, Any]:
        """Everything that lasts or is in force, without times and counters."""
        nm = self.network
        return {
            "profiles": dict(nm.stored),
            "shadowed profiles": dict(nm.shadowed),
            "devices": {nic.name: (nic.profile, nic.state, nic.link) for nic in nm.nics.values()},
            "zones": dict(self.firewalld.zones),
            "policies": dict(self.firewalld.policies),
            "runtime zones": dict(self.firewalld.runtime),
            "permanent zones": dict(self.firewalld.files),
            "boot": asdict(self.boot_files.content),
            "files": {path: text for path, text in self.disk.files.items() if path != HISTORY},
            "tos": self.rdma.tos,
            "limits": dict(self.systemd.limits),
            "units": {name: (r.text, r.state.active) for name, r in self.systemd.records.items() if r.text or r.run},
        }


def _cluster(world: World, names: tuple[str, ...], head: str) -> Cluster:
    nodes = {name: Node(name, f"192.168.100.{number}") for number, name in enumerate(names, 1)}
    cluster = Cluster(world.clock, world.pace, nodes.pop(world.hostname), world.changed)
    cluster.others, cluster.head = nodes, head
    return cluster


def leased(world: World) -> World:
    """The same with DHCP answering on the fabric link, so that its automatic profile is active."""
    nm = world.network
    nm.automatic["auto-fabric"] = replace(nm.automatic["auto-fabric"], lease="172.16.0.9/24")
    nic = nm.nics[FABRIC]
    nic.state, nic.link = "activated", replace(nic.link, addresses=("172.16.0.9/24",))
    return world
