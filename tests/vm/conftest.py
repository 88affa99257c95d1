"""One machine for all tests of one host, and two on a cable for those of the link: their disks are made once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.vm.guest import MAC, make_disk, make_pair
from tests.vm.image import WHOLE_KERNEL, pieces
from tests.vm.machine import Cable, Machine, machine

SMALL = 1024
"""MiB: enough for a host that serves nothing."""


@pytest.fixture(scope="session")
def vm(packages: Path) -> Iterator[Machine]:
    _needs_root()
    with machine() as made:
        make_disk(made.disk, pieces(), packages)
        yield made


@pytest.fixture(scope="module")
def cabled(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Machine, Machine]]:
    """Two, with what RDMA in software takes, and the programs that measure it."""
    _needs_root()
    plug = tmp_path_factory.mktemp("cable") / "plug"
    with ExitStack() as stack:
        ends = [Cable(plug, MAC.format(number=number), first=number == 1) for number in (1, 2)]
        first, second = (stack.enter_context(machine(memory=SMALL, devices=(), cable=end)) for end in ends)
        make_pair(first.disk, second.disk, pieces(WHOLE_KERNEL), packages)
        yield first, second


def _needs_root() -> None:
    if os.geteuid() != 0:
        pytest.fail("making the machine's disk needs root", pytrace=False)
