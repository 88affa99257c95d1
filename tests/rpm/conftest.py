"""Where packages are tried, and packages of an earlier version."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from strixd import __version__
from tests.lab.install import SYSTEM_PYTHON
from tests.lab.layout import PROJECT
from tests.rpm.stage import Stage, stage

SOURCE = ("strixd", "units", "packaging", "kickstart", "pyproject.toml", "README.md", "LICENSE")
BEFORE = "0.0.1"


@pytest.fixture(scope="session")
def fedora(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    if os.geteuid() != 0:
        pytest.fail("packages are tried in a root of their own, which needs root", pytrace=False)
    return stage(tmp_path_factory.mktemp("fedora"))


@pytest.fixture(scope="session")
def earlier(fedora: Stage) -> Path:
    """The packages of a version before this one, built by rpm 6."""
    source = fedora.shared / "source"
    for name in SOURCE:
        shutil.copytree(PROJECT / name, source / name) if (PROJECT / name).is_dir() else shutil.copy(
            PROJECT / name, source
        )
    for name in ("packaging/strixd.spec", "pyproject.toml", "strixd/__init__.py"):
        file = source / name
        file.write_text(file.read_text().replace(__version__, BEFORE))
    fedora.run(SYSTEM_PYTHON, "/mnt/source/packaging/build.py", "/mnt/earlier", timeout=300)
    return fedora.shared / "earlier"
