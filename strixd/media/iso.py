"""ISO images by xorriso: a volume of our own, and what is in an image that is there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from strixd.errors import Refused, Rejected
from strixd.media import tools
from strixd.media.contents import Item

SECTOR: Final = 2048
_FIRST = 16 * SECTOR  # where the primary volume descriptor is (ECMA-119)
_MAGIC = b"\x01CD001"
_LABEL = slice(40, 72)
_EXTENT = re.compile(r"File data lba:\s*(\d+) ,\s*(\d+) ,\s*(\d+) ,\s*(\d+) , (.*)")


@dataclass(frozen=True, slots=True)
class Extent:
    """A part of a file in the image: bytes from `start`."""

    start: int
    size: int


def label(image: Path) -> str:
    """The volume's name; raises Refused when this is no ISO 9660 image."""
    try:
        with image.open("rb") as file:
            file.seek(_FIRST)
            descriptor = file.read(SECTOR)
    except OSError as error:
        raise Refused(f"Cannot read {image}: {error.strerror}") from None
    if not descriptor.startswith(_MAGIC) or len(descriptor) < SECTOR:
        raise Refused(f"{image} is no ISO image", hint="a Fedora medium is: https://fedoraproject.org/server/download")
    return descriptor[_LABEL].decode("ascii", "replace").rstrip(" \0")


def make(image: Path, name: str, items: tuple[Item, ...], growing: tools.Growing) -> None:
    """A volume of its own. Level 3, for files of 4 GiB and more; Joliet, so that people can look at it anywhere."""
    start = ("xorriso", "-volid", name, "-compliance", "iso_9660_level=3", "-joliet", "on", "-outdev", image)
    tools.run(*start, *mapped(items), what="write the ISO image", growing=growing)


def mapped(items: tuple[Item, ...]) -> Iterator[str]:
    """The words for xorriso that put files in their places, readable to everybody."""
    for each in items:
        yield from ("-map", str(each.source), f"/{each.place}")
    for top in sorted({f"/{each.place.partition('/')[0]}" for each in items}):
        for kind, mode in (("f", "0444"), ("d", "0555")):
            yield from ("-find", top, "-type", kind, "-exec", "chmod", mode, "--")
        yield from ("-chown_r", "0", top, "--", "-chgrp_r", "0", top, "--")


def extents(image: Path) -> dict[str, tuple[int, tuple[Extent, ...]]]:
    """Every file by its path without the first slash: its size, and where its bytes are."""
    text = tools.run(
        "xorriso", "-indev", image, "-find", "/", "-type", "f", "-exec", "report_lba", "--", what=f"read {image}"
    )
    found: dict[str, tuple[int, tuple[Extent, ...]]] = {}
    for line in filter(None, map(_EXTENT.match, text.splitlines())):
        start, blocks, size = int(line[2]), int(line[3]), int(line[4])
        path = "".join(shlex.split(line[5])).lstrip("/")
        before = found.get(path, (size, ()))[1]
        left = size - sum(each.size for each in before)
        extent = Extent(start * SECTOR, min(blocks * SECTOR, left))
        found[path] = (size, (*before, extent))
    if not found:
        raise Rejected(f"Cannot read {image}: xorriso finds no file in it")
    return found


def read(image: Path, places: tuple[Extent, ...]) -> bytes:
    """A small file's bytes."""
    with image.open("rb") as file:
        return b"".join(_at(file, each) for each in places)


def _at(file: IO[bytes], extent: Extent) -> bytes:
    file.seek(extent.start)
    return file.read(extent.size)
