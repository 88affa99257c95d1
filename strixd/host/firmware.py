"""What a card's driver tells of its firmware: by ethtool (the driver's own line, as `ethtool -i` shows it), and of an
E810 by devlink, which also tells whether its DDP package is loaded. Both never change while the driver is loaded."""

from __future__ import annotations

import array
import asyncio
import fcntl
import json
import socket
import struct
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import closing, suppress
from typing import Any

from strixd.errors import Unavailable
from strixd.host.one_thread import OneThread
from strixd.host.recent import Recent
from strixd.ports.hardware import Firmware

SIOCETHTOOL, ETHTOOL_GDRVINFO = 0x8946, 0x00000003
LENGTH, VERSION = 196, slice(68, 100)
"""struct ethtool_drvinfo, and fw_version in it (include/uapi/linux/ethtool.h)."""
ANSWER = 5.0
"""Seconds for each of the two; they take a few milliseconds."""
KILL = 1.0
"""Seconds for a killed devlink to be gone."""
AGAIN = 600.0
"""Seconds for which an answer counts."""
E810 = "ice"


class Versions:
    """Remembers what was told of each interface and device."""

    def __init__(self, devlink: str = "devlink") -> None:
        self._devlink = devlink
        self._thread = OneThread("the driver", ANSWER, "journalctl -k -n 50: a driver hangs")
        self._hung: Process | None = None
        self._recent = Recent(AGAIN)

    async def of(self, interface: str, driver: str, address: str) -> Firmware:
        """`address`: of the PCI device, "" for none."""
        return await self._recent.read((interface, address), lambda: self._of(interface, driver, address))

    async def _of(self, interface: str, driver: str, address: str) -> Firmware:
        version = await self._version(interface) if driver else ""
        said = await self._ask(address) if driver == E810 and address else ""
        return told_by_devlink(said, version)

    async def _version(self, interface: str) -> str:
        """ "" also when the driver hangs."""
        with suppress(Unavailable):
            return await self._thread.run(lambda: driver_version(interface), f"read the firmware of {interface}")
        return ""

    async def _ask(self, address: str) -> str:
        """ "" when there is no such program, or it says nothing in time. One that waits for a driver that hangs cannot
        even be killed: then no second one is begun."""
        if self._hung and self._hung.returncode is None:
            return ""
        command = (self._devlink, "-j", "dev", "info", f"pci/{address}")
        try:
            process = await asyncio.create_subprocess_exec(*command, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL)
        except OSError:
            return ""
        try:
            said, _ = await asyncio.wait_for(process.communicate(), ANSWER)
        except TimeoutError:
            self._hung = process
            with suppress(ProcessLookupError):
                process.kill()
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), KILL)
            return ""
        return said.decode(errors="replace")


def driver_version(interface: str) -> str:
    """ "4.91 0x8001fa1c 1.3909.0" of an E810; "" when the driver tells none."""
    told = array.array("B", struct.pack(f"I{LENGTH - 4}x", ETHTOOL_GDRVINFO))
    address, _ = told.buffer_info()
    request = struct.pack("16sP", interface.encode(), address)
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as line:
        try:
            fcntl.ioctl(line, SIOCETHTOOL, request)
        except OSError:
            return ""
    words = told.tobytes()[VERSION].partition(b"\0")[0].decode(errors="replace").strip()
    return "" if words == "N/A" else words


def told_by_devlink(said: str, version: str) -> Firmware:
    """From `devlink -j dev info`. An E810 without its package is in safe mode, and names none (ice_devlink.c)."""
    running = _running(said)
    if "fw.mgmt" not in running:  # every E810 says so much
        return Firmware(version)
    name, number = running.get("fw.app.name", ""), running.get("fw.app", "")
    return Firmware(version, f"{name} {number}".strip() if name else "", safe_mode=not name)


def _running(said: str) -> dict[str, str]:
    try:
        devices: Any = json.loads(said or "{}").get("info", {})
        versions = [device.get("versions", {}).get("running", {}) for device in devices.values()]
    except (ValueError, AttributeError):
        return {}
    return {str(key): str(value) for one in versions if isinstance(one, dict) for key, value in one.items()}
