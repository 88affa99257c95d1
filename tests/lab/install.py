"""Installs this checkout into hosts: the files of its packages, so that what is tested is what is shipped.

The hosts are Debian's, so no package tool takes part: what Fedora's would do after unpacking is done by hand.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from strixd import __version__
from tests.lab.host import Host
from tests.lab.layout import PROJECT
from tests.lab.shell import run

SYSTEM_PYTHON = "/usr/bin/python3"  # which has pip and setuptools from packages
SITE, FEDORAS = "usr/lib/python3/dist-packages", "usr/lib/python3.14/site-packages"
ON_A_NODE = ("strixd-[0-9]*", "python3-strixd-*")
SOURCE = ("strixd", "units", "packaging", "kickstart", "pyproject.toml", "README.md", "LICENSE")
"""What packages are built from."""
SETTLE = (
    "systemd-sysusers",
    "systemd-tmpfiles --create",
    "journalctl --update-catalog",
    "systemctl daemon-reload",
)


def other_version(version: str, folder: Path) -> Path:
    """The sources of this checkout under another version number, in a folder that is not there yet."""
    for name in SOURCE:
        place = PROJECT / name
        copied = shutil.copytree if place.is_dir() else shutil.copy
        folder.mkdir(parents=True, exist_ok=True)
        copied(place, folder / name)
    for name in ("packaging/strixd.spec", "pyproject.toml", "strixd/__init__.py"):
        file = folder / name
        file.write_text(file.read_text().replace(__version__, version))
    return folder


def build_packages(project: Path = PROJECT) -> Path:
    """A folder with all packages of a checkout, as `make rpm` makes them. The caller owns it."""
    folder = Path(tempfile.mkdtemp(prefix="strixd-lab-packages-"))
    run([SYSTEM_PYTHON, project / "packaging/build.py", folder], timeout=300)
    return folder


def install(hosts: Iterable[Host], packages: Path | None = None) -> None:
    """Install or replace. Nothing is enabled or started, as an RPM leaves it to presets and the administrator."""
    made = packages or build_packages()
    for host in hosts:
        lay(host.seat.root, made)
        host.sh("\n".join(SETTLE))
    if packages is None:
        shutil.rmtree(made)


def upgrade(hosts: Iterable[Host], packages: Path) -> None:
    """As rpm upgrades or downgrades on a host that runs: the new files in place of the old, the scriptlets' mark on
    the daemon, and what the triggers of systemd's own package then do (systemd-update-helper)."""
    for host in hosts:
        lay(host.seat.root, packages)
        mark = "systemctl set-property strixd.service Markers=+needs-restart"
        host.sh("\n".join((mark, *SETTLE, "systemctl reload-or-restart --marked")))


def lay(root: Path, packages: Path) -> None:
    """The packages' files only, for a root that runs or does not. In rpm's order: new files in place of the old ones,
    then away with what only the old ones had; a folder that somebody has open or mounted stays the same folder."""
    laid = {name for pattern in ON_A_NODE for name in _unpack(next(packages.glob(f"{pattern}.noarch.rpm")), root)}
    site = root / SITE
    ours = [each for top in (site / "strixd", *site.glob("strixd-*.dist-info")) for each in (top, *top.rglob("*"))]
    for old in sorted(ours, reverse=True):
        if old.is_dir() and not any(old.iterdir()):
            old.rmdir()
        elif not old.is_dir() and str(old.relative_to(root)) not in laid:
            old.unlink()


def _unpack(package: Path, root: Path) -> list[str]:
    """The names of all that was in it, as they are below the root."""
    with package.open("rb") as opened:
        command = ["rpm2archive", "-n", "-"]
        done = subprocess.run(command, stdin=opened, capture_output=True, check=True, timeout=60)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(root, members=_placed(archive, root), filter="tar")
        return archive.getnames()


def _placed(archive: tarfile.TarFile, root: Path) -> Iterator[tarfile.TarInfo]:
    """Modules go where Debian's Python looks. A file that is there is not written into: somebody may be reading it."""
    for entry in archive:
        entry.name = entry.name.removeprefix("./").replace(FEDORAS, SITE, 1)
        if entry.isfile():
            (root / entry.name).unlink(missing_ok=True)
        yield entry
