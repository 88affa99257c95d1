"""Where packages are tried, and packages of an earlier version."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.lab.install import SYSTEM_PYTHON, other_version
from tests.rpm.stage import Stage, stage

BEFORE = "0.0.1"


@pytest.fixture(scope="session")
def fedora(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    if os.geteuid() != 0:
        pytest.fail("packages are tried in a root of their own, which needs root", pytrace=False)
    return stage(tmp_path_factory.mktemp("fedora"))


@pytest.fixture(scope="session")
def earlier(fedora: Stage) -> Path:
    """The packages of a version before this one, built by rpm 6."""
    other_version(BEFORE, fedora.shared / "source")
    fedora.run(SYSTEM_PYTHON, "/mnt/source/packaging/build.py", "/mnt/earlier", timeout=300)
    return fedora.shared / "earlier"
