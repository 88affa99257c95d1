"""Kernel arguments on one real host: written everywhere, seen to run, seen to work, and a reboot when that is due."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from strixd.messages import IDS
from tests.lab.bootfiles import ENTRIES, ENTRY, GIB, ROOT, VERSIONS, entry, lay_boot_files, lay_effects, lay_running
from tests.lab.cluster import Table, lay_cluster
from tests.lab.fixtures import Pair
from tests.lab.host import Host, wait_for
from tests.lab.judge import Judge

pytestmark = pytest.mark.lab

OURS = "iommu=pt pci=realloc pcie_aspm=off amdgpu.gttsize=126976 ttm.pages_limit=32505856"
ALL = f"{ROOT} {OURS}"
MOTD = "/run/motd.d/50-strixd"
NEWER = "6.19.2-200.fc43.x86_64"
APPLY_SOON = ("systemd-run", "--quiet", "--on-active=0.5", "--timer-property=AccuracySec=50ms", "strixd-cli", "apply")
"""By the host itself: a command that is in it while it goes down keeps it from going."""
SETTINGS: dict[str, Table] = {"image": {"pull": "never"}}  # nothing is served here


@pytest.fixture(scope="module")
def host(pair: Pair) -> Host:
    """Started with boot files as they come from the installer."""
    host = pair[0]
    lay_boot_files(host)
    lay_cluster(pair, SETTINGS)
    host.run("systemctl", "enable", "--now", "strixd.socket", "strixd.service")
    return host


@pytest.fixture(autouse=True)
def nothing_is_served(judge: Judge) -> None:
    judge.expect("strixd: (image|ray|vllm) is stuck", "systemd: .*strixd-image.service")


def status(host: Host) -> dict[str, Any]:
    reply: dict[str, Any] = json.loads(host.run("strixd-cli", "status", "--json").stdout)
    return reply


def cmdline(host: Host) -> dict[str, Any]:
    view: dict[str, Any] = next(view for view in status(host)["resources"] if view["name"] == "cmdline")
    return view


def becomes(host: Host, condition: str, timeout: float = 15) -> dict[str, Any]:
    wait_for(f"cmdline is {condition}", lambda: bool(cmdline(host)["condition"] == condition), timeout, pause=0.2)
    return cmdline(host)


def becomes_by_reboots(host: Host, condition: str, since: float) -> dict[str, Any]:
    """Asked of the journal's files, because the host may be going down."""

    def there() -> bool:
        return any(line["MESSAGE"].startswith(f"cmdline is {condition}") for line in host.journal_from_outside(since))

    wait_for(f"cmdline is {condition}", there, 60, pause=0.5)
    host.wait_booted()
    return cmdline(host)


def options(host: Host, version: str) -> str:
    lines = host.read(entry(version)).splitlines()
    return next((line.removeprefix("options ") for line in lines if line.startswith("options ")), "")


def said(host: Host, kind: str, *, boot: str = "") -> list[str]:
    """The messages of this kind about kernel arguments, of one boot or of all."""
    return [
        line["MESSAGE"]
        for line in host.journal()
        if line.get("MESSAGE_ID") == IDS[kind]
        and line.get("STRIXD_RESOURCE") == "cmdline"
        and line["_BOOT_ID"].startswith(boot)
    ]


def boot_files(host: Host) -> dict[str, bytes]:
    paths = [*host.path(ENTRIES).iterdir(), host.path("/etc/kernel/cmdline"), host.path("/etc/default/grub")]
    return {path.name: path.read_bytes() for path in paths}


def test_every_entry_and_what_later_kernels_copy_agree(host: Host) -> None:
    becomes(host, "reboot")
    assert [options(host, version) for version in VERSIONS] == [ALL, ALL, ROOT]
    assert host.read(entry(VERSIONS[0])) == ENTRY.format(VERSIONS[0], ALL)
    assert host.read("/etc/kernel/cmdline") == f"{ALL}\n"
    grub = f'GRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX="rhgb quiet {OURS}"\nGRUB_ENABLE_BLSCFG=true\n'
    assert host.read("/etc/default/grub") == grub


def test_that_a_reboot_is_due_is_said_once_in_the_journal_in_status_and_at_log_in(host: Host) -> None:
    view = becomes(host, "reboot")
    assert view["why"].startswith(f"configured, not yet running: {OURS}")
    assert view["hint"] == "systemctl reboot"
    host.run("strixd-cli", "apply")
    (line,) = said(host, "REBOOT_NEEDED")
    assert OURS in line
    assert host.read(MOTD).count("\n") == 1
    assert "next reboot" in host.read(MOTD)


def test_a_kernel_installed_later_gets_them_within_a_second(host: Host) -> None:
    assert becomes(host, "reboot")
    begun = time.monotonic()
    host.write(entry(NEWER), ENTRY.format(NEWER, ROOT))
    wait_for("the new entry has them", lambda: options(host, NEWER) == ALL, 10, pause=0.02)
    assert time.monotonic() - begun < 1.5  # the second, and half of one for a busy machine
    assert host.read(entry(NEWER)) == ENTRY.format(NEWER, ALL)


def test_one_that_is_written_line_by_line_is_whole_afterwards(host: Host) -> None:
    slowly = "while IFS= read -r line; do printf '%s\\n' \"$line\"; sleep 0.12; done"
    host.run("bash", "-c", f"{slowly} >{entry('6.20.0')}", stdin=ENTRY.format("6.20.0", ROOT))
    wait_for("it has them", lambda: options(host, "6.20.0") == ALL, 10)
    assert host.read(entry("6.20.0")) == ENTRY.format("6.20.0", ALL)


def test_a_folder_that_is_replaced_is_watched_again(host: Host) -> None:
    host.sh(f"cp -a {ENTRIES} {ENTRIES}.new; rm -r {ENTRIES}; mv {ENTRIES}.new {ENTRIES}")
    time.sleep(1.0)
    host.write(entry("6.21.0"), ENTRY.format("6.21.0", ROOT))
    wait_for("the new entry has them", lambda: options(host, "6.21.0") == ALL, 3)


def test_what_came_in_the_last_moment_is_mended_before_the_daemon_ends(host: Host) -> None:
    text = ENTRY.format("6.22.0", ROOT).replace("\n", "\\n")
    host.sh(f"printf '{text}' >{entry('6.22.0')}; systemctl stop strixd.service strixd.socket")
    assert options(host, "6.22.0") == ALL
    host.sh(f"rm {entry('6.20.0')} {entry('6.21.0')} {entry('6.22.0')} {entry(NEWER)}")
    host.run("systemctl", "start", "strixd.socket", "strixd.service")


def test_a_full_disk_leaves_every_boot_file_as_it_was(host: Host, pair: Pair) -> None:
    becomes(host, "reboot")
    before = boot_files(host)
    host.sh(f"mkdir /root/kept; cp -a {ENTRIES}/. /root/kept; mount -t tmpfs -o size=20k full {ENTRIES}")
    host.sh(f"cp -a /root/kept/. {ENTRIES}; dd if=/dev/zero of={ENTRIES}/filler bs=4k 2>/dev/null || true")
    lay_cluster(pair, {**SETTINGS, "kernel": {"arguments": ["quiet2"]}})
    host.attempt("strixd-cli", "apply")
    view = becomes(host, "held")
    assert "No space left on device" in view["why"]
    after = boot_files(host)
    assert after.pop("filler")
    assert after == before
    host.sh(f"umount {ENTRIES}; rm -r /root/kept")
    host.run("strixd-cli", "apply")
    wait_for("written now", lambda: options(host, VERSIONS[0]) == f"{ALL} quiet2", 10)
    lay_cluster(pair, SETTINGS)
    host.run("strixd-cli", "apply")
    assert boot_files(host) == before


def test_effective_is_more_than_running(host: Host) -> None:
    becomes(host, "reboot")
    lay_running(host, ALL)
    lay_effects(host)
    host.reboot()
    view = becomes(host, "ok")
    assert "the GPU (card1) may use 124 GiB, of which 512 MiB are kept for it alone" in view["facts"]
    assert "IOMMU identity" in view["facts"]
    assert not host.path(MOTD).exists()
    lay_effects(host, gtt=62 * GIB, vram=64 * GIB, iommu="DMA-FQ")
    host.run("strixd-cli", "apply")
    view = becomes(host, "ineffective")
    for words in ("asked for 124 GiB of GPU memory, read 62 GiB in /sys/class/drm/card1/device/mem_info_gtt_total",
                  "read 64 GiB in /sys/class/drm/card1/device/mem_info_vram_total: the BIOS still reserves them",
                  "asked for iommu=pt, read DMA-FQ in /sys/kernel/iommu_groups/*/type"):  # fmt: skip
        assert words in view["why"]
    assert "UMA frame buffer size" in view["hint"]
    assert len(said(host, "INEFFECTIVE")) == 1
    assert "ineffective" in host.run("strixd-cli", "status").stdout


def test_by_itself_it_reboots_twice_at_most_and_once_when_that_helps(host: Host, pair: Pair, judge: Judge) -> None:
    judge.expect("strixd: cmdline is stuck")
    host.sh("umount /proc/cmdline; rm -r /etc/lab/proc")  # then the lab's own command line runs, which never changes
    lay_cluster(pair, {**SETTINGS, "kernel": {"arguments": ["quiet2"], "reboot": "auto"}})
    begun = time.time()
    host.run(*APPLY_SOON)
    view = becomes_by_reboots(host, "stuck", begun)
    assert len(said(host, "REBOOTING")) == 2
    assert view["why"].startswith(f"rebooted 2 times, and the running kernel still differs: {OURS} quiet2")
    assert "cat /proc/cmdline; grubby --info=DEFAULT" in view["hint"]
    time.sleep(3)
    assert len(said(host, "REBOOTING")) == 2
    lay_running(host, f"{ALL} quiet2")
    lay_effects(host)
    begun = time.time()
    host.run(*APPLY_SOON)
    becomes_by_reboots(host, "ok", begun)
    assert len(said(host, "REBOOTING")) == 3
    assert not host.path("/var/lib/strixd/reboots.json").exists()
