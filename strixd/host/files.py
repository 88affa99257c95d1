"""Small files of strixd's own: written whole or not at all, also when the power fails in the middle.

A temporary file beside the target, fsync, rename, fsync of the folder. Each file has one writing process. Reading
happens on the loop, because these files are tiny; writing in a thread, because an fsync waits for the disk, which may
be busy with a hundred gigabytes of weights.
"""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from pathlib import Path
from typing import Final

from strixd.errors import Rejected

NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)
_writing = threading.Lock()
"""A cancelled write goes on in its thread; the next one waits for it, so the temporary file has one writer."""


class LocalFiles:
    """Implements ports.Files."""

    async def read(self, path: str) -> str | None:
        return read_text(path)

    async def write(self, path: str, text: str, *, mode: int = 0o644) -> None:
        await asyncio.to_thread(write_whole, path, text, mode=mode)

    async def remove(self, path: str) -> None:
        await asyncio.to_thread(remove_file, path)

    async def present(self, paths: tuple[str, ...]) -> tuple[str, ...]:
        return _present(paths)


def read_text(path: str) -> str | None:
    """None when there is no such file. Bytes that are not UTF-8 become U+FFFD: such a file is not one of ours."""
    try:
        return Path(path).read_bytes().decode(errors="replace")  # read_text would change line ends
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise rejected("read", path, error) from None


def write_whole(path: str, text: str, *, mode: int = 0o644) -> None:
    """Raises Rejected; the file that was there before is then untouched. `mode` holds whatever the umask is."""
    target = Path(path)
    fresh = target.with_name(f".{target.name}.new")
    try:
        with _writing:
            _make_folder(target.parent)
            try:
                _fill(fresh, text.encode(), mode)
                fresh.replace(target)
            except OSError:
                fresh.unlink(missing_ok=True)
                raise
            sync_folder(target.parent)
    except OSError as error:
        raise rejected("write", path, error) from None


def remove_file(path: str) -> None:
    """Gone for good when this returns; nothing happens when there is none."""
    target = Path(path)
    try:
        with _writing:
            target.unlink()
            sync_folder(target.parent)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise rejected("remove", path, error) from None


def _present(paths: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(path for path in paths if path and Path(path).exists())


def _fill(path: Path, content: bytes, mode: int) -> None:
    """A leftover of a killed writer is removed first, not opened: it may be a link, or have another mode."""
    path.unlink(missing_ok=True)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(file, "wb") as out:  # noqa: PTH123 - a descriptor, not a path
        out.write(content)
        out.flush()
        os.fchmod(file, mode)
        os.fsync(file)


def _make_folder(folder: Path) -> None:
    """With its parents, 0755 whatever the umask is, each name safe on disk."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def rejected(doing: str, path: str, error: OSError) -> Rejected:
    """With what to do about it."""
    hint = ""
    if error.errno in NO_ROOM:
        hint = f"make room on the file system of {path}"
    elif error.errno == errno.EROFS:
        hint = f"findmnt -T {Path(path).parent}; journalctl -k -n 50 says why it is read-only"
    return Rejected(f"Cannot {doing} {path}: {error.strerror}", hint=hint)
