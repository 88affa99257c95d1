"""An unpartitioned FAT volume, by dosfstools and mtools: for a stick that stays writable."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Final

from strixd.decode import listed
from strixd.errors import Refused
from strixd.media import tools
from strixd.media.contents import Item, blocks, digest

LARGEST: Final = (4 << 30) - 1
"""Bytes of a file on FAT32."""
_CLUSTER = 32 << 10  # the largest that mkfs.vfat chooses
_KIB = 1024
_UNNAMEABLE = re.compile(r'["*:<>?\\|]|[. ](/|$)')


def fits(items: tuple[Item, ...]) -> None:
    """Raises Refused when FAT cannot hold one of them."""
    for words, cannot in (
        ("files of 4 GiB and more", [each.place for each in items if each.size > LARGEST]),
        ("such names", [each.place for each in items if _UNNAMEABLE.search(each.place)]),
    ):
        if cannot:
            names = listed(cannot[:3], "and") + (f" and {len(cannot) - 3} more" if len(cannot) > 3 else "")
            raise Refused(f"FAT holds no {words}: {names}", hint="an ISO image does: --out NAME.iso")


def needed(items: tuple[Item, ...]) -> int:
    """Bytes of a volume for these, with both of its tables and some room to write on."""
    clusters = sum(each.size // _CLUSTER + 1 for each in items) + len(_folders(items))
    return clusters * _CLUSTER + clusters * 128 + (16 << 20)


def make(image: Path, name: str, items: tuple[Item, ...], told: Callable[[int], None]) -> None:
    tools.run("mkfs.vfat", "-C", "-n", name, image, str(needed(items) // _KIB), what="make a FAT volume")
    for folder in _folders(items):
        tools.run("mmd", "-i", image, f"::/{folder}", what=f"make the folder {folder} on the volume")
    for each in items:
        growing = tools.Growing(image, each.size, lambda _size: None)
        words = f"write {each.place} to the volume"
        tools.run("mcopy", "-i", image, each.source, f"::/{each.place}", what=words, growing=growing)
        told(each.size)


def label(image: Path) -> str:
    """The volume's name."""
    said = tools.run("mlabel", "-s", "-i", image, "::", what="read the label of the volume")
    return said.rpartition(" is ")[2].split("(")[0].strip()


def hash_of(image: Path, place: str, told: Callable[[int], None]) -> str:
    """SHA-256 of a file on the volume."""
    most, what = image.stat().st_size, f"read {place} from the volume"
    with tools.output("mcopy", "-i", image, f"::/{place}", "-", what=what, most=most) as file:
        return digest(blocks(file, told))


def _folders(items: tuple[Item, ...]) -> tuple[str, ...]:
    """All that are needed, outer ones first."""
    found = {str(folder) for each in items for folder in PurePosixPath(each.place).parents}
    return tuple(sorted(found - {"."}))
