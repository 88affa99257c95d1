"""ports.Network over the simulated NetworkManager."""

from __future__ import annotations

from strixd.errors import Rejected
from strixd.ports import Device, Profile
from strixd.sim.nm_checkpoints import PATIENCE, STEP, SimCheckpoints


class SimNetwork(SimCheckpoints):
    """ports.Network."""

    async def profile(self, uuid: str) -> Profile | None:
        async with self._gate.read("network", "profile"):
            return self._nm.stored.get(uuid)

    async def device(self, interface: str) -> Device | None:
        async with self._gate.read("network", "device"):
            nic = self._nm.nics.get(interface)
            if nic is None:
                return None
            return Device(nic.name, nic.managed, nic.state, nic.profile, self._nm.name(nic.profile))

    async def stage(self, profile: Profile) -> None:
        async with self._gate.write("network", "stage", profile):
            self._nm.stage(profile)

    async def unsave(self, profile: Profile) -> None:
        async with self._gate.write("network", "unsave", profile):
            self._nm.stage(profile)
            self._nm.shadowed.pop(profile.uuid, None)

    async def save(self, profile: Profile) -> None:
        async with self._gate.write("network", "save", profile):
            self._nm.save(profile)

    async def delete(self, uuid: str) -> None:
        async with self._gate.write("network", "delete", uuid):
            self._nm.delete(uuid)

    async def activate(self, uuid: str, interface: str) -> None:
        async with self._gate.write("network", "activate", uuid, interface):
            nic = self._nm.begin(uuid, interface)
            nic.tries = 0
            turn, deadline = nic.turn, self._clock.now() + PATIENCE
            while nic.turn == turn and nic.state == "activating" and not nic.reason:
                if self._clock.now() > deadline:
                    raise Rejected(
                        f"Cannot activate {uuid} on {interface}: it is still not active after {PATIENCE:g} s"
                    )
                await self._clock.sleep(STEP)
            if nic.turn != turn or nic.state != "activated":
                raise Rejected(f"Cannot activate {uuid} on {interface}: {nic.reason or 'superseded'}")

    async def give_back(self, interface: str, *, ours: str, to: str) -> None:
        async with self._gate.write("network", "give_back", interface, ours, to):
            nic = self._nm.nics.get(interface)
            if nic is None or nic.state == "unavailable" or nic.profile not in (ours, "") or nic.profile == to:
                return
            if self._nm.name(to):
                self._nm.begin(to, interface)
            elif nic.profile:
                self._nm.deactivate(nic)

    async def disconnect(self, interface: str) -> None:
        async with self._gate.write("network", "disconnect", interface):
            nic = self._nm.nics.get(interface)
            if nic and nic.profile:
                nic.manual = True
                self._nm.release(nic, "disconnected")
