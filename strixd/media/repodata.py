"""What a repository says of its packages: repodata/, as createrepo_c writes it and dnf reads it."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from strixd.errors import Rejected
from strixd.media import tools
from strixd.media.capability import Capability, Package

INDEX: Final = "repodata/repomd.xml"
_REPO = "{http://linux.duke.edu/metadata/repo}"
_COMMON = "{http://linux.duke.edu/metadata/common}"
_RPM = "{http://linux.duke.edu/metadata/rpm}"


def primary(place: Path) -> str:
    """Where the list of packages is, below the repository's folder. Raises Rejected."""
    try:
        found = ElementTree.parse(place / INDEX).find(f"{_REPO}data[@type='primary']/{_REPO}location")
    except (OSError, ElementTree.ParseError) as error:
        raise _unreadable(place / INDEX, error) from None
    if found is None:
        raise Rejected(f"Cannot read {place / INDEX}: it names no list of packages")
    return found.get("href", "")


def packages(place: Path) -> tuple[Package, ...]:
    """Raises Rejected."""
    file = place / primary(place)
    try:
        root = ElementTree.fromstring(_OPENED[file.suffix](file))
    except (OSError, EOFError, lzma.LZMAError, ElementTree.ParseError, KeyError) as error:
        raise _unreadable(file, error) from None
    return tuple(map(_package, root.iter(f"{_COMMON}package")))


def _zstd(file: Path) -> bytes:
    """Fedora's own since 41; Python reads it from 3.14 on."""
    return tools.run("zstd", "-dc", file, what=f"read {file.name}").encode()


_OPENED: dict[str, Callable[[Path], bytes]] = {
    ".gz": lambda file: gzip.decompress(file.read_bytes()),
    ".xz": lambda file: lzma.decompress(file.read_bytes()),
    ".zst": _zstd,
    ".xml": Path.read_bytes,
}


def _package(found: Element) -> Package:
    version = found.find(f"{_COMMON}version")
    files = (Capability(each.text or "") for each in found.iter(f"{_COMMON}file"))
    return Package(
        found.findtext(f"{_COMMON}name", ""),
        "" if version is None else version.get("ver", ""),
        (*_entries(found, "provides"), *files),
        tuple(_entries(found, "requires")),
    )


def _entries(found: Element, kind: str) -> Iterator[Capability]:
    for each in found.iterfind(f"{_COMMON}format/{_RPM}{kind}/{_RPM}entry"):
        words = (each.get(key, "") for key in ("name", "flags", "epoch", "ver", "rel"))
        yield Capability(*words)


def _unreadable(file: Path, error: Exception) -> Rejected:
    return Rejected(f"Cannot read {file}: {error}")
