"""One machine for all tests here: its disk is made once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.vm.guest import make_disk
from tests.vm.image import pieces
from tests.vm.machine import Machine, machine


@pytest.fixture(scope="session")
def vm(packages: Path) -> Iterator[Machine]:
    if os.geteuid() != 0:
        pytest.fail("making the machine's disk needs root", pytrace=False)
    with machine() as made:
        make_disk(made.disk, pieces(), packages)
        yield made
