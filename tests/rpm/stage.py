"""A machine with Fedora's package tools for the time of a test: the root of tests/lab/roots.py with a layer of its own.

It is mounted anew for each command, in a mount namespace that ends with it, so nothing has to be cleared up.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.lab.roots import rpm_root
from tests.lab.shell import Result, attempt

_ENTER = """\
set -e
mount -t overlay stage -o "lowerdir=$1,upperdir=$2/up,workdir=$2/work" "$2/root"
mount -t proc proc "$2/root/proc"
mount --rbind /dev "$2/root/dev"
mount --bind "$2/shared" "$2/root/mnt"
root=$2/root; shift 2
exec chroot "$root" "$@"
"""


@dataclass(frozen=True, slots=True)
class Stage:
    """`shared` is /mnt inside."""

    folder: Path

    @property
    def shared(self) -> Path:
        return self.folder / "shared"

    def attempt(self, *argv: str, timeout: float = 120) -> Result:
        inside = ["unshare", "--mount", "--pid", "--fork", "sh", "-c", _ENTER, "sh", str(rpm_root()), str(self.folder)]
        return attempt([*inside, *argv], timeout=timeout, env=_ENVIRONMENT)

    def run(self, *argv: str, timeout: float = 120) -> str:
        return self.attempt(*argv, timeout=timeout).check().stdout

    def sh(self, script: str, *words: str, timeout: float = 120) -> str:
        return self.run("bash", "-euc", script, "bash", *words, timeout=timeout)

    def put(self, name: str, files: Iterable[Path]) -> str:
        """Copies; returns where they are inside."""
        (self.shared / name).mkdir(exist_ok=True)
        for file in files:
            shutil.copy(file, self.shared / name)
        return f"/mnt/{name}"


_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def stage(folder: Path) -> Stage:
    for part in ("up", "work", "root", "shared"):
        (folder / part).mkdir(parents=True)
    return Stage(folder)
