"""A Fedora installation image with a kickstart inside: boots unattended under BIOS and UEFI, as a CD and from a stick.

Such an image (as lorax makes it) has its menu three times: for UEFI from a CD, for BIOS, and in an EFI system partition
that is appended to the image. What boots it is kept as it is; the menus are edited, and the checksum is made anew.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from strixd.decode import listed
from strixd.errors import Refused, Rejected
from strixd.media import grub, iso, repodata, tools
from strixd.media.capability import Package
from strixd.media.contents import Item

MENUS: Final = ("EFI/BOOT/grub.cfg", "boot/grub2/grub.cfg")
EFI_MENU: Final = "::/EFI/BOOT/grub.cfg"
RELEASES: Final = {"43": "3.14", "44": "3.14"}
"""Those that are installed, and their Python, for which the packages are built."""
DISCINFO: Final = ".discinfo"
"""Time, release, architecture: a line each."""
_KERNEL = ("images/pxeboot/vmlinuz", "images/pxeboot/initrd.img")
_ESP = "C12A7328-F81F-11D2-BA4B-00A0C93EC93B"
_PARTITION = re.compile(r"^GPT start and size *: +2 +(\d+) +(\d+)", re.MULTILINE)
_BLOCK = 512


@dataclass(frozen=True, slots=True)
class Layout:
    """What of an image is edited: the menus' bytes, and where its EFI partition is."""

    menus: dict[str, str]
    partition: iso.Extent


def layout(image: Path) -> Layout:
    """Raises Refused for what is no such image, or one that was made by us."""
    iso.label(image)
    files = iso.extents(image)
    if "ks.cfg" in files:
        raise Refused(f"{image} has a kickstart already", hint="--iso takes Fedora's own image")
    for place in (*MENUS, *_KERNEL, DISCINFO):
        if place not in files:
            raise _other(image, f"no {place} in it")
    _, release, *_ = f"{iso.read(image, files[DISCINFO][1]).decode(errors='replace')}\n\n".splitlines()
    if release not in RELEASES:
        raise _other(image, f"it is of release {release or 'unknown'}")
    menus = {place: iso.read(image, files[place][1]).decode(errors="replace") for place in MENUS}
    for place, text in menus.items():
        if grub.with_kickstart(text) == text:
            raise _other(image, f"nothing in its {place} starts an installation")
    return Layout(menus, partition(image))


def partition(image: Path) -> iso.Extent:
    """The appended EFI system partition."""
    words = ("-report_system_area", "plain")
    found = _PARTITION.search(tools.run("xorriso", "-indev", image, *words, what=f"read {image}"))
    if found is None:
        raise _other(image, "no EFI system partition behind it")
    return iso.Extent(int(found[1]) * _BLOCK, int(found[2]) * _BLOCK)


def packages(image: Path, place: Path) -> tuple[Package, ...]:
    """What is on a DVD; none on an image that installs from the mirrors. `place`: a folder to be made."""
    files = iso.extents(image)
    if repodata.INDEX not in files:
        return ()
    (place / repodata.INDEX).parent.mkdir(parents=True)
    (place / repodata.INDEX).write_bytes(iso.read(image, files[repodata.INDEX][1]))
    listing = repodata.primary(place)
    if listing not in files:
        raise _other(image, f"no {listing} in it")
    (place / listing).write_bytes(iso.read(image, files[listing][1]))
    return repodata.packages(place)


def efi_menu(image: Path, place: iso.Extent, work: Path) -> tuple[Path, str]:
    """The partition in a file of its own in folder `work`, and the menu in it."""
    own = work / "efi.img"
    with image.open("rb") as source, own.open("wb") as copy:
        source.seek(place.start)
        copy.write(source.read(place.size))
    return own, tools.run("mtype", "-i", own, EFI_MENU, what=f"read the EFI system partition of {image}")


def make(source: Path, out: Path, items: tuple[Item, ...], growing: tools.Growing) -> None:
    """`out` lies in a folder of its own, which takes what is under way."""
    found, work = layout(source), out.parent
    own, menu = efi_menu(source, found.partition, work)
    _put(own, _edited(menu, EFI_MENU), work)
    menus = [word for place, text in found.menus.items() for word in ("-update", _file(work, place, text), f"/{place}")]
    command = ("xorriso", "-indev", source, "-outdev", out, "-boot_image", "any", "replay")
    partition = ("-append_partition", "2", _ESP, own)
    tools.run(*command, *menus, *partition, *iso.mapped(items), what=f"write {out.name} from {source}", growing=growing)
    tools.run("implantisomd5", "--force", out, what="put the checksum into the image", growing=growing)


def _put(partition: Path, text: str, work: Path) -> None:
    edited = work / "efi.cfg"
    edited.write_text(text)
    words = "write the menu of the EFI system partition"
    tools.run("mcopy", "-D", "o", "-o", "-i", partition, edited, EFI_MENU, what=words)


def _file(work: Path, place: str, text: str) -> Path:
    file = work / place.replace("/", "-")
    file.write_text(_edited(text, place))
    file.chmod(0o444)
    return file


def _edited(text: str, place: str) -> str:
    edited = grub.with_kickstart(text)
    if not grub.unattended(edited):
        raise Rejected(f"Cannot edit {place}: nothing in it starts an installation")
    return edited


def _other(image: Path, words: str) -> Refused:
    hint = f"a Server, Everything or netinst image of Fedora {listed(RELEASES)} is meant, not a live image"
    return Refused(f"{image} is not one of the installation media that are known: {words}", hint=hint)
