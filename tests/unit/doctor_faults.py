"""What can be wrong with the host of doctor_host.py, laid."""

from __future__ import annotations

import json
from dataclasses import replace

from doctor_host import CARD, DIGEST, DRM, PORT, PROC, RCCL, Laid

from strixd.ports import Link, Member, RayReport
from strixd.resources import members
from tests.cluster_file import cluster_file


def running(laid: Laid, line: str) -> None:
    """A kernel with this command line, and with the same in every place that later boots read."""
    laid.lay("proc/cmdline", f"root=UUID=1 {line}\n")
    laid.lay("etc/kernel/cmdline", f"{line}\n")
    laid.lay("etc/default/grub", f'GRUB_CMDLINE_LINUX="{line}"\n')
    laid.lay("boot/loader/entries/f43.conf", f"linux /vmlinuz-6.18.4\noptions root=UUID=1 {line}\n")


def overlapping(laid: Laid) -> None:
    laid.around.others = (Link("enp1s0", "02:00:00:00:00:09", addresses=("192.168.100.5/24",)),)


BOLT = Link("thunderbolt0", "02:ab:00:00:00:01", "thunderbolt-net", carrier=True)


def spared(laid: Laid, *spares: Link) -> None:
    """The file names a spare link at each end."""
    laid.lay("etc/strixd/cluster.toml", cluster_file(card=f'interface = "{CARD}"\nspare-driver = "thunderbolt-net"'))
    laid.around.others = (*laid.around.others, *spares)


def on_the_spare(laid: Laid, *, carrier: bool) -> None:
    """`carrier`: of the first link."""
    held = replace(BOLT, addresses=laid.around.link.addresses, mtu=9000)
    spared(laid, held)
    laid.linked(addresses=(), carrier=carrier)
    laid.lay("sys/class/net/thunderbolt0/carrier", "1\n")
    laid.lay("sys/class/net/thunderbolt0/carrier_changes", "2\n")


def missing(laid: Laid) -> None:
    assert laid.around.told
    laid.around.told["members"][1]["joined"] = False


def few_gpus(laid: Laid) -> None:
    assert laid.around.told
    laid.around.told["members"][1]["gpus"] = 0


def keeping_old_file(laid: Laid) -> None:
    assert laid.around.told
    laid.around.told["problem"] = "cluster.toml:3: node: nothing"


def paused(laid: Laid) -> None:
    assert laid.around.told
    laid.around.told["phase"] = "paused"


def asleep(laid: Laid) -> None:
    laid.remove("etc/systemd/system/sleep.target")
    laid.lay("usr/lib/systemd/logind.conf", "[Login]\n#IdleAction=ignore\n")
    laid.lay("etc/systemd/logind.conf.d/50-idle.conf", "[Login]\nIdleAction=suspend\n")


def with_lid(laid: Laid) -> None:
    laid.remove("etc/systemd/system/sleep.target")
    laid.lay("proc/acpi/button/lid/LID0/state", "state: open\n")


def with_desktop(laid: Laid) -> None:
    laid.remove("etc/systemd/system/sleep.target")
    laid.link("usr/lib/systemd/system/default.target", "graphical.target")
    laid.link("etc/systemd/system/display-manager.service", "/usr/lib/systemd/system/gdm.service")


def second_library(laid: Laid) -> None:
    other = "usr/lib/libnccl.so.2"
    laid.lay(f"{PROC}/maps", f"7f r-xp 0 0:3 4 /{RCCL}\n7f r-xp 0 0:3 5 /{other}\n")
    laid.lay(f"{PROC}/root/{other}", "gfx1151 NET/IB")


def mes_in_debugfs(laid: Laid) -> None:
    laid.remove(f"{DRM}/fw_version/mes_fw_version")
    told = "MES_KIQ feature version: 6, firmware version: 0x00000086\n"
    told += "MES feature version: 1, firmware version: 0x00000082\n"
    laid.lay("sys/kernel/debug/dri/1/amdgpu_firmware_info", told)


def lowered(laid: Laid) -> None:
    laid.linked(mtu=1500)
    record = {"size": 9000, "peer": "halo2", "direction": "back", "at": 1, "boot": "b1"}
    laid.lay("var/lib/strixd/mtu.json", json.dumps(record))


def hanging(laid: Laid) -> None:
    laid.condition("vllm", "held", "it hangs")
    laid.around.trouble = "no completion within 6 s"


def without_rdma(laid: Laid) -> None:
    laid.lay("etc/strixd/cluster.toml", cluster_file("[fabric]\nallow-tcp = false\n"))
    laid.lay(f"{PORT}/state", "1: DOWN\n")


def three_nodes(laid: Laid, fabric: str = "") -> None:
    laid.lay("etc/strixd/cluster.toml", cluster_file(fabric, count=3, prefix=29))
    laid.linked(addresses=("192.168.100.1/29",))
    assert laid.around.told
    laid.around.told["members"].append({"name": "halo3", "address": "192.168.100.3", "joined": True, "gpus": 1})


def three_nodes_with_dscp(laid: Laid) -> None:
    three_nodes(laid, "[fabric]\ndscp = 26\n")


def other_image(laid: Laid) -> None:
    """In the words of the head's Ray."""
    peers = tuple(members.Peer(name, "worker", f"192.168.100.{n}", 1) for n, name in ((1, "halo1"), (2, "halo2")))
    listed = tuple(Member(peer.name, peer.address, True, 1, {"digest": "sha256:other"}) for peer in peers)
    lack = members.lacking(peers, members.Own("halo1", DIGEST, "s", "v"), RayReport(1.0, members=listed))
    laid.condition("ray", "waiting", lack.why)


DENIAL = 'avc:  denied  { read write } for pid=9 comm="bash" name="kfd" scontext=system_u:system_r:container_t:s0\n'


def denied(laid: Laid) -> None:
    laid.says("podman", "device /dev/kfd Permission denied", "device /dev/kfd ")
    laid.says("journalctl.audit", DENIAL)
