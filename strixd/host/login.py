"""login1, which reboots the host in order: units are stopped, file systems unmounted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strixd.host.dbus import Remote

if TYPE_CHECKING:
    from strixd.host.bus import Bus

MANAGER = Remote("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager")


class Login:
    """Implements ports.Power."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def reboot(self) -> None:
        """Not interactive: nobody is there to be asked for a password. Raises Unavailable, Rejected."""
        await self._bus.call(MANAGER, "Reboot", "b", False, doing="reboot this host")
