"""Files that are there whole or not at all, whoever interrupts it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from strixd.errors import NotPermitted, Refused, Rejected


def create(path: Path, text: str, *, taken: str, mode: int = 0o600) -> None:
    """Refuses to take the place of a file that is there, even of one that comes at the same moment; `taken`: what to
    do then."""
    draft = _draft(path, text, mode)
    try:
        os.link(draft, path)
    except FileExistsError:
        raise Refused(
            f"{path} is there already, and the nodes may be using it",
            hint=taken,
        ) from None
    finally:
        draft.unlink()
    _settle(path)


def replace(path: Path, text: str) -> None:
    draft = _draft(path, text, 0o600)
    try:
        draft.replace(path)
    except OSError:
        draft.unlink()
        raise
    _settle(path)


def _draft(path: Path, text: str, mode: int) -> Path:
    """A finished file beside the place where it belongs, with its mode from its first moment."""
    if not path.name or path.is_dir():
        raise Refused(f"Cannot write {path}: it is a folder", hint=f"for example: --file {path / 'new'}")
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(fd)
    return draft


def _settle(path: Path) -> None:
    """The name is on disk too."""
    fd = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextlib.contextmanager
def explained(path: Path, command: str) -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        raise NotPermitted(f"Cannot write {path}: {error.strerror}", hint=f"sudo {command}") from None
    except OSError as error:
        raise Rejected(f"Cannot write {path}: {error.strerror}") from None
