"""%pre and %post --nochroot on a machine that is one: disks of two kinds, a stick that strixd-media built, the links
and mounts of a real kernel and udev. tests/media has the cases; this shows that what is laid out there is what is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from strixd import __version__
from strixd.media.rpms import WANTED
from tests.media import pieces
from tests.media.lab import cluster, media, rendered
from tests.media.pieces import REFERENCE, SECRET
from tests.vm.guest import FILES, HOST, make_disk
from tests.vm.image import WHOLE_KERNEL
from tests.vm.image import pieces as pieces_of
from tests.vm.machine import machine

Seen = dict[str, Any]
SIZE = 8 << 30
"""Bytes of each of the two disks; nothing is written to them."""
NVME, SATA, STICK = "nvme-QEMU_NVMe_Ctrl_FIRST", "ata-QEMU_HARDDISK_SECOND", "usb-QEMU_QEMU_HARDDISK_STICK-0:0"
MAC, SERIAL = "b4:96:91:00:00:01", "PF1"
STOPS = "strixd: the installation stops here; no disk was touched."


def _with_disk(text: str, name: str) -> str:
    """The first node is to be installed on this disk."""
    return text.replace('role = "head"\n', f'role = "head"\ndisk = "{name}"\n', 1)


KICKSTARTS = {
    "by_serial": rendered(_with_disk(cluster(card="interface"), NVME)),
    "named": rendered(_with_disk(cluster(), SATA)),
    "absent": rendered(_with_disk(cluster(), "nvme-GONE")),
    "onto_the_stick": rendered(_with_disk(cluster(), STICK)),
    "foreign": rendered(cluster().replace(MAC, "b4:96:91:00:00:77")),
}


@pytest.fixture(scope="module")
def stick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stick")
    for name in WANTED:
        pieces.rpm(folder / "rpms", name, __version__)
    (folder / "cluster.toml").write_text(cluster())
    (folder / "cluster.key").write_text(f"{SECRET}\n")
    archive, model = pieces.archive(folder / "image.tar", REFERENCE), pieces.model(folder)
    parts = ("--cluster", folder / "cluster.toml", "--rpms", folder / "rpms", "--image", archive, "--model", model)
    done = media("build", *parts, "--with-cluster-key", folder / "cluster.key", "--out", folder / "halo.iso")
    assert done.returncode == 0, done.stderr
    return folder / "halo.iso"


@pytest.fixture(scope="module")
def seen(stick: Path, packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    folder = tmp_path_factory.mktemp("disks")
    disks = first, second = folder / "first", folder / "second"
    for disk in disks:
        with disk.open("wb") as file:
            file.truncate(SIZE)
    texts = {f"/usr/local/share/kickstarts/{name}.ks": (text, 0o644) for name, text in KICKSTARTS.items()}
    with machine(memory=1024, devices=_devices(first, second, stick)) as made:
        make_disk(made.disk, pieces_of(WHOLE_KERNEL), packages, {**HOST, **texts})
        told = made.boot(FILES / "pick.py")
        return {**told, "console": made.console(), "written": sum(disk.stat().st_blocks for disk in disks)}


def _devices(first: Path, second: Path, stick: Path) -> tuple[str, ...]:
    drives = {"first": first, "second": second, "stick": stick}
    files = (f"if=none,id={name},format=raw,snapshot={_kept(name)},file={file}" for name, file in drives.items())
    return (
        *(word for file in files for word in ("-drive", file)),
        *("-device", "nvme,drive=first,serial=FIRST", "-device", "ide-hd,drive=second,serial=SECOND"),
        *("-device", "qemu-xhci", "-device", "usb-storage,drive=stick,serial=STICK,removable=on"),
        *("-netdev", "hubport,id=fabric,hubid=0", "-device", f"virtio-net-pci,netdev=fabric,mac={MAC}"),
        *("-smbios", f"type=1,serial={SERIAL}"),
    )


def _kept(name: str) -> str:
    """What would be written to a disk is to be found on it."""
    return "on" if name == "stick" else "off"


def test_two_disks_without_a_rule_are_a_stop_with_both_named(seen: Seen) -> None:
    told = seen["of_the_stick"]
    assert (told["status"], told["include"]) == (1, None)
    assert STOPS in told["said"]
    assert f"nvme0n1 ({NVME}, 8 GiB)" in told["said"]
    assert f"{seen['second']} ({SATA}, 8 GiB)" in told["said"]
    assert STICK not in told["said"]


@pytest.mark.parametrize(("how", "name"), [("by_serial", NVME), ("named", SATA), ("one_disk", NVME)])
def test_the_disk_that_is_meant(seen: Seen, how: str, name: str) -> None:
    told, disk = seen[how], "nvme0n1" if name == NVME else seen["second"]
    assert told["status"] == 0, told
    assert f"this machine is halo1; {disk} ({name}, 8 GiB) will be erased" in told["said"]
    assert told["include"][0] == "network --hostname=halo1"
    assert told["include"][-3:] == [
        "repo --name=strixd --baseurl=file:///run/strixd-medium/repo",
        f"ignoredisk --only-use={disk}",
        f"clearpart --all --drives={disk} --initlabel --disklabel=gpt",
    ]


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("absent", ["halo1: there is no disk nvme-GONE here", NVME, SATA]),
        ("onto_the_stick", [f"halo1: {STICK} is in use as the installation's medium"]),
        ("foreign", ["this machine is not in cluster.toml", f"its MACs are {MAC}", 'its serial number is "pf1"']),
    ],
)
def test_what_stops_it(seen: Seen, how: str, words: list[str]) -> None:
    assert (seen[how]["status"], seen[how]["include"]) == (1, None)
    for word in (STOPS, *words):
        assert word in seen[how]["said"]
        assert word in seen["console"]


def test_the_fabric_gets_its_address_only_where_it_is_known(seen: Seen) -> None:
    line = f"network --device={MAC} --bootproto=static --ip=192.168.100.1"
    assert any(each.startswith(line) for each in seen["named"]["include"])
    assert f"network --device={MAC} --bootproto=dhcp --onboot=yes --activate" in seen["by_serial"]["include"]


def test_the_repository_is_copied_from_the_stick(seen: Seen) -> None:
    of_the_stick = {name: digest for name, digest in seen["stick"].items() if name.startswith("strixd/repo/")}
    assert any(name.endswith(".rpm") for name in of_the_stick)
    assert {f"strixd/repo/{name}": digest for name, digest in seen["repository"].items()} == of_the_stick


def test_image_model_and_key_reach_the_new_system(seen: Seen) -> None:
    assert (seen["brought"]["status"], seen["key_mode"]) == (0, "0o600"), seen["brought"]
    assert SECRET not in seen["brought"]["said"]
    for name in ("strixd/image/image.tar", "strixd/key/cluster.key", pieces.NAME):
        assert seen["stick"][name] in seen["target"].values()


def test_nothing_is_mounted_or_written_in_the_end(seen: Seen) -> None:
    assert "/run/strixd-medium" not in seen["mounts"]
    assert seen["written"] == 0
