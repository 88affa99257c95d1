"""A remastered image really boots, under BIOS and UEFI, as a CD and from a stick: the kernel hears of the kickstart."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from strixd import __version__
from strixd.media.rpms import WANTED
from tests.media import pieces
from tests.media.lab import cluster, media
from tests.media.pieces import LABEL
from tests.vm import image, standin
from tests.vm.machine import BOOT, CODE, VARIABLES

pytestmark = pytest.mark.skipif(not standin.GRUB.is_dir(), reason="GRUB's files have other names here")
TOLD = f"inst.ks=hd:LABEL={LABEL}:/ks.cfg"


@pytest.fixture(scope="module")
def medium(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("medium")
    source = standin.image(folder, image.pieces().kernel)
    for name in WANTED:
        pieces.rpm(folder / "rpms", name, __version__)
    (folder / "cluster.toml").write_text(cluster())
    parts = ("--cluster", folder / "cluster.toml", "--rpms", folder / "rpms", "--iso", source)
    done = media("build", *parts, "--out", folder / "halo.iso")
    assert done.returncode == 0, done.stderr
    return folder / "halo.iso"


@pytest.mark.parametrize("way", ["cd", "usb"])
@pytest.mark.parametrize("firmware", ["bios", "uefi"])
def test_the_kernel_hears_of_the_kickstart(medium: Path, tmp_path: Path, firmware: str, way: str) -> None:
    console = tmp_path / "console"
    command = ["setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64", "-machine", "q35", "-accel", "tcg", "-m", "1024"]
    command += ["-nodefaults", "-display", "none", "-no-reboot", "-serial", f"file:{console}"]
    command += _firmware(tmp_path) if firmware == "uefi" else []
    command += _drive(medium, way)
    done = subprocess.run(command, timeout=BOOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = console.read_text(errors="replace").replace("\r", "")
    (line,) = [line for line in said.splitlines() if standin.SAID in line]
    assert TOLD in line.split()
    assert f"inst.stage2=hd:LABEL={LABEL}" in line.split()


def _firmware(folder: Path) -> list[str]:
    shutil.copy(VARIABLES, folder / "variables")
    parts = (f"readonly=on,file={CODE}", f"file={folder / 'variables'}")
    return [word for part in parts for word in ("-drive", f"if=pflash,format=raw,{part}")]


def _drive(file: Path, way: str) -> list[str]:
    drive = ["-drive", f"if=none,id=medium,format=raw,snapshot=on,file={file}"]
    if way == "cd":
        return [*drive, "-device", "ide-cd,drive=medium"]
    return [*drive, "-device", "qemu-xhci", "-device", "usb-storage,drive=medium"]
