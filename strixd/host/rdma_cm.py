"""rdma_cm's defaults for connections, in configfs (ABI/testing/configfs-rdma_cm of the kernel).

A device has a folder there once somebody makes one, and then its ports have files; the kernel refuses the name of a
device that is not there. The values are the device's own and outlive the folder, but cannot be read without it. While
one is there the module cannot be unloaded, so the folder goes with the value.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from strixd.errors import Rejected, Unavailable
from strixd.host.one_thread import OneThread

T = TypeVar("T")
CONFIGFS = Path("/sys/kernel/config")
ANSWER = 5.0
"""Seconds; nothing here waits for hardware, but all of it for one lock of rdma_cm, which a device's end may hold."""
HINT = "journalctl -k -n 50; systemctl restart strixd when rdma_cm or configfs came after it"


class ConfigfsRdmaCm:
    """Implements ports.RdmaCm. `make`, `drop`: how a device's folder comes and goes; the kernel fills it, and empties
    it."""

    def __init__(
        self,
        root: Path = CONFIGFS,
        make: Callable[[Path], None] = Path.mkdir,
        drop: Callable[[Path], None] = Path.rmdir,
    ) -> None:
        self._root = root
        self._make = make
        self._drop = drop
        self._thread = OneThread("rdma_cm", ANSWER, HINT)

    async def tos(self, device: str, number: int) -> int:
        return await self._asked(lambda: self._read(device, number), f"read the TOS of {device} port {number}")

    async def set_tos(self, device: str, number: int, tos: int) -> None:
        await self._asked(lambda: self._write(device, number, tos), f"set the TOS of {device} port {number}")

    async def _asked(self, work: Callable[[], T], doing: str) -> T:
        try:
            return await self._thread.run(work, doing)
        except (OSError, ValueError) as error:
            words = error.strerror if isinstance(error, OSError) else str(error)
            raise Rejected(f"Cannot {doing}: {words}", hint=HINT) from None

    def _read(self, device: str, number: int) -> int:
        folder = self._place() / device
        return int(_file(folder, number).read_text(), 0) if folder.is_dir() else 0

    def _write(self, device: str, number: int, tos: int) -> None:
        folder = self._place() / device
        if not folder.is_dir():
            self._make(folder)
        _file(folder, number).write_text(str(tos))
        if not tos:
            self._drop(folder)

    def _place(self) -> Path:
        """Raises Unavailable where the kernel shows nothing of rdma_cm."""
        place = self._root / "rdma_cm"
        if place.is_dir():
            return place
        if not self._root.is_mount():
            why, hint = f"configfs is not mounted at {self._root}", "systemctl start sys-kernel-config.mount"
        else:
            why, hint = "the kernel module rdma_cm is not loaded", "modprobe rdma_cm; dnf install rdma-core"
        raise Unavailable(f"Cannot read what rdma_cm gives its connections: {why}", hint=hint)


def _file(folder: Path, number: int) -> Path:
    return folder / "ports" / str(number) / "default_roce_tos"
