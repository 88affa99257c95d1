"""A healthy head of two nodes, laid out: files below a root folder, stand-ins for programs, and its surroundings."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from strixd.doctor.checks import CHECKS
from strixd.doctor.examine import examine
from strixd.doctor.facts import Door
from strixd.doctor.finding import Check, Finding
from strixd.doctor.gather import Scene
from strixd.errors import Unavailable
from strixd.host.crossing import Sight
from strixd.ports import Firmware, Link, Way
from tests.cluster_file import cluster_file
from tests.laid_tree import lay

GIB = 1 << 30
CASES = Path(__file__).parents[1] / "cases"
CARD = "enp194s0np0"
ARGUMENTS = "iommu=pt pci=realloc pcie_aspm=off amdgpu.gttsize=126976 ttm.pages_limit=32505856"
CARD_PCI, PORT = "sys/devices/pci0/0000:c2:00.0", "sys/class/infiniband/irdma0/ports/1"
NET, DRM, PROC = f"sys/class/net/{CARD}", "sys/class/drm/card1/device", "proc/77"
DIGEST = "sha256:" + "ab" * 32
RCCL = "opt/rocm/lib/librccl.so.1.0"
FILES = {
    "etc/strixd/cluster.toml": cluster_file(),
    "etc/kernel/cmdline": f"{ARGUMENTS} rhgb quiet\n",
    "etc/default/grub": f'GRUB_CMDLINE_LINUX="{ARGUMENTS} rhgb quiet"\n',
    "boot/loader/entries/f43.conf": f"linux /vmlinuz-6.18.4\noptions root=UUID=1 {ARGUMENTS} rhgb quiet\n",
    "proc/cmdline": f"root=UUID=1 {ARGUMENTS} rhgb quiet\n",
    "proc/sys/kernel/hostname": "halo1\n",
    "proc/sys/kernel/osrelease": "6.18.4-200.fc43.x86_64\n",
    "proc/sys/kernel/random/boot_id": "b1\n",
    "proc/uptime": "86400.12 99.0\n",
    f"{PROC}/cmdline": "ray::RayWorkerWrapper.execute_method\0",
    f"{PROC}/maps": f"7f00-7f01 r-xp 00000000 00:31 42    /{RCCL}\n7f02-7f03 r-xp 00000000 00:31 43    /lib/libc.so\n",
    f"{PROC}/root/{RCCL}": "\x7fELF … hipv4-amdgcn-amd-amdhsa--gfx1151 … NET/IB : Using …",
    f"{DRM}/mem_info_gtt_total": f"{124 * GIB}\n",
    f"{DRM}/mem_info_vram_total": f"{GIB // 2}\n",
    f"{DRM}/fw_version/mes_fw_version": "0x00000086\n",
    "sys/kernel/iommu_groups/0/type": "identity\n",
    "sys/bus/pci/devices/0000:c5:00.0/vendor": "0x1002\n",
    "sys/bus/pci/devices/0000:c5:00.0/class": "0x030000\n",
    "sys/class/kfd/kfd/topology/nodes/0/properties": "gfx_target_version 0\n",
    "sys/class/kfd/kfd/topology/nodes/1/properties": "simd_count 80\ngfx_target_version 110501\n",
    "sys/module/amdgpu/parameters/gttsize": "126976\n",
    "sys/module/ttm/parameters/pages_limit": "32505856\n",
    f"{NET}/address": "b4:96:91:00:00:01\n",
    "sys/fs/selinux/enforce": "1",
    "sys/fs/cgroup/strixd.slice/strixd-workload.slice/strixd-ray.service/cgroup.procs": "77\n",
    "dev/kfd": "",
    "dev/infiniband/uverbs0": "",
    "dev/dri/renderD128": "",
    "run/strixd/image.json": json.dumps({"state": "present", "digest": DIGEST, "reference": "r", "boot": "b1"}),
    "var/lib/strixd/orders.json": json.dumps({"model": "tiny", "arguments": []}),
    "var/lib/strixd/models/x": "",
    "var/lib/containers/x": "",
}
PROGRAMS = {
    "rpm": "amd-gpu-firmware 20260410\nlinux-firmware 20260410\n",
    "journalctl": "Linux version 6.18.4-200.fc43.x86_64\n",
    "journalctl.audit": "",
    "systemctl": "active\n",
    "timedatectl": "yes\n",
    "grubby": "",
    "podman": "memlock unlimited\nshm 10737418240 10000000000\n"
    "device /dev/kfd \ndevice /dev/dri/renderD128 \ndevice /dev/infiniband/uverbs0 \n",
}
STAND_IN = """#!/bin/sh
case "$*" in
    *is-enabled*) exec /bin/cat "$0.enabled.out" ;;
    -V*) exec /bin/cat "$0.verify.out" ;;
    *_TRANSPORT=audit*) exec /bin/cat "$0.audit.out" ;;
    *"-o json"*) exec /bin/cat "$0.json.out" ;;
esac
exec /bin/cat "$0.out"
"""
RESOURCES = ("cmdline", "firewall", "network", "dscp", "fabric", "memory", "image", "ray", "vllm")


def resource(name: str) -> dict[str, Any]:
    return {"name": name, "condition": "ok", "why": "", "hint": "", "facts": [f"{name} as it should be"]}


def healthy_status() -> dict[str, Any]:
    nodes = (("halo1", "192.168.100.1"), ("halo2", "192.168.100.2"))
    return {
        "version": "0.1.0",
        "phase": "ready",
        "problem": "",
        "role": "head",
        "resources": [resource(name) for name in RESOURCES],
        "members": [{"name": name, "address": address, "joined": True, "gpus": 1} for name, address in nodes],
    }


FABRIC = Link(CARD, "b4:96:91:00:00:01", "ice", True, 9000, 9702, ("192.168.100.1/30",))
UPLINK = Link("enp1s0", "02:00:00:00:00:09", "r8169", True, addresses=("10.0.0.5/24",))


@dataclass
class Around:
    """Implements Surroundings."""

    link: Link = FABRIC
    others: tuple[Link, ...] = (UPLINK,)
    seen: Sight = "crosses"
    door: Door = "open"
    ahead: float | None = 0.02
    told: dict[str, Any] | None = field(default_factory=healthy_status)
    trouble: str = ""
    room: int = 500 * GIB
    card: Firmware = Firmware("4.91 0x8001fa1c 1.3909.0", "ICE OS Default Package 1.3.36.0", safe_mode=False)  # noqa: RUF009 - it is frozen

    def links(self) -> tuple[Link, ...]:
        return (self.link, *self.others)

    def sight(self, way: Way, peer: str) -> Sight:
        assert way.source != peer
        return self.seen

    def knock(self, address: str, port: int) -> Door:
        assert port == (6379 if address == "192.168.100.1" else 23000)
        return self.door

    def clock(self, address: str) -> float | None:
        return self.ahead

    def status(self) -> Mapping[str, Any]:
        if self.told is None:
            raise Unavailable("Cannot reach strixd at /run/strixd/io.strixd: nobody listens there")
        return self.told

    def complete(self, url: str, model: str, key: str) -> str:
        assert (url, model) == ("http://127.0.0.1:8000", "tiny")
        return self.trouble

    def free(self, folder: Path) -> int:
        assert folder.exists()
        return self.room

    async def firmware(self, interface: str, driver: str, address: str) -> Firmware:
        assert (driver, address) == (("ice", "0000:c2:00.0") if interface == CARD else ("", ""))
        return self.card if driver else Firmware()


class Laid:
    """The host. What is wrong with it is laid by the methods, before it is examined."""

    def __init__(self, root: Path, bin_: Path) -> None:
        self.root, self.bin = root, bin_
        self.around = Around()
        lay(root / "sys", tomllib.loads((CASES / "link/cases.toml").read_text())["trees"]["e810"])
        for name, text in FILES.items():
            self.lay(name, text)
        self.link("etc/systemd/system/sleep.target", "/dev/null")
        bin_.mkdir()
        for name, text in PROGRAMS.items():
            self.says(name, text)

    def lay(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def link(self, name: str, target: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)

    def remove(self, name: str) -> None:
        (self.root / name).unlink()

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.root / name).read_text()
        assert old in text
        self.lay(name, text.replace(old, new))

    def says(self, program: str, text: str, old: str = "") -> None:
        """What the stand-in writes; with `old`, that part of it becomes `text`."""
        out = self.bin / f"{program}.out"
        if old:
            assert old in out.read_text()
            text = out.read_text().replace(old, text)
        out.write_text(text)
        if "." not in program:
            (self.bin / program).write_text(STAND_IN)
            (self.bin / program).chmod(0o755)

    def fails(self, program: str, words: str) -> None:
        (self.bin / program).write_text(f'#!/bin/sh\necho "{words}" >&2\nexit 1\n')

    def linked(self, **changes: Any) -> None:
        self.around.link = replace(self.around.link, **changes)

    def condition(self, name: str, condition: str, why: str, hint: str = "") -> None:
        assert self.around.told
        told = next(each for each in self.around.told["resources"] if each["name"] == name)
        told.update(condition=condition, why=why, hint=hint)

    def scene(self) -> Scene:
        return Scene(self.root, self.around)

    def findings(self, checks: tuple[Check, ...] = CHECKS) -> tuple[Finding, ...]:
        return examine(self.scene(), checks).findings


Fault = Callable[[Laid], object]
