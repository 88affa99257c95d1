"""The virtual machine: one boot is one task and one result, told over a disk and a port of their own.

QEMU is given firmware and a disk, and neither a kernel nor a command line: OVMF starts systemd-boot, which goes by the
boot entries. An IOMMU is there, so that what the arguments do can be seen, or what else a test plugs in.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.lab.cache import say
from tests.lab.lab import orderly_end
from tests.lab.layout import PREFIX
from tests.lab.shell import remove_tree
from tests.vm.image import Disk

PLACE = Path("/var/tmp")
NAME = f"{PREFIX}-vm-"
CODE = Path("/usr/share/OVMF/OVMF_CODE_4M.fd")
VARIABLES = CODE.with_name("OVMF_VARS_4M.fd")
IOMMU = ("-device", "intel-iommu")
BOOT = 2000.0
"""Seconds from power on to power off, with the task between; about 60 on a quiet machine, by emulation. Longer than the
task may take (files/strixd-vm-task.service), and a slow boot before it."""
LISTENS = 60.0
"""Seconds until the first of two machines has laid its end of the cable."""
SECTOR = 512


class NoResult(Exception):
    """The machine did not say what it was asked; with the end of its console."""


@dataclass(frozen=True, slots=True)
class Cable:
    """One end of a cable between two machines, which is a socket: the first of them listens, the other one calls.
    `mac`: of the card at this end."""

    socket: Path
    mac: str
    first: bool

    def words(self) -> tuple[str, ...]:
        end = f"server={'on' if self.first else 'off'},addr.type=unix,addr.path={self.socket}"
        return "-netdev", f"stream,id=fabric,{end}", "-device", f"virtio-net-pci,netdev=fabric,mac={self.mac}"

    def await_first(self) -> None:
        """QEMU calls once, and ends when nobody listens."""
        until = time.monotonic() + LISTENS
        while not self.first and not self.socket.exists() and time.monotonic() < until:
            time.sleep(0.1)


class Machine:
    """Its folder holds everything: the disk, the firmware's variables, what was said. `memory` in MiB; `devices`: words
    for QEMU."""

    def __init__(self, folder: Path, memory: int, devices: Sequence[str], cable: Cable | None) -> None:
        self.folder = folder
        self.disk = Disk(folder / "disk.img")
        self._memory = memory
        self._devices = (*devices, *(cable.words() if cable else ()))
        self._cable = cable
        self._variables = folder / "variables.fd"
        shutil.copy(VARIABLES, self._variables)

    def boot(self, task: Path) -> dict[str, Any]:
        """Power on, run the task (a Python program), power off in order; what the task printed."""
        with self.on(task) as told:
            return told()

    @contextmanager
    def on(self, task: Path) -> Iterator[Callable[[], dict[str, Any]]]:
        """The same in two parts: it is on; the value waits until it is off. At the end it is off in any case."""
        (self.folder / "task.img").write_bytes(_padded(task.read_bytes()))
        (self.folder / "result").unlink(missing_ok=True)
        began = time.monotonic()
        if self._cable:
            self._cable.await_first()
        with (self.folder / "qemu").open("wb") as words:
            qemu = subprocess.Popen(self._command(), stdin=subprocess.DEVNULL, stdout=words, stderr=words)
        try:
            yield lambda: self._told(qemu, task.name, began)
        finally:
            qemu.kill()
            qemu.wait()

    def _told(self, qemu: subprocess.Popen[bytes], task: str, began: float) -> dict[str, Any]:
        try:
            status = qemu.wait(BOOT)
        except subprocess.TimeoutExpired:
            raise NoResult(f"still on after {BOOT:g} s; the console says:\n{self.console()[-4000:]}") from None
        assert status == 0, (self.folder / "qemu").read_text()
        say(f"vm: on and off again in {time.monotonic() - began:.0f} s")
        try:
            said: dict[str, Any] = json.loads((self.folder / "result").read_text())
        except (FileNotFoundError, ValueError):
            raise NoResult(f"no result of {task}; the console says:\n{self.console()[-4000:]}") from None
        return said

    def console(self) -> str:
        text = (self.folder / "console").read_bytes().decode(errors="replace")
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", text)

    def _command(self) -> list[str]:
        firmware = (f"readonly=on,file={CODE}", f"file={self._variables}")
        disks = (("system", self.disk.file), ("task", self.folder / "task.img"))
        return [
            *("setpriv", "--pdeathsig", "KILL"),  # it never outlives the tests
            *("qemu-system-x86_64", "-machine", "q35", "-accel", "tcg,thread=multi", "-smp", "2"),
            *("-m", str(self._memory), *self._devices),
            *("-nodefaults", "-display", "none", "-no-reboot", "-serial", f"file:{self.folder / 'console'}"),
            *(word for part in firmware for word in ("-drive", f"if=pflash,format=raw,{part}")),
            *(word for name, file in disks for word in _disk(name, file)),
            *("-device", "virtio-serial-pci", "-chardev", f"file,id=result,path={self.folder / 'result'}"),
            *("-device", "virtserialport,chardev=result,name=result"),
        ]


def _disk(name: str, file: Path) -> tuple[str, ...]:
    drive = f"if=none,id={name},format=raw,cache=unsafe,file={file}"
    return ("-drive", drive, "-device", f"virtio-blk-pci,drive={name},serial={name}")


def _padded(content: bytes) -> bytes:
    """To whole sectors."""
    return content + b"\0" * (-len(content) % SECTOR)


@contextmanager
def machine(*, memory: int = 1536, devices: Sequence[str] = IOMMU, cable: Cable | None = None) -> Iterator[Machine]:
    """A machine without a disk yet. However this ends, nothing of it stays; what a killed run left is removed first."""
    _sweep()
    with orderly_end(), tempfile.TemporaryDirectory(prefix=f"{NAME}{os.getpid()}-", dir=PLACE) as folder:
        yield Machine(Path(folder), memory, devices, cable)


def _sweep() -> None:
    for folder in PLACE.glob(f"{NAME}*"):
        owner = folder.name.removeprefix(NAME).partition("-")[0]
        if not Path(f"/proc/{owner}").exists():
            remove_tree(folder)
