"""Each check with a host on which it is all that is wrong, and a healthy one on which nothing is."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import get_type_hints

import pytest
from doctor_host import ARGUMENTS, CARD, CARD_PCI, DRM, NET, PORT, PROC, RCCL, Fault, Laid

from strixd.doctor.checks import CHECKS
from strixd.doctor.finding import LAYERS, Verdict, exit_status
from strixd.doctor.read.table import READERS
from strixd.ports import Firmware, Link


@pytest.fixture
def laid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Laid:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return Laid(tmp_path / "root", tmp_path / "bin")


def test_a_healthy_host_has_no_fault(laid: Laid) -> None:
    findings = laid.findings()
    assert [(each.name, each.read) for each in findings if each.verdict != "ok"] == []
    assert {each.name for each in findings} == {check.name for check in CHECKS} - {"lossless"}  # needs a switch
    assert exit_status(findings) == 0


def test_a_healthy_worker_has_no_fault_and_answers_for_no_model(laid: Laid) -> None:
    laid.lay("proc/sys/kernel/hostname", "halo2\n")
    laid.linked(addresses=("192.168.100.2/30",))
    laid.edit(f"{PORT}/gids/1", "6401", "6402")
    assert laid.around.told
    laid.around.told["role"] = "worker"
    laid.around.trouble = "nobody listens"
    findings = laid.findings()
    assert [(each.name, each.read) for each in findings if each.verdict != "ok"] == []
    assert {check.name for check in CHECKS} - {each.name for each in findings} == {"model", "image-digest", "lossless"}


def running(laid: Laid, line: str) -> None:
    """A kernel with this command line, and with the same in every place that later boots read."""
    laid.lay("proc/cmdline", f"root=UUID=1 {line}\n")
    laid.lay("etc/kernel/cmdline", f"{line}\n")
    laid.lay("etc/default/grub", f'GRUB_CMDLINE_LINUX="{line}"\n')
    laid.lay("boot/loader/entries/f43.conf", f"linux /vmlinuz-6.18.4\noptions root=UUID=1 {line}\n")


def overlapping(laid: Laid) -> None:
    laid.around.others = (Link("enp1s0", "02:00:00:00:00:09", addresses=("192.168.100.5/24",)),)


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
    laid.edit("etc/strixd/cluster.toml", "[[node]]", "[fabric]\nallow-tcp = false\n[[node]]")
    laid.edit(
        "etc/strixd/cluster.toml", '[fabric]\nallow-tcp = false\n[[node]]\nname = "halo2"', '[[node]]\nname = "halo2"'
    )
    laid.lay(f"{PORT}/state", "1: DOWN\n")


def three_nodes(laid: Laid, fabric: str = "") -> None:
    text = (laid.root / "etc/strixd/cluster.toml").read_text().replace("/30", "/29")
    third = '[[node]]\nname = "halo3"\nrole = "worker"\naddress = "192.168.100.3/29"\ninterface = "enp194s0np0"\n'
    laid.lay("etc/strixd/cluster.toml", text + third + fabric)
    laid.linked(addresses=("192.168.100.1/29",))
    assert laid.around.told
    laid.around.told["members"].append({"name": "halo3", "address": "192.168.100.3", "joined": True, "gpus": 1})


def three_nodes_with_dscp(laid: Laid) -> None:
    three_nodes(laid, "[fabric]\ndscp = 26\n")


DENIAL = 'avc:  denied  { read write } for pid=9 comm="bash" name="kfd" scontext=system_u:system_r:container_t:s0\n'


def denied(laid: Laid) -> None:
    laid.says("podman", "device /dev/kfd Permission denied", "device /dev/kfd ")
    laid.says("journalctl.audit", DENIAL)


CASES: dict[str, tuple[str, Verdict, Fault, str]] = {
    "no file": ("settings", "fault", lambda h: h.remove("etc/strixd/cluster.toml"), "there is no such file"),
    "a mistake in the file": (
        "settings",
        "fault",
        lambda h: h.edit("etc/strixd/cluster.toml", 'role = "head"', 'rle = "head"'),
        "cluster.toml:5: node[1].rle: unknown key",
    ),
    "not in the file": ("settings", "fault", lambda h: h.lay("proc/sys/kernel/hostname", "other\n"), "other"),
    "daemon not there": ("daemon", "fault", lambda h: setattr(h.around, "told", None), "nobody listens there"),
    "last good file kept": ("daemon", "warning", keeping_old_file, "it keeps an earlier cluster.toml true"),
    "paused": ("daemon", "warning", paused, "paused"),
    "carve-out 64 GiB": ("vram", "fault", lambda h: h.lay(f"{DRM}/mem_info_vram_total", str(64 << 30)), "64 GiB in"),
    "carve-out 2 GiB": ("vram", "warning", lambda h: h.lay(f"{DRM}/mem_info_vram_total", str(2 << 30)), "2 GiB in"),
    "firmware known to hang": (
        "linux-firmware",
        "fault",
        lambda h: h.says("rpm", "amd-gpu-firmware 20251125\nlinux-firmware 20260410\n"),
        "amd-gpu-firmware 20251125, a version that is known to hang",
    ),
    "firmware too old": ("linux-firmware", "fault", lambda h: h.says("rpm", "linux-firmware 20260101"), "20260101"),
    "firmware no package": ("linux-firmware", "unknown", lambda h: h.says("rpm", "not installed"), "neither"),
    "firmware bad by the administrator's table": (
        "linux-firmware",
        "fault",
        lambda h: h.lay("etc/strixd/known.toml", '[linux-firmware]\nbad = ["20260410"]\n'),
        "known to hang",
    ),
    "MES known to hang": (
        "mes",
        "fault",
        lambda h: h.lay(f"{DRM}/fw_version/mes_fw_version", "0x83"),
        "0x83 is loaded",
    ),
    "MES by debugfs too old": (
        "mes",
        "fault",
        mes_in_debugfs,
        "0x82 is loaded",
    ),
    "MES not told": ("mes", "unknown", lambda h: h.remove(f"{DRM}/fw_version/mes_fw_version"), "does not tell"),
    "kernel too old": (
        "kernel-version",
        "fault",
        lambda h: h.lay("proc/sys/kernel/osrelease", "6.18.3-200.fc43.x86_64\n"),
        "6.18.3",
    ),
    "arguments not running": (
        "arguments",
        "fault",
        lambda h: h.edit("proc/cmdline", "iommu=pt ", ""),
        "not yet running: iommu=pt",
    ),
    "arguments not configured": (
        "arguments",
        "warning",
        lambda h: h.edit("boot/loader/entries/f43.conf", "iommu=pt ", ""),
        "to do: ",
    ),
    "no effect on GPU memory": (
        "effective",
        "fault",
        lambda h: h.lay(f"{DRM}/mem_info_gtt_total", str(62 << 30)),
        "asked for 124 GiB of GPU memory, read 62 GiB",
    ),
    "modprobe.d against the command line": (
        "conflicts",
        "warning",
        lambda h: h.lay("etc/modprobe.d/old.conf", "# tried\noptions amdgpu \\\n gttsize=65536\n"),
        "amdgpu.gttsize: 65536 by /etc/modprobe.d/old.conf:3, 126976 by the kernel command line; 126976 is effective",
    ),
    "a parameter that nobody knows": (
        "module-parameters",
        "warning",
        lambda h: h.says("journalctl", "Linux version 6\namdgpu: unknown parameter 'gtt_size' ignored\n"),
        "amdgpu: unknown parameter 'gtt_size' ignored",
    ),
    "an argument of ours that the kernel does not take": (
        "module-parameters",
        "warning",
        lambda h: h.says(
            "journalctl", 'Linux version 6\nUnknown kernel command line parameters "rhgb pcie-aspm=off"\n'
        ),
        "pcie-aspm=off",
    ),
    "no kernel messages": ("module-parameters", "unknown", lambda h: h.says("journalctl", ""), "no kernel messages"),
    "nomodeset": ("leftovers", "fault", lambda h: running(h, f"nomodeset {ARGUMENTS}"), "nomodeset: no GPU driver"),
    "a module barred": (
        "leftovers",
        "fault",
        lambda h: h.lay("usr/lib/modprobe.d/x.conf", "install irdma /bin/false\n"),
        "the module irdma, barred by /usr/lib/modprobe.d/x.conf:1",
    ),
    "a module barred on the command line": (
        "leftovers",
        "fault",
        lambda h: running(h, f"{ARGUMENTS} modprobe.blacklist=nouveau,ice"),
        "the module ice, barred by the kernel command line",
    ),
    "GPU without driver": ("gpu", "fault", lambda h: h.remove("dev/kfd"), "0000:c5:00.0 has no /dev/kfd"),
    "no GPU": ("gpu", "warning", lambda h: h.lay("sys/bus/pci/devices/0000:c5:00.0/vendor", "0x8086"), "no AMD GPU"),
    "no such card": ("card", "fault", lambda h: h.linked(name="enp9s0"), f"no link is interface {CARD}"),
    "no carrier": ("carrier", "fault", lambda h: h.linked(carrier=False), f"no carrier on {CARD}"),
    "slow link": ("speed", "warning", lambda h: h.lay(f"{NET}/speed", "1000\n"), "1 Gb/s"),
    "old firmware of the card": (
        "nic-firmware",
        "warning",
        lambda h: setattr(h.around, "card", Firmware("4.40 0x8001c967 1.3534.0", safe_mode=False)),
        "4.40 0x8001c967 1.3534.0 on",
    ),
    "firmware not told": ("nic-firmware", "unknown", lambda h: setattr(h.around, "card", Firmware()), "does not tell"),
    "half of the PCIe speed": (
        "pcie",
        "warning",
        lambda h: h.lay(f"{CARD_PCI}/current_link_speed", "8.0 GT/s PCIe\n"),
        "8 GT/s x4 at 0000:c2:00.0; the card can 16 GT/s x16",
    ),
    "one lane": ("pcie", "warning", lambda h: h.lay(f"{CARD_PCI}/current_link_width", "1\n"), "16 GT/s x1"),
    "PCIe not told": ("pcie", "unknown", lambda h: h.remove(f"{CARD_PCI}/current_link_speed"), "cannot be read"),
    "iWARP": (
        "rdma",
        "warning",
        lambda h: h.lay("sys/class/infiniband/irdma0/node_type", "4: RNIC\n"),
        "no RDMA: irdma0 port 1 is iWARP, not RoCE",
    ),
    "GIDs gone": ("rdma", "warning", lambda h: h.remove(f"{PORT}/gids/1"), "has 192.168.100.1 in none of its GIDs"),
    "port down": ("rdma", "warning", lambda h: h.lay(f"{PORT}/state", "1: DOWN\n"), "irdma0 port 1 is DOWN"),
    "safe mode": (
        "rdma",
        "warning",
        lambda h: setattr(h.around, "card", Firmware("4.91", safe_mode=True)),
        "is in safe mode: its driver found no DDP package",
    ),
    "TCP where the file forbids it": ("rdma", "fault", without_rdma, "and [fabric] allow-tcp = false"),
    "no way for the ranks": ("fabric", "fault", lambda h: h.condition("fabric", "blocked", "no way"), "no way"),
    "small RDMA packets": ("rdma-mtu", "warning", lambda h: h.lay(f"{NET}/mtu", "1500\n"), "1024 bytes on irdma0"),
    "a switch and no DSCP": ("lossless", "warning", three_nodes, "RDMA is sent without a DSCP"),
    "a switch that is not asked": ("lossless", "unknown", three_nodes_with_dscp, "RDMA is sent with DSCP 26"),
    "flapping": ("flaps", "warning", lambda h: h.lay(f"{NET}/carrier_changes", "90\n"), "90 times, 24.0 h after boot"),
    "no address": ("address", "fault", lambda h: h.linked(addresses=("169.254.3.4/16",)), "169.254.3.4/16 on"),
    "overlap": ("overlap", "fault", overlapping, "192.168.100.1/30 of the file overlaps 192.168.100.5/24 of enp1s0"),
    "MTU taken down": (
        "mtu",
        "warning",
        lowered,
        f"1500 on {CARD}; MTU 9000 does not cross from halo2 to here",
    ),
    "lost on the way there": (
        "crossing",
        "fault",
        lambda h: setattr(h.around, "seen", "there"),
        "large packets to halo2 are lost on the way there",
    ),
    "lost on the way back": ("crossing", "fault", lambda h: setattr(h.around, "seen", "back"), "on the way here"),
    "silent peer": ("crossing", "fault", lambda h: setattr(h.around, "seen", "silent"), "halo2 does not answer"),
    "link held": ("network", "fault", lambda h: h.condition("network", "held", "a checkpoint of others"), "checkpoint"),
    "zone": ("firewall", "fault", lambda h: h.condition("firewall", "blocked", "firewalld is masked"), "masked"),
    "port rejected": (
        "ports",
        "fault",
        lambda h: setattr(h.around, "door", "forbidden"),
        "halo2: port 23000 is rejected on the way",
    ),
    "port silent": ("ports", "fault", lambda h: setattr(h.around, "door", "silent"), "does not answer"),
    "port closed": ("ports", "warning", lambda h: setattr(h.around, "door", "refused"), "halo2: port 23000 is closed"),
    "container failed": ("container", "fault", lambda h: h.says("systemctl", "failed\n"), "is failed"),
    "memlock": ("memlock", "fault", lambda h: h.says("podman", "memlock 8192", "memlock unlimited"), "8192 KiB in"),
    "memlock without RDMA": (
        "memlock",
        "warning",
        lambda h: h.says("podman", "memlock 8192\nshm 10737418240 10000000000\ndevice /dev/kfd \n"),
        "of no consequence without RDMA",
    ),
    "device closed": (
        "devices",
        "fault",
        lambda h: h.says("podman", "device /dev/kfd Permission denied", "device /dev/kfd "),
        "/dev/kfd: Permission denied; SELinux has denied nothing",
    ),
    "device closed by SELinux": ("devices", "fault", denied, "/dev/kfd: Permission denied; SELinux says: avc:"),
    "small shared memory": (
        "shared-memory",
        "fault",
        lambda h: h.says("podman", "shm 67108864 67108864", "shm 10737418240 10000000000"),
        "64 MiB, 64 MiB free",
    ),
    "full shared memory": (
        "shared-memory",
        "warning",
        lambda h: h.says("podman", "shm 10737418240 1000000", "shm 10737418240 10000000000"),
        "free in /dev/shm",
    ),
    "RCCL for another GPU": (
        "rccl",
        "fault",
        lambda h: h.lay(f"{PROC}/root/{RCCL}", "gfx942 NET/IB"),
        f"/{RCCL} knows nothing of gfx1151",
    ),
    "RCCL without RDMA": ("rccl", "fault", lambda h: h.lay(f"{PROC}/root/{RCCL}", "gfx1151"), "no RDMA transport"),
    "two RCCL": ("rccl", "warning", second_library, "several are loaded"),
    "no RCCL": ("rccl", "warning", lambda h: h.lay(f"{PROC}/maps", "7f r-xp /lib/libc.so.6\n"), "none has loaded"),
    "no image": ("image", "fault", lambda h: h.condition("image", "held", "401 Unauthorized"), "401"),
    "another image": (
        "image-digest",
        "fault",
        lambda h: h.condition("ray", "ok", "halo2 (192.168.100.2) runs image sha256:1, this node sha256:2"),
        "halo2 (192.168.100.2) runs image",
    ),
    "disk full": ("disk", "fault", lambda h: setattr(h.around, "room", 1 << 20), "1 MiB free at /var/lib/strixd"),
    "disk nearly full": ("disk", "warning", lambda h: setattr(h.around, "room", 5 << 30), "5 GiB free"),
    "memory limit": ("memory", "fault", lambda h: h.condition("memory", "held", "no limit in force"), "no limit"),
    "clocks apart": ("clock", "warning", lambda h: setattr(h.around, "ahead", -7.0), "halo2 is -7.0 s ahead"),
    "clocks far apart": ("clock", "fault", lambda h: setattr(h.around, "ahead", 4000.0), "+4000.0 s"),
    "clock not set by anybody": ("clock", "warning", lambda h: h.says("timedatectl", "no\n"), "no time server"),
    "clock not told": ("clock", "unknown", lambda h: setattr(h.around, "ahead", None), "halo2 does not tell its time"),
    "Ray stuck": ("ray", "fault", lambda h: h.condition("ray", "stuck", "another cluster key"), "another cluster key"),
    "not joined": ("members", "fault", missing, "halo2 (192.168.100.2) has not joined"),
    "without its GPU": ("members", "fault", few_gpus, "halo2 brings 0 GPUs, the file says 1"),
    "no token": (
        "model",
        "fault",
        hanging,
        "tiny does not answer: no completion within 6 s; it hangs",
    ),
    "idle action": ("sleep", "fault", asleep, "IdleAction=suspend"),
    "lid": ("sleep", "warning", with_lid, "HandleLidSwitch=suspend"),
    "desktop": ("sleep", "warning", with_desktop, "it starts with a desktop"),
}


@pytest.mark.parametrize("case", CASES)
def test_it_is_all_that_is_wrong(laid: Laid, case: str) -> None:
    name, verdict, fault, words = CASES[case]
    fault(laid)
    findings = laid.findings()
    first = [each for each in findings if each.verdict != "ok" and not each.follows]
    assert [(each.name, each.verdict) for each in first] == [(name, verdict)], [each.read for each in first]
    assert words in first[0].read
    assert first[0].mend or verdict == "unknown"
    assert all(each.follows == name for each in findings if each.verdict != "ok" and each.name != name)


def without_display_manager(laid: Laid) -> None:
    with_desktop(laid)
    laid.remove("etc/systemd/system/display-manager.service")


def with_console(laid: Laid) -> None:
    """What the administrator set comes before what the system brought."""
    with_desktop(laid)
    laid.link("etc/systemd/system/default.target", "/usr/lib/systemd/system/multi-user.target")


def only_suspend_masked(laid: Laid) -> None:
    laid.remove("etc/systemd/system/sleep.target")
    laid.link("etc/systemd/system/suspend.target", "/dev/null")
    laid.lay("etc/systemd/logind.conf", "[Login]\nIdleAction=lock\nHandleLidSwitch=suspend\n")


def own_choice(laid: Laid) -> None:
    """A drop-in of the administrator's hides its namesake of the system's, and comes after the file."""
    asleep(laid)
    laid.lay("usr/lib/systemd/logind.conf.d/50-idle.conf", "[Login]\nIdleAction=hibernate\n")
    laid.lay("etc/systemd/logind.conf.d/50-idle.conf", "[Login]\nIdleAction=ignore\n")


@pytest.mark.parametrize("fault", [without_display_manager, with_console, only_suspend_masked, own_choice])
def test_what_sends_no_host_to_sleep(laid: Laid, fault: Fault) -> None:
    fault(laid)
    assert {each.verdict for each in laid.findings()} == {"ok"}


def test_what_does_not_run_has_no_effect_yet(laid: Laid) -> None:
    laid.edit("proc/cmdline", "ttm.pages_limit=32505856 ", "")
    laid.lay(f"{DRM}/mem_info_gtt_total", str(62 << 30))
    findings = {each.name: each for each in laid.findings()}
    assert (findings["effective"].verdict, findings["effective"].follows) == ("warning", "arguments")


def test_every_check_has_such_a_case() -> None:
    assert {name for name, _, _, _ in CASES.values()} == {check.name for check in CHECKS}


def test_an_image_that_a_member_has_not_told_of_is_not_known(laid: Laid) -> None:
    missing(laid)
    (digest,) = [each for each in laid.findings() if each.name == "image-digest"]
    assert (digest.verdict, digest.follows) == ("unknown", "members")


def test_a_busy_model_answers_as_strixd_has_seen(laid: Laid) -> None:
    laid.around.trouble = "no completion within 6 s"
    (model,) = [each for each in laid.findings() if each.name == "model"]
    assert model.verdict == "ok"


@pytest.mark.parametrize("program", ["rpm", "journalctl", "systemctl", "podman", "timedatectl"])
@pytest.mark.parametrize("how", ["fails", "is not there"])
def test_what_a_program_does_not_tell_is_unknown_and_never_ok(laid: Laid, program: str, how: str) -> None:
    before = {each.name: each.verdict for each in laid.findings()}
    if how == "fails":
        laid.fails(program, "no luck")
    else:
        (laid.bin / program).unlink()
    changed = [each for each in laid.findings() if each.verdict != before[each.name]]
    assert changed
    assert {each.verdict for each in changed} == {"unknown"}
    assert all(program in each.read for each in changed if program != "rpm" or how != "fails")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_a_judge_gets_what_the_readers_bring(check: object) -> None:
    """Facts are found by name, so their types are compared here."""
    judge = next(each.judge for each in CHECKS if each is check)
    for name, kind in get_type_hints(judge).items():
        if name != "return":
            assert get_type_hints(READERS[name].read)["return"] == kind, name


def test_the_readers_get_what_other_readers_bring() -> None:
    for reader in READERS.values():
        for name in set(inspect.signature(reader.read).parameters) - {"scene"}:
            assert get_type_hints(reader.read)[name] == get_type_hints(READERS[name].read)["return"], reader.read


def test_checks_have_names_of_their_own_and_places_for_all_layers() -> None:
    names = [check.name for check in CHECKS]
    assert len(set(names)) == len(names)
    assert {check.layer for check in CHECKS} <= set(LAYERS)
    assert max(reader.within for reader in READERS.values()) < 9
