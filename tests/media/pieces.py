"""What media are made of, in small: RPMs, an OCI archive, a model, and an image with the layout that lorax gives
Fedora's (it boots nothing; tests/vm has one that does)."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path

from tests.media.lab import TOOLS

LABEL = "Fedora-E-dvd-x86_64-43"
ESP = "C12A7328-F81F-11D2-BA4B-00A0C93EC93B"
EBD = "EBD0A0A2-B9E5-4433-87C0-68B6B72699C7"
REFERENCE = "docker.io/kyuz0/vllm-therock-gfx1151:latest"
SECRET = "5e" * 32
NAME = "strixd/models/tiny/sub/it's a = \\ model.safetensors"
MENU = f"""\
set default="1"
search --no-floppy --set=root -l '{LABEL}'
menuentry 'Install Fedora 43' --class fedora {{
	linux /images/pxeboot/vmlinuz inst.stage2=hd:LABEL={LABEL} quiet
	initrd /images/pxeboot/initrd.img
}}
menuentry 'Test this media & install Fedora 43' --class fedora {{
	linux /images/pxeboot/vmlinuz inst.stage2=hd:LABEL={LABEL} rd.live.check quiet
	initrd /images/pxeboot/initrd.img
}}
submenu 'Troubleshooting -->' {{
	menuentry 'Rescue a Fedora system' {{
		linux /images/pxeboot/vmlinuz inst.stage2=hd:LABEL={LABEL} inst.rescue quiet
		initrd /images/pxeboot/initrd.img
	}}
}}
"""


def medium(folder: Path, files: dict[str, str]) -> Path:
    """Laid out as an installer sees one: the folder, with its list of hashes."""
    sums = ""
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        sums += f"{hashlib.sha256(text.encode()).hexdigest()}  {name}\n"
    (folder / "strixd").mkdir(parents=True, exist_ok=True)
    (folder / "strixd/SHA256SUMS").write_text(sums)
    return folder


def run(*command: str | Path) -> str:
    done = subprocess.run(list(map(str, command)), env=TOOLS, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def fedora(
    folder: Path,
    *,
    menu: str = MENU,
    without: str = "",
    real: Mapping[str, Path] | None = None,
    packages: Path | None = None,
) -> Path:
    """An image; `without` names a file that is not in it, or "esp" for the EFI system partition. `real`: files instead
    of those that only have their names, for an image that boots; "mbr" is what stands before the image. `packages`: a
    folder of RPMs, for an image that has them: a DVD."""
    tree, efi, out = folder / "tree", folder / "efi.img", folder / "Fedora.iso"
    files = {name: text.encode() for name, text in _dummies(menu).items() if name != without}
    files |= {name: file.read_bytes() for name, file in (real or {}).items()}
    folder.mkdir(exist_ok=True)
    (folder / "mbr").write_bytes(files.pop("mbr"))
    for name, content in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(content)
    if packages:
        shutil.copytree(packages, tree / "Packages")
        run("createrepo_c", "--no-database", "--general-compress-type=xz", tree)
    run("mkfs.vfat", "-C", "-n", "ANACONDA", efi, "8192" if real else "1024")
    run("mcopy", "-s", "-i", efi, tree / "EFI", "::/")
    appended = ("-appended_part_as_gpt", "-append_partition", "2", ESP, efi, "-iso_mbr_part_type", EBD)
    bios = ("-c", "boot.cat", "-b", "images/eltorito.img", "-no-emul-boot", "-boot-load-size", "4", "-boot-info-table")
    uefi = ("-eltorito-alt-boot", "-e", "--interval:appended_partition_2:all::", "-no-emul-boot")
    hybrid = ("--grub2-mbr", folder / "mbr", "-partition_offset", "16", *appended, *bios, "--grub2-boot-info", *uefi)
    start = ("xorriso", "-as", "mkisofs", "-o", out, "-R", "-J", "-V", LABEL)
    run(*start, *(() if without == "esp" else hybrid), tree)
    run("implantisomd5", out)
    return out


def _dummies(menu: str) -> dict[str, str]:
    return {
        "mbr": "\0" * 512,
        "images/pxeboot/vmlinuz": "kernel",
        "images/pxeboot/initrd.img": "initrd",
        "images/install.img": "stage 2",
        "images/eltorito.img": "\0" * 4096,
        "EFI/BOOT/grub.cfg": menu,
        "EFI/BOOT/BOOTX64.EFI": "loader",
        "boot/grub2/grub.cfg": menu,
        ".discinfo": "1761000000.0\n43\nx86_64\n",
    }


SPEC = """\
Name: {name}
Version: {version}
Release: 1
Summary: Stands for one of strixd's packages
License: Apache-2.0
BuildArch: noarch
{more}
%description
As above.
%files
"""


def rpm(folder: Path, name: str, version: str, *more: str) -> Path:
    """A package without files, into this folder; `more`: lines of its spec, such as Requires."""
    spec = folder / f"{name}.spec"
    folder.mkdir(exist_ok=True)
    spec.write_text(SPEC.format(name=name, version=version, more="\n".join(more)))
    defined = {"_topdir": folder / "top", "_rpmdir": folder, "_rpmfilename": "%{NAME}-%{VERSION}.rpm"}
    words = [word for key, value in defined.items() for word in ("--define", f"{key} {value}")]
    run("rpmbuild", "-bb", "--quiet", *words, spec)
    spec.unlink()
    return folder / f"{name}-{version}.rpm"


def archive(file: Path, reference: str) -> Path:
    """An OCI archive with nothing but an index."""
    annotated = {"annotations": {"org.opencontainers.image.ref.name": reference}} if reference else {}
    text = json.dumps({"schemaVersion": 2, "manifests": [{"digest": "sha256:0", **annotated}]}).encode()
    with tarfile.open(file, "w") as out:
        entry = tarfile.TarInfo("index.json")
        entry.size = len(text)
        out.addfile(entry, io.BytesIO(text))
    return file


def model(folder: Path) -> Path:
    """As the hub's cache lays one out: links to where the bytes are."""
    blob = folder / "blobs" / "4711"
    blob.parent.mkdir(parents=True)
    blob.write_bytes(b"weights" * 100_000)
    tiny = folder / "tiny"
    (tiny / "sub").mkdir(parents=True)
    (tiny / "config.json").write_text("{}")
    (tiny / "sub" / "it's a = \\ model.safetensors").symlink_to(blob)
    return tiny
