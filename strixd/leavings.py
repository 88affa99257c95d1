"""What an installation leaves, and which of it holds a secret; `python3 -m strixd.leavings` removes that.

The latter is done at the first boot, by strixd-firstboot.service: Anaconda copies its logs and the kickstart into the
new system only after the last %post (pyanaconda/modules/boss/installation.py: CopyLogsTask; once
data/post-scripts/99-copy-logs.ks).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SETTINGS: Final = "/etc/strixd"
PLACES: Final = (
    *("/root/anaconda-ks.cfg", "/root/original-ks.cfg", "/var/log/anaconda"),
    *("/var/log/strixd-bring.log", "/var/log/strixd-settle.log"),
)
"""The installer's own, and the logs of the kickstart's two %post."""
SHORTEST: Final = 16
"""Characters; what is shorter is in many a file."""


@dataclass(frozen=True, slots=True)
class Leavings:
    """How many files were read, and those that hold a key or token."""

    read: int
    secret: tuple[Path, ...]


def look(root: Path) -> Leavings:
    """Below `root`. Raises PermissionError but for root: what may not be read may hold anything."""
    secrets = [word for path in _secret_files(root) for word in path.read_bytes().split() if len(word) >= SHORTEST]
    found = {path: path.read_bytes() for place in PLACES for path in _files(root / place.lstrip("/"))}
    holding = (path for path, content in found.items() if any(secret in content for secret in secrets))
    return Leavings(len(found), tuple(holding))


def _secret_files(root: Path) -> Iterator[Path]:
    folder = root / SETTINGS.lstrip("/")
    yield from (*sorted(folder.glob("*key")), *sorted(folder.glob("*token")))


def _files(place: Path) -> Iterator[Path]:
    """Not by a glob, which passes over what may not be read."""
    if not there(place):
        return
    if not place.is_dir():
        yield place
        return
    for each in sorted(place.iterdir()):
        yield from _files(each) if not each.is_symlink() else ()


def there(path: Path) -> bool:
    """Raises PermissionError, which Path.exists of later Pythons takes for a no."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def main(root: Path = Path("/")) -> int:
    for path in look(root).secret:
        path.unlink()
        sys.stdout.write(
            f"strixd: removed /{path.relative_to(root)}, which the installer left with a key or token in it\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
