"""The contracts that hold the simulation to the truth, on the truth: inside a lab host, against its real services."""

from __future__ import annotations

import shutil

import pytest

from tests.lab.bootfiles import lay_boot_files
from tests.lab.fixtures import Pair
from tests.lab.judge import Judge
from tests.lab.layout import FABRIC, PROJECT

pytestmark = pytest.mark.lab

PLACE = "opt/contract"


def test_the_real_adapters_keep_their_contracts(pair: Pair, judge: Judge) -> None:
    host = pair[0]
    lay_boot_files(host)
    folder = host.seat.root / PLACE
    shutil.copytree(PROJECT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROJECT / "pyproject.toml", folder)
    run = f"cd /{PLACE} && STRIXD_CONTRACT_LINK={FABRIC} python3 -m pytest -q -p no:cacheprovider --real tests/contract"
    done = host.attempt("bash", "-c", run, timeout=600)
    judge.expect(".*")  # the contracts provoke every failure that an adapter has a name for
    assert done.ok, done.stdout[-6000:] + done.stderr[-2000:]
    assert "skipped" not in done.stdout, done.stdout[-2000:]
