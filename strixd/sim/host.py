"""The simulated host: the ports of one strixd process over a world. After a kill or a reboot, make another."""

from __future__ import annotations

import asyncio

from strixd.ports import Host, Wake
from strixd.sim.boot import SimBoot, SimKernel, SimPower
from strixd.sim.crossing import SimCrossings
from strixd.sim.files import SimFiles, SimHub, SimJournal
from strixd.sim.firewall import SimFirewall
from strixd.sim.gate import Gate
from strixd.sim.hardware import SimHardware, SimRdmaCm
from strixd.sim.links import SimLinks
from strixd.sim.nm_port import SimNetwork
from strixd.sim.ray_port import SimRay
from strixd.sim.units import SimUnits
from strixd.sim.vllm import SimListeners, SimModel
from strixd.sim.work import SimWork
from strixd.sim.world import World


def simulated_host(world: World, *, rollback: float = 60.0) -> Host:
    """`rollback`: seconds of a network checkpoint."""
    gate = Gate(world.calls, world.clock)
    return Host(
        identity=world.identity,
        links=SimLinks(world.network, gate),
        hardware=SimHardware(world.network, world.rdma, world.clock, gate),
        rdma_cm=SimRdmaCm(world.rdma, gate),
        crossings=SimCrossings(world.wire, world.network, world.cluster, gate, world.changed),
        network=SimNetwork(world.network, gate, world.clock, time=rollback),
        firewall=SimFirewall(world.firewalld, gate),
        boot=SimBoot(world.boot_files, gate),
        kernel=SimKernel(world.boot_files, gate),
        power=SimPower(world.ask_reboot, gate),
        units=SimUnits(world.systemd, gate),
        files=SimFiles(world.disk, gate),
        ray=SimRay(world.cluster, gate),
        model=SimModel(world.serving, gate, world.clock, world.pace, world.changed),
        work=SimWork(world.server, world.clock, gate),
        journal=SimJournal(world.systemd.lines, gate),
        hub=SimHub(world.hub, gate),
        listeners=SimListeners(world.serving, world.cluster, gate),
        now=world.clock.now,
        steady=world.clock.steady,
        sleep=world.clock.sleep,
        watch=_Watch(world, gate),
    )


class _Watch:
    """Host.watch: wakes are delivered until the watching task is cancelled."""

    def __init__(self, world: World, gate: Gate) -> None:
        self._world = world
        self._gate = gate

    async def __call__(self, wake: Wake) -> None:
        self._world.watchers.append(wake)
        try:
            await asyncio.Event().wait()
        finally:
            self._gate.closed = True
            if wake in self._world.watchers:
                self._world.watchers.remove(wake)
