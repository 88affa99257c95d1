"""Firmware and BIOS: what the kernel cannot mend."""

from __future__ import annotations

from strixd.doctor.facts import Graphics, Packages
from strixd.doctor.finding import Check, Judged
from strixd.doctor.known import Known, older, same
from strixd.ports import Effects
from strixd.resources.effect import DRM, GIB, VRAM, shared, size

MUCH = 4 * GIB
"""Kept for the GPU alone, what matters to a model of this size; below it is a pity."""
_BIOS = (
    "in the BIOS set-up, set the UMA frame buffer size (also called dedicated graphics memory) to 512 MB, or else to "
    '"auto" or its minimum'
)
_UPDATE = "dnf upgrade linux-firmware amd-gpu-firmware && dracut --force --regenerate-all && systemctl reboot"


def vram(effects: Effects) -> Judged | None:
    gpu = shared(effects)
    if gpu is None:
        return None
    read = f"{size(gpu.vram)} in {DRM}/{gpu.name}/device/mem_info_vram_total"
    if gpu.vram <= VRAM:
        return Judged("ok", read)
    return Judged("fault" if gpu.vram > MUCH else "warning", read, _BIOS)


def packages(graphics: Graphics, packages: Packages, known: Known) -> Judged | None:
    """Fedora's packages of one source have one version; the one with the GPU's firmware counts."""
    if not graphics.pci:
        return None
    if not packages.versions:
        return Judged("unknown", "neither amd-gpu-firmware nor linux-firmware is installed as a package", _UPDATE)
    name = min(packages.versions)  # amd-gpu-firmware, where there is one
    version, table = packages.versions[name], known.linux_firmware
    wanted, read = f"{table.least} or later", f"{name} {version}"
    if any(same(version, bad) for bad in table.bad):
        return Judged("fault", f"{read}, a version that is known to hang", _UPDATE, wanted)
    return Judged("fault", read, _UPDATE, wanted) if older(version, table.least) else Judged("ok", read, "", wanted)


def mes(graphics: Graphics, known: Known) -> Judged | None:
    if not graphics.pci:
        return None
    wanted = f"{known.mes.least:#x} or later"
    if not graphics.mes:
        mend = "cat /sys/kernel/debug/dri/*/amdgpu_firmware_info (as root) has a line for MES where debugfs is mounted"
        return Judged("unknown", "the kernel does not tell the version", mend, wanted)
    read = f"{graphics.mes:#x} is loaded"
    if graphics.mes in known.mes.bad:
        return Judged("fault", f"{read}, a version that is known to hang", _UPDATE, wanted)
    return Judged("fault", read, _UPDATE, wanted) if graphics.mes < known.mes.least else Judged("ok", read, "", wanted)


CHECKS = (
    Check(
        "vram",
        "firmware",
        vram,
        "512 MiB kept for the GPU alone",
        "what the BIOS keeps is lost to the model: weights lie in shared memory (GTT)",
    ),
    Check(
        "linux-firmware",
        "firmware",
        packages,
        "a version that is not known to hang",
        "with a wrong one everything that uses ROCm hangs, or hangs under load",
    ),
    Check(
        "mes",
        "firmware",
        mes,
        "a scheduler's firmware that is not known to hang",
        "what is loaded counts, not what is installed: it may lie in an old initramfs",
        doubt="ok",
    ),
)
