"""Firmware as packages and drivers name it, and the GPUs that it is for."""

from __future__ import annotations

import re
from pathlib import Path

from strixd.doctor.facts import Graphics, Packages
from strixd.doctor.gather import Scene
from strixd.doctor.read.programs import said

FIRMWARE = ("amd-gpu-firmware", "linux-firmware")
"""Fedora splits linux-firmware into packages of one version; the MES is in the first."""
_MES = re.compile(r"^MES feature version: \d+, firmware version: (0x[0-9a-f]+)", re.M)
_VERSION_BITS = 0xFFF  # AMDGPU_MES_VERSION_MASK, amdgpu_mes.h


def packages() -> Packages:
    """Of RPM; a package that is not installed has a line of another form, and makes the status 1."""
    lines = said("rpm", "-q", "--qf", "%{NAME} %{VERSION}\\n", *FIRMWARE).output.splitlines()
    return Packages({name: version for name, _, version in (line.partition(" ") for line in lines) if name in FIRMWARE})


def graphics(scene: Scene) -> Graphics:
    """Vendor 0x1002 is AMD, class 0x03 a display controller (pci.ids)."""
    devices = sorted(scene.path("/sys/bus/pci/devices").glob("*"))
    found = tuple(each.name for each in devices if _word(each / "vendor") == "0x1002" and _displays(each))
    kfd = scene.path("/dev/kfd").exists()
    return Graphics(found, kfd, targets(scene), _mes(scene) if found else 0)


def _displays(device: Path) -> bool:
    return _word(device / "class").startswith("0x03")


def targets(scene: Scene) -> tuple[str, ...]:
    """gfx_target_version is MAJOR * 10000 + MINOR * 100 + STEPPING; 110501 is gfx1151, the last two in hexadecimal."""
    files = scene.path("/sys/class/kfd/kfd/topology/nodes").glob("*/properties")
    numbers = {found[1] for each in files if (found := re.search(r"^gfx_target_version (\d+)", each.read_text(), re.M))}
    return tuple(sorted(_target(int(number)) for number in numbers if int(number)))


def _target(number: int) -> str:
    return f"gfx{number // 10000}{number // 100 % 100:x}{number % 100:x}"


def _mes(scene: Scene) -> int:
    """From sysfs where the kernel has it, else from debugfs, which only root may read."""
    for path in sorted(scene.path("/sys/class/drm").glob("card*/device/fw_version/mes_fw_version")):
        return int(_word(path), 16) & _VERSION_BITS
    for path in sorted(scene.path("/sys/kernel/debug/dri").glob("*/amdgpu_firmware_info")):
        if found := _MES.search(path.read_text()):
            return int(found[1], 16) & _VERSION_BITS
    return 0


def _word(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""
