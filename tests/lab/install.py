"""Installs this checkout into hosts as the package will: the built wheel, and the files of units/ by their suffix."""

from __future__ import annotations

import configparser
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

from tests.lab.disk import put
from tests.lab.host import Host
from tests.lab.layout import PROJECT
from tests.lab.shell import run

SITE = "usr/lib/python3/dist-packages"
SYSTEMD = "usr/lib/systemd/system"
PLACES = {
    **dict.fromkeys((".service", ".socket", ".timer", ".slice", ".target", ".path", ".mount"), SYSTEMD),
    ".sysusers": "usr/lib/sysusers.d",
    ".tmpfiles": "usr/lib/tmpfiles.d",
    ".catalog": "usr/lib/systemd/catalog",
    ".preset": "usr/lib/systemd/system-preset",
}
RENAMED = (".sysusers", ".tmpfiles")  # there every file is named *.conf
SCRIPT = "#!/usr/bin/python3 -sP\nimport sys\n\nfrom {module} import {name}\n\nsys.exit({name}())\n"
SETTLE = (
    "systemd-sysusers",
    "systemd-tmpfiles --create",
    "journalctl --update-catalog",
    "systemctl daemon-reload",
)


def build_wheel(project: Path = PROJECT) -> Path:
    """The wheel of a checkout, built from a copy so that the checkout stays as it is. The caller owns its folder."""
    folder = Path(tempfile.mkdtemp(prefix="strixd-lab-wheel-"))
    source = folder / "source"
    source.mkdir()
    shutil.copytree(project / "strixd", source / "strixd", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        if (project / name).exists():
            shutil.copy(project / name, source)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    run([*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, source], timeout=300)
    shutil.rmtree(source)
    return next(folder.glob("*.whl"))


def install(hosts: Iterable[Host], wheel: Path | None = None, units: Path = PROJECT / "units") -> None:
    """Install or replace. Nothing is enabled or started, as an RPM would leave it to presets and the administrator."""
    made = wheel or build_wheel()
    for host in hosts:
        lay(host.seat.root, made, units)
        host.sh("\n".join(SETTLE))
    if wheel is None:
        shutil.rmtree(made.parent)


def lay(root: Path, wheel: Path, units: Path = PROJECT / "units") -> None:
    """The package's files only, for a root that runs or does not."""
    _unpack(wheel, root)
    for file in sorted(units.iterdir()) if units.is_dir() else ():
        _place(file, root)


def _unpack(wheel: Path, root: Path) -> None:
    site = root / SITE
    for old in (site / "strixd", *site.glob("strixd-*.dist-info")):
        shutil.rmtree(old, ignore_errors=True)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
        entries = next((name for name in archive.namelist() if name.endswith("entry_points.txt")), "")
        scripts = _scripts(archive.read(entries).decode() if entries else "")
    for name, target in scripts.items():
        module, _, function = target.partition(":")
        put(root / "usr/bin" / name, SCRIPT.format(module=module, name=function), 0o755)


def _scripts(entry_points: str) -> dict[str, str]:
    parser = configparser.ConfigParser(delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(entry_points)
    return dict(parser["console_scripts"]) if parser.has_section("console_scripts") else {}


def _place(file: Path, root: Path) -> None:
    if folder := PLACES.get(file.suffix):
        name = file.with_suffix(".conf").name if file.suffix in RENAMED else file.name
        put(root / folder / name, file.read_text())
