"""The contracts that hold the simulation to the truth, on the truth: inside a lab host, against its real services."""

from __future__ import annotations

import shutil

import pytest

from tests.lab.bootfiles import lay_boot_files
from tests.lab.fixtures import Pair
from tests.lab.host import Host
from tests.lab.judge import Judge
from tests.lab.layout import FABRIC, PROJECT

pytestmark = pytest.mark.lab

PLACE = "opt/contract"
TAKEN = "192.168.213.66/24"


def take_address(host: Host) -> None:
    """Another host on the cable has the address that the contracts of a duplicate one want; it takes large packets."""
    jumbo = ("802-3-ethernet.mtu", "9000")
    host.run(
        *("nmcli", "connection", "add", "type", "ethernet", "ifname", FABRIC, "con-name", "taken", "ip4", TAKEN), *jumbo
    )
    host.run("nmcli", "connection", "up", "taken")


def test_the_real_adapters_keep_their_contracts(pair: Pair, judge: Judge) -> None:
    host = pair[0]
    lay_boot_files(host)
    take_address(pair[1])
    folder = host.seat.root / PLACE
    shutil.copytree(PROJECT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROJECT / "pyproject.toml", folder)
    where = f"STRIXD_CONTRACT_LINK={FABRIC} STRIXD_CONTRACT_TAKEN={TAKEN}"
    run = f"cd /{PLACE} && {where} python3 -m pytest -q -p no:cacheprovider --real tests/contract"
    done = host.attempt("bash", "-c", run, timeout=900)
    judge.expect(".*")  # the contracts provoke every failure that an adapter has a name for
    assert done.ok, done.stdout[-6000:] + done.stderr[-2000:]
    assert "skipped" not in done.stdout, done.stdout[-2000:]
