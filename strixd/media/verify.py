"""A medium is read again before it gets its name: label, every file by its hash, kickstart, menus, checksum."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Final

from strixd.errors import Rejected
from strixd.media import fat, fedora, grub, iso, tools
from strixd.media.contents import blocks, digest

FEDORAS: Final = tuple(f"F{release}" for release in fedora.RELEASES)
Told = Callable[[int], None]


def kickstart(file: Path) -> None:
    """By Fedora's own reader of kickstarts; the syntax of each release that we install."""
    for version in FEDORAS:
        tools.run("ksvalidator", "-v", version, file, what=f"use this kickstart for {version}")


def iso_volume(image: Path, name: str, wanted: Mapping[str, str], told: Told) -> None:
    """Every file at its place by its hash. Raises Rejected at the first that differs."""
    _same("its label", iso.label(image), name)
    found = iso.extents(image)
    for place, value in wanted.items():
        if place not in found:
            raise Rejected(f"Cannot find {place} on the medium that was just written")
        _same(place, _hash(image, found[place][1], told), value)


def fat_volume(image: Path, name: str, wanted: Mapping[str, str], told: Told) -> None:
    _same("its label", fat.label(image), name)
    for place, value in wanted.items():
        _same(place, fat.hash_of(image, place, told), value)


def bootable(image: Path, work: Path) -> None:
    """inst.ks in all three menus, and a checksum that the installer's own test of the medium will accept."""
    found = iso.extents(image)
    menus = {place: iso.read(image, found[place][1]).decode() for place in fedora.MENUS}
    menus["the EFI system partition"] = fedora.efi_menu(image, fedora.partition(image), work)[1]
    for place, text in menus.items():
        if not grub.unattended(text):
            raise Rejected(f"Cannot find the kickstart in the menu of {place}, in the medium that was just written")
    growing = tools.Growing(image, image.stat().st_size, lambda _size: None)
    tools.run("checkisomd5", image, what="verify the checksum in the image", growing=growing)


def _hash(image: Path, places: tuple[iso.Extent, ...], told: Told) -> str:
    with image.open("rb") as file:
        return digest(block for place in places for block in _part(file, place, told))


def _part(file: IO[bytes], place: iso.Extent, told: Told) -> Iterator[bytes]:
    file.seek(place.start)
    yield from blocks(file, told, place.size)


def _same(what: str, found: str, wanted: str) -> None:
    if found != wanted:
        raise Rejected(f"Cannot trust the medium that was just written: {what} reads {found}, and not {wanted}")
