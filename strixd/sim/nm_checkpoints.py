"""NetworkManager's checkpoints, simulated as they were seen on lab hosts (NetworkManager 1.52).

A checkpoint belongs to nobody and survives the one who made it. It covers a device and the profile that is active on
it: another profile, changed or new, stays as it is, and so does what was done to firewalld directly.
"""

from __future__ import annotations

from dataclasses import replace

from strixd.errors import Rejected
from strixd.sim.clock import Clock
from strixd.sim.gate import Gate
from strixd.sim.network import Checkpoint, NetworkManager, Nic

PATIENCE = 10.0  # seconds until the port gives up on an activation that goes on
STEP = 0.02


def create(nm: NetworkManager, interface: str, *, now: float, timeout: float) -> str:
    nic = nm.nics.get(interface)
    if nic is None:
        raise Rejected(f"Cannot begin a checkpoint of {interface}: no such device")
    for name, other in nm.checkpoints.items():
        if other.interface == interface:
            words = f"device '{interface}' is already included in checkpoint {name}"
            raise Rejected(f"Cannot begin a checkpoint of {interface}: {words}", hint="wait until it has run out")
    name = f"{nm.starts}/{interface}/{now:.3f}"
    stored, shadowed = nm.stored.get(nic.profile), nm.shadowed.get(nic.profile)
    saved = Checkpoint(interface, timeout, now + timeout, nic.profile, nic.state, nic.turn, stored, shadowed)
    nm.checkpoints[name] = saved
    return name


def restore(nm: NetworkManager, name: str) -> Nic:
    saved = nm.checkpoints.pop(name)
    nic = nm.nics[saved.interface]
    changed = (nm.stored.get(saved.profile), nm.shadowed.get(saved.profile)) != (saved.stored, saved.shadowed)
    if saved.stored and changed:
        nm.restore(saved.stored, saved.shadowed)
    if nic.turn != saved.turn:
        _put_back(nm, nic, saved)
    return nic


def _put_back(nm: NetworkManager, nic: Nic, saved: Checkpoint) -> None:
    if nm.name(saved.profile) and nic.link.carrier:
        nm.begin(saved.profile, nic.name)
    elif nic.profile:
        nic.manual = True
        nm.release(nic, "disconnected")


class SimCheckpoints:
    """ports.Checkpoints; `time` in seconds."""

    def __init__(self, model: NetworkManager, gate: Gate, clock: Clock, *, time: float = 60.0) -> None:
        self._nm = model
        self._gate = gate
        self._clock = clock
        self._time = time

    async def checkpoint(self, interface: str) -> str:
        async with self._gate.write("network", "checkpoint", interface):
            name = create(self._nm, interface, now=self._clock.now(), timeout=self._time)
            self._ends(name, self._time)
            return name

    def _ends(self, name: str, seconds: float) -> None:
        self._clock.after(seconds, lambda: self._run_out(name))

    def _run_out(self, name: str) -> None:
        """A timer of NetworkManager's, not of strixd's; one that was extended has another."""
        saved = self._nm.checkpoints.get(name)
        if saved and self._clock.now() >= saved.ends - STEP:
            restore(self._nm, name)

    async def checkpoints(self, interface: str) -> tuple[str, ...]:
        async with self._gate.read("network", "checkpoints"):
            every = self._nm.checkpoints.items()
            times = (self._time, 2 * self._time)
            return tuple(n for n, c in every if c.interface == interface and times[0] <= c.timeout <= times[1])

    async def extend(self, checkpoint: str) -> None:
        async with self._gate.write("network", "extend", checkpoint):
            saved = self._nm.checkpoints.get(checkpoint)
            if saved is None:
                raise Rejected(f"Cannot extend the checkpoint of NetworkManager: {_missing(checkpoint)}")
            now = self._clock.now()
            had = saved.timeout - (saved.ends - now)
            self._nm.checkpoints[checkpoint] = replace(saved, timeout=had + self._time, ends=now + self._time)
            self._ends(checkpoint, self._time)

    async def confirm(self, checkpoint: str) -> None:
        async with self._gate.write("network", "confirm", checkpoint):
            if self._forgotten(checkpoint):
                return
            if checkpoint not in self._nm.checkpoints:
                raise Rejected(f"Cannot confirm the checkpoint: {_missing(checkpoint)}")
            del self._nm.checkpoints[checkpoint]

    async def roll_back(self, checkpoint: str) -> None:
        async with self._gate.write("network", "roll_back", checkpoint):
            if self._forgotten(checkpoint):
                why = "NetworkManager was restarted, and has forgotten it"
                raise Rejected(f"Cannot roll the checkpoint back: {why}")
            if checkpoint in self._nm.checkpoints:
                nic = restore(self._nm, checkpoint)
                deadline = self._clock.now() + PATIENCE
                while nic.state == "activating" and self._clock.now() < deadline:
                    await self._clock.sleep(STEP)

    def _forgotten(self, checkpoint: str) -> bool:
        return checkpoint.partition("/")[0] != str(self._nm.starts)


def _missing(checkpoint: str) -> str:
    return f"checkpoint {checkpoint} does not exist"
