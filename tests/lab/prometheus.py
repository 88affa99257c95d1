"""Prometheus and promtool, unpacked from Debian's package into the cache: installed, it would run as a service of this
machine, beside eleven packages for its pages."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.lab.cache import cached
from tests.lab.shell import attempt, run

PACKAGE = "prometheus"
APT = ("apt-get", "-o", "APT::Sandbox::User=root", "-o", "DPkg::Lock::Timeout=240")


@dataclass(frozen=True, slots=True)
class Programs:
    prometheus: Path
    promtool: Path


def programs() -> Programs:
    """Those of this machine where there are any. The package has 19 MB, and 95 unpacked."""
    found = [shutil.which(name) for name in ("prometheus", "promtool")]
    if found[0] and found[1]:
        return Programs(Path(found[0]), Path(found[1]))
    folder = cached("prometheus", "prometheus 1", _unpack) / "usr/bin"
    return Programs(folder / "prometheus", folder / "promtool")


def _unpack(folder: Path) -> None:
    """The machine's lists of packages may be old, or not there yet."""
    download: list[str | Path] = ["sh", "-c", f'cd "$0" && exec {" ".join(APT)} download {PACKAGE}', folder]
    if not attempt(download, timeout=300).ok:
        run([*APT, "update"], timeout=300)
        run(download, timeout=300)
    [package] = folder.glob("*.deb")
    run(["dpkg-deb", "--extract", package, folder], timeout=120)
    package.unlink()
