"""%pre in a real bash, on machines laid out as the installer sees them: which node, which disk, or why not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.media.lab import (
    DISK,
    INSTALLER,
    MOUNT,
    TOOLS,
    UMOUNT,
    card,
    cluster,
    disk,
    machine,
    read,
    rendered,
    run_script,
    script,
    stand_in,
)

SECOND = disk("nvme1n1", 3725, "nvme-Samsung_SSD_990_PRO_1", where="pci0000:00/0000:05:00.0")
DATA = disk("nvme1n1", 931, "nvme-KINGSTON_1", where="pci0000:00/0000:05:00.0")
BY_MAC, BY_SERIAL = cluster(), cluster(card="interface")
NAMED = BY_MAC.replace('mac = "b4:96:91:00:00:01"', 'mac = "b4:96:91:00:00:01"\ndisk = "nvme-KINGSTON_1"')
SATA = disk("sdb", 9000, where="pci0000:00/ata1")


def picked(root: Path, text: str, node: str | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    return run_script(INSTALLER + script(rendered(text, node), "%pre"), root, **more)


def include(root: Path) -> list[str]:
    return (root / "tmp/strixd-node.ks").read_text().splitlines()


def chosen_disk(root: Path) -> str:
    return next(line for line in include(root) if line.startswith("ignoredisk")).partition("=")[2]


MIRROR = "https://mirrors.fedoraproject.org/metalink"
RELEASE = f'--metalink="{MIRROR}?repo=fedora-$releasever&arch=$basearch"'
UPDATES = f'--metalink="{MIRROR}?repo=updates-released-f$releasever&arch=$basearch"'


@pytest.mark.parametrize("text", [BY_MAC, BY_SERIAL], ids=["mac", "serial"])
def test_a_known_machine(tmp_path: Path, text: str) -> None:
    done = picked(machine(tmp_path), text)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"strixd: this machine is halo1; nvme0n1 ({DISK}, 3726 GiB) will be erased\n"
    assert include(tmp_path) == [
        "network --hostname=halo1",
        "network --device=9c:bf:0d:00:00:01 --bootproto=dhcp --onboot=yes --activate",
        "network --device=b4:96:91:00:00:01 --bootproto=static --ip=192.168.100.1 --netmask=255.255.255.0 "
        "--nodefroute --noipv6 --onboot=yes --no-activate",
        f"url {RELEASE}",
        f"repo --name=mirrors-updates {UPDATES}",
        "ignoredisk --only-use=nvme0n1",
        "clearpart --all --drives=nvme0n1 --initlabel --disklabel=gpt",
    ]


STOPS = "strixd: the installation stops here; no disk was touched.\n"
FOREIGN = (card("enp1s0", "02:00:00:00:00:99", slot="0a"), "- sys/class/net/enp194s0np0")


@pytest.mark.parametrize(
    ("text", "changes", "words"),
    [
        (BY_MAC, FOREIGN, ["is not in cluster.toml", "02:00:00:00:00:99", "9c:bf:0d:00:00:01", 'number is "pf1"']),
        (BY_SERIAL, ("sys/class/dmi/id/product_serial: XX",), ["is not in cluster.toml", 'number is "xx"', "b4:96"]),
        (BY_SERIAL, ("- sys/class/dmi",), ["is not in cluster.toml", '"unknown"', "mac or serial"]),
        (BY_MAC, ("- sys/class/net", "- sys/class/dmi"), ["is not in cluster.toml", "MACs are none"]),
        (BY_MAC, (card("eno2", "b4:96:91:00:00:02", slot="07"),), ["more than one node", "halo1 halo2", "b4:96:91"]),
        (BY_MAC, ("- sys/block/nvme0n1",), ["halo1: there is no internal disk"]),
        (
            BY_MAC,
            (SECOND,),
            ["halo1: two disks could be meant", DISK, "nvme-Samsung_SSD_990_PRO_1", "disk ="],
        ),
        (
            cluster(each='disk = "nvme-OTHER_1"', card="mac").replace("OTHER_1", "OTHER_2", 1),
            (),
            ["no disk nvme-OTHER_2"],
        ),
    ],
    ids=["mac", "serial", "no-serial", "nothing", "two-nodes", "no-disk", "two-disks", "other-disk"],
)
def test_it_stops_before_anything_is_touched(
    tmp_path: Path, text: str, changes: tuple[str, ...], words: list[str]
) -> None:
    done = picked(machine(tmp_path, *changes), text)
    assert done.returncode == 1
    assert done.stderr.startswith(STOPS)
    assert all(word in done.stderr for word in words), done.stderr
    assert not (tmp_path / "tmp/strixd-node.ks").exists()


def test_the_reason_is_on_the_console(tmp_path: Path) -> None:
    done = picked(machine(tmp_path, *FOREIGN, "dev/console: was here"), BY_MAC)
    assert (tmp_path / "dev/console").read_text() == done.stderr


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (FOREIGN, "is not in cluster.toml: its MACs are 9c:bf:0d:00:00:01 02:00:00:00:00:99"),
        ((SECOND,), "two disks could be meant"),
        (("- tmp",), "of %pre failed"),
    ],
    ids=["foreign", "two-disks", "unexpected"],
)
def test_in_the_installer_the_reason_gets_a_screen_of_its_own_and_stays(
    tmp_path: Path, changes: tuple[str, ...], words: str
) -> None:
    """Whatever happens to the console; and there is no second try."""
    for name in ("chvt", "sleep"):
        stand_in(tmp_path / "bin", name, f'echo "{name} $*" >> {tmp_path}/called; exit 1')
    root = machine(tmp_path / "root", *changes, "run/anaconda/", "dev/tty9: was here")
    done = picked(root, BY_MAC, PATH=f"{tmp_path / 'bin'}:{TOOLS['PATH']}")
    assert done.returncode == 1
    cleared, screen = (root / "dev/tty9").read_text().split("\x1b[2J\x1b[H")
    assert (cleared, screen[: len(STOPS)]) == ("", STOPS)
    assert words in screen
    assert "switch the machine off" in screen
    assert (tmp_path / "called").read_text().startswith("chvt 9\nsleep infinity\n")


THUNDERBOLT = disk("nvme2n1", 7000, where="pci0000:00/0000:06:00.0/0000:60:00.0")
CARD_READER = disk("mmcblk0", 9000, where="pci0000:00/0000:08:00.0/mmc0")


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ((), "nvme0n1"),
        ((DATA,), "nvme0n1"),
        ((SATA,), "sdb"),
        ((disk("sdb", 9000, where="pci0000:00/0000:09:00.0/usb3/3-2"),), "nvme0n1"),
        ((disk("sdb", 9000, where="pci0000:00/ata1", removable=1),), "nvme0n1"),
        ((THUNDERBOLT, "sys/devices/pci0000:00/0000:06:00.0/0000:60:00.0/removable: removable"), "nvme0n1"),
        ((THUNDERBOLT, "sys/devices/pci0000:00/0000:06:00.0/0000:60:00.0/removable: fixed"), "nvme2n1"),
        ((CARD_READER, "sys/devices/pci0000:00/0000:08:00.0/mmc0/block/mmcblk0/device/type: SD"), "nvme0n1"),
        ((CARD_READER, "sys/devices/pci0000:00/0000:08:00.0/mmc0/block/mmcblk0/device/type: MMC"), "mmcblk0"),
        ((disk("nvme1c0n1", 9000), "sys/block/nvme1c0n1/hidden: 1"), "nvme0n1"),
        ((SATA, "sys/block/sdb/ro: 1"), "nvme0n1"),
        ((disk("sdb", 0, where="pci0000:00/ata1"),), "nvme0n1"),
        ((disk("dm-0", 9000, where="virtual"), disk("zram0", 9000, where="virtual")), "nvme0n1"),
        ((SATA, "dev/disk/by-label/OEMDRV -> dev/sdb1"), "nvme0n1"),
        (
            (SATA, "proc/mounts: /dev/sdb1 /run/install/repo iso9660 ro"),
            "nvme0n1",
        ),
    ],
    ids=[
        *("one", "data-disk", "larger", "usb", "removable", "thunderbolt", "built-in", "sd-card", "emmc", "hidden"),
        *("read-only", "empty", "virtual", "oemdrv", "mounted"),
    ],
)
def test_the_largest_disk_that_is_inside(tmp_path: Path, changes: tuple[str, ...], found: str) -> None:
    stand_in(tmp_path / "bin", "mount", 'mkdir -p "${@: -1}"')
    stand_in(tmp_path / "bin", "umount", "")
    root = machine(tmp_path / "root", *changes)
    done = picked(root, BY_MAC, PATH=f"{tmp_path / 'bin'}:{TOOLS['PATH']}")
    assert (done.returncode, done.stderr) == (0, "")
    assert chosen_disk(root) == found


def test_the_disk_that_the_file_names(tmp_path: Path) -> None:
    assert picked(machine(tmp_path / "a", DATA), NAMED).returncode == 0
    assert chosen_disk(tmp_path / "a") == "nvme1n1"
    both = picked(machine(tmp_path / "b", SECOND, disk("sdb", 10, "nvme-KINGSTON_1", where="pci0000:00/ata1")), NAMED)
    assert (both.returncode, chosen_disk(tmp_path / "b")) == (0, "sdb")
    medium = picked(machine(tmp_path / "c", DATA, "proc/mounts: /dev/nvme1n1p1 /run/install/repo iso9660 ro"), NAMED)
    assert medium.returncode == 1
    assert "nvme-KINGSTON_1 is in use as the installation's medium" in medium.stderr


def test_a_kickstart_of_one_node_is_for_the_machine_that_it_is_given_to(tmp_path: Path) -> None:
    text = cluster(card="driver").replace('serial = "PF2"', "").replace("thunderbolt-net", "igc")
    assert picked(machine(tmp_path, "sys/class/dmi/id/product_serial: XX"), text, "halo2").returncode == 0
    assert include(tmp_path)[0] == "network --hostname=halo2"
    assert "--device=9c:bf:0d:00:00:01 --bootproto=static --ip=192.168.100.2 " in include(tmp_path)[2]


def test_a_fabric_card_that_is_not_there_or_twice_gets_no_address_yet(tmp_path: Path) -> None:
    assert picked(machine(tmp_path / "a"), cluster(card="driver")).returncode == 0
    twice = cluster(card="driver").replace("thunderbolt-net", "ice")
    assert picked(machine(tmp_path / "b", card("e2", "b4:96:91:00:00:f2", "ice", "04")), twice).returncode == 0
    for root, others in ((tmp_path / "a", 2), (tmp_path / "b", 1)):
        lines = [line for line in include(root) if line.startswith("network --device")]
        assert len(lines) == others
        assert all("--bootproto=dhcp" in line for line in lines)


@pytest.mark.parametrize("place", ["embedded", "volume"])
def test_the_repository_is_brought_to_memory(tmp_path: Path, place: str) -> None:
    root, volume = tmp_path / "root", tmp_path / "volume"
    (volume / "strixd/repo/repodata").mkdir(parents=True)
    (volume / "strixd/repo/a.rpm").write_text("a")
    machine(root, *(["dev/disk/by-label/OEMDRV -> dev/sda"] if place == "volume" else []))
    if place == "embedded":
        (root / "run/install").mkdir(parents=True)
        volume.rename(root / "run/install/repo")
        (root / "run/install/repo/repodata").mkdir()
    stand_in(tmp_path / "bin", "mount", MOUNT)
    stand_in(tmp_path / "bin", "umount", UMOUNT)
    done = picked(root, BY_MAC, PATH=f"{tmp_path / 'bin'}:{TOOLS['PATH']}", VOLUME=str(volume))
    assert (done.returncode, done.stderr) == (0, "")
    assert (root / "run/strixd-medium/repo/a.rpm").read_text() == "a"
    assert not (root / "run/strixd-medium/mounted").exists()
    assert "repo --name=strixd --baseurl=file:///run/strixd-medium/repo" in include(root)
    assert ("url --url=file:///run/install/repo" in include(root)) == (place == "embedded")


DVD = "run/install/repo/repodata/repomd.xml: <repomd/>"
ALL_OF_IT = "run/install/repo/strixd/complete: all is here"
OWN = cluster(more='repository = "https://mirror.example/fedora/$releasever/os/"')
FROM_DVD, FROM_OWN = "url --url=file:///run/install/repo", 'url --url="https://mirror.example/fedora/$releasever/os/"'
FROM_UPDATES = f"repo --name=mirrors-updates {UPDATES}"


@pytest.mark.parametrize(
    ("text", "changes", "wanted"),
    [
        (BY_MAC, (), [f"url {RELEASE}", FROM_UPDATES]),
        (BY_MAC, (DVD,), [FROM_DVD, f"repo --name=mirrors-release {RELEASE}", FROM_UPDATES]),
        (BY_MAC, (DVD, ALL_OF_IT), [FROM_DVD]),
        (BY_MAC, (ALL_OF_IT,), [f"url {RELEASE}", FROM_UPDATES]),
        (OWN, (), [FROM_OWN]),
        (OWN, (DVD,), [FROM_OWN]),
    ],
    ids=["mirrors", "dvd", "dvd-with-all", "no-dvd-though", "own", "own-beside-a-dvd"],
)
def test_where_packages_come_from(tmp_path: Path, text: str, changes: tuple[str, ...], wanted: list[str]) -> None:
    assert picked(machine(tmp_path, *changes), text).returncode == 0
    assert [line for line in include(tmp_path) if line.startswith(("url ", "repo "))] == wanted
    read(rendered(text).replace("%include /tmp/strixd-node.ks", "\n".join(include(tmp_path))), "F44")


def test_an_unexpected_failure_stops_too(tmp_path: Path) -> None:
    done = picked(machine(tmp_path, "- tmp"), BY_MAC)
    assert done.returncode == 1
    assert "of %pre failed" in done.stderr
