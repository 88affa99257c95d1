"""All ports of one node, assembled: the real adapters, or the simulation. The adapters are imported only when used."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

from strixd.api.listen import bind
from strixd.desired import PROBE_FOLDER
from strixd.ports import DEFAULT_GRUB, KERNEL_CMDLINE, Host, Identity, Wake
from strixd.resources import image, ray, vllm
from strixd.workload import EVIDENCE

UNITS = (f"{ray.NAME}.service", f"{vllm.NAME}.service", image.UNIT, EVIDENCE)
BOOT_FILES = ("/boot/loader/entries/*.conf", KERNEL_CMDLINE, DEFAULT_GRUB)


@asynccontextmanager
async def real_host(*, rollback: float = 60.0) -> AsyncIterator[Host]:
    """`rollback`: whole seconds until NetworkManager takes back a change of the link that was not confirmed."""
    from strixd.host.bootloader import Grubby
    from strixd.host.bus import Bus
    from strixd.host.crossing import Pings
    from strixd.host.effects import Sysfs
    from strixd.host.files import LocalFiles
    from strixd.host.firewalld import Firewalld
    from strixd.host.hardware import SysfsCards
    from strixd.host.hub import HuggingFace
    from strixd.host.journal import Journald
    from strixd.host.link import KernelLinks, LinkEvents
    from strixd.host.listeners import KernelListeners
    from strixd.host.login import Login
    from strixd.host.networkmanager import NetworkManager
    from strixd.host.ray import RayByProbe
    from strixd.host.rdma_cm import ConfigfsRdmaCm
    from strixd.host.systemd import Systemd
    from strixd.host.vllm import VllmApi
    from strixd.host.watchfiles import FileWatch
    from strixd.host.work import Workloads

    async with Bus() as bus:
        links, cards, network = KernelLinks(), SysfsCards(), NetworkManager(bus, time=rollback)
        firewall, units = Firewalld(bus), Systemd(bus, UNITS)
        cluster, model = RayByProbe(f"{PROBE_FOLDER}/socket"), VllmApi()
        crossings = Pings()

        async def watch(wake: Wake) -> None:
            def link_changed(reason: str) -> None:
                links.forget()
                cards.forget()
                crossings.again()
                wake(reason)

            network.watch(wake)
            firewall.watch(wake)
            with closing(LinkEvents(link_changed)), closing(FileWatch(BOOT_FILES, wake)):
                async with asyncio.TaskGroup() as tasks:
                    for port in (units, cluster, model, crossings, cards):
                        tasks.create_task(port.watch(wake))

        yield Host(
            identity=Identity(socket.gethostname(), _boot(), tuple(link.mac for link in await links.read())),
            links=links,
            hardware=cards,
            rdma_cm=ConfigfsRdmaCm(),
            crossings=crossings,
            network=network,
            firewall=firewall,
            boot=Grubby(),
            kernel=Sysfs(),
            power=Login(bus),
            units=units,
            files=LocalFiles(),
            ray=cluster,
            model=model,
            work=Workloads(),
            journal=Journald(),
            hub=HuggingFace(),
            listeners=KernelListeners(),
            now=time.time,
            steady=time.monotonic,
            sleep=asyncio.sleep,
            watch=watch,
        )


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


SIMULATED = """
[cluster]
name = "simulated"

[[node]]
name = "halo1"
role = "head"
address = "192.168.100.1/30"
interface = "enp194s0np0"

[[node]]
name = "halo2"
role = "worker"
address = "192.168.100.2/30"
interface = "enp194s0np0"
"""
FASTER = 10.0  # than the clock


@asynccontextmanager
async def simulated_node(socket_path: str) -> AsyncIterator[Host]:
    """halo1 of a cluster of two, with its cluster key; faults can be injected through `socket_path`.faults."""
    from strixd.sim import World, faults, simulated_host
    from strixd.sim.clock import Clock

    world = World(clock=Clock(factor=FASTER, epoch=time.time()))
    world.disk.files["/etc/strixd/cluster.key"] = "simulated"
    async with faults.listening(world, bind(f"{socket_path}.faults")):
        yield simulated_host(world)
