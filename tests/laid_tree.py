"""Trees of sysfs from a compact text: "PATH: TEXT" is a file, "PATH -> PATH" a symbolic link, "- PATH" takes away what
an earlier line laid there, "PATH/" is an empty folder. Paths are below the root, of links too."""

from __future__ import annotations

import shutil
from pathlib import Path


def lay(root: Path, text: str) -> None:
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith("- "):
            _remove(root / line[2:])
        elif " -> " in line:
            path, _, target = line.partition(" -> ")
            _place(root, path).symlink_to(root / target)
        elif line.endswith("/"):
            (root / line).mkdir(parents=True, exist_ok=True)
        else:
            path, _, words = line.partition(": ")
            _place(root, path).write_text(f"{words}\n")


def _place(root: Path, path: str) -> Path:
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
