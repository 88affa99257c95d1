"""A file that is there whole or not at all: it is made in a folder of its own beside its place, and moved last."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from strixd.errors import NotPermitted, Refused, Rejected
from strixd.media.progress import sized

SPARE = 64 << 20
"""Bytes that stay free beside the medium: its repository's index, parts under way."""


@contextmanager
def draft(out: Path) -> Iterator[Path]:
    """A folder on the same disk, gone however this ends; raises Refused when `out` is there already."""
    if out.exists() or out.is_symlink():
        raise _there(out)
    try:
        folder = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    except PermissionError as error:
        raise NotPermitted(f"Cannot write {out}: {error.strerror}") from None
    except OSError as error:
        raise Rejected(f"Cannot write {out}: {error.strerror}", hint=f"is {out.parent} a folder?") from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def room(folder: Path, size: int) -> None:
    """Raises Rejected unless so many bytes can be written there."""
    free = shutil.disk_usage(folder).free
    if free < size + SPARE:
        raise Rejected(
            f"Cannot write the medium: it takes {sized(size + SPARE)}, and {folder.parent} has {sized(free)} free",
            hint="df -h shows room on other disks; --out may be on any of them",
        )


def settle(made: Path, out: Path, mode: int) -> None:
    """From the draft to its place, on disk before it has its name. Raises Refused when something came there meanwhile,
    which a link does not replace. Where there are no links (FAT), only what came in the last moment is replaced."""
    made.chmod(mode)
    with made.open("rb") as file:
        os.fsync(file.fileno())
    try:
        os.link(made, out)
    except FileExistsError:
        raise _there(out) from None
    except OSError:
        if out.exists():
            raise _there(out) from None
        made.rename(out)


def _there(out: Path) -> Refused:
    return Refused(f"{out} is there already", hint=f"rm {out}, or another name after --out")
