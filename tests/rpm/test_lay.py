"""What lab hosts get of the packages, for their Python and with what an earlier version left gone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from strixd.api.introspection import description
from strixd.api.wire import INTERFACE
from tests.lab.install import SITE, lay
from tests.lab.layout import PROJECT

pytestmark = pytest.mark.lab


def test_a_root_gets_all_files_and_replaces_old_ones(packages: Path, tmp_path: Path) -> None:
    gone = [tmp_path / SITE / name for name in ("strixd/old/gone.py", "strixd-0.0.1.dist-info/RECORD")]
    for file in gone:
        file.parent.mkdir(parents=True)
        file.touch()
    kept = (tmp_path / SITE / "strixd").stat().st_ino
    lay(tmp_path, packages)
    assert not any(file.parent.exists() for file in gone)
    assert (tmp_path / SITE / "strixd").stat().st_ino == kept
    modules = {file.relative_to(PROJECT) for file in (PROJECT / "strixd").rglob("*.py") if "media" not in file.parts}
    assert modules == {file.relative_to(tmp_path / SITE) for file in (tmp_path / SITE).rglob("*.py")}
    units = {file.name for file in (PROJECT / "units").glob("*.s*") if "sysusers" not in file.name}
    assert units == {file.name for file in (tmp_path / "usr/lib/systemd/system").iterdir()}
    assert (tmp_path / "var/lib/strixd/tmp").stat().st_mode & 0o777 == 0o700
    # What a program reads in the file is what the daemon tells of itself.
    assert (tmp_path / f"usr/share/varlink/{INTERFACE}.varlink").read_text() == description(INTERFACE)
    command = [sys.executable, "-P", str(tmp_path / "usr/bin/strixd-cli"), "help", "logs"]
    done = subprocess.run(command, env={"PYTHONPATH": str(tmp_path / SITE)}, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("strixd-cli logs")
