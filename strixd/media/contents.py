"""What goes onto a medium: every file with its place, its size and its hash.

ks.cfg                   read by the installer
strixd/cluster.toml      for people; the kickstart has its own copy
strixd/repo/             RPMs and repodata
strixd/models/NAME/      weights, if given
strixd/image/image.tar   the container image, if given
strixd/key/cluster.key   only when asked for outright
strixd/complete          only where no node needs the internet while it is installed (supply.py)
strixd/SHA256SUMS        of all these but itself
"""

from __future__ import annotations

import hashlib
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from strixd.errors import Refused

SUMS: Final = "strixd/SHA256SUMS"
KEY: Final = "strixd/key/cluster.key"
IMAGE: Final = "strixd/image/image.tar"
BLOCK: Final = 1 << 20
_MAKES = "(umask 077; openssl rand -hex 32 > cluster.key)"
_KEY = re.compile(rb"[0-9a-f]{64}\n?")  # as `strixd-cli key new` writes it


@dataclass(frozen=True, slots=True)
class Item:
    """One file: where it is on the medium, and where its bytes come from."""

    place: str
    source: Path
    size: int


def item(place: str, source: Path) -> Item:
    """Raises Refused for what is no file that can be read."""
    if not place.isprintable():
        raise Refused(f"{place!r} has a control character in its name, which no medium should carry")
    try:
        real = source.resolve(strict=True)
        status = real.stat()
        with real.open("rb"):
            pass
    except OSError as error:
        raise Refused(f"Cannot read {source}: {error.strerror}") from None
    if not stat.S_ISREG(status.st_mode):
        raise Refused(f"{source} is neither a file nor a folder of files")
    return Item(place, real, status.st_size)


def tree(place: str, folder: Path) -> Iterator[Item]:
    """All files below a folder; links count as what they lead to, as in the cache of the hub."""
    for found in sorted(folder.rglob("*")):
        if not found.is_dir():
            yield item(f"{place}/{found.relative_to(folder)}", found)


def model(folder: Path) -> Iterator[Item]:
    """A folder of weights as vLLM reads it. Raises Refused when it is none."""
    if not (folder / "config.json").is_file():
        words = "has no config.json" if folder.is_dir() else "is no folder"
        raise Refused(f"{folder} is no model: it {words}", hint="--model takes the folder with config.json in it")
    return tree(f"strixd/models/{folder.resolve().name}", folder)


def hashed(items: Iterable[Item], told: Callable[[int], None]) -> dict[str, str]:
    """SHA-256 of each by its place; `told` as in blocks()."""
    found = {}
    for each in items:
        with each.source.open("rb") as file:
            found[each.place] = digest(blocks(file, told))
    return found


def digest(read: Iterable[bytes]) -> str:
    """SHA-256."""
    state = hashlib.sha256()
    for block in read:
        state.update(block)
    return state.hexdigest()


def blocks(file: IO[bytes], told: Callable[[int], None], most: int = -1) -> Iterator[bytes]:
    """The rest of the file, or `most` bytes of it; `told` hears of every block how many bytes it has."""
    while block := file.read(BLOCK if most < 0 else min(BLOCK, most)):
        most -= len(block) if most >= 0 else 0
        told(len(block))
        yield block


def sums(found: dict[str, str]) -> str:
    """As sha256sum writes and reads it."""
    return "".join(f"{value}  {place}\n" for place, value in sorted(found.items()))


def key(file: Path) -> Item:
    """The cluster key; raises Refused for what is none, without a word of what it is."""
    hint = f"{_MAKES} makes one, for --with-cluster-key cluster.key; a cluster that is there has its own"
    try:
        found = item(KEY, file)
    except Refused as error:
        raise Refused(str(error), hint=hint) from None
    if not _KEY.fullmatch(file.read_bytes()):
        raise Refused(f"{file} is no cluster key", hint=hint)
    return found
