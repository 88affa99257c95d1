"""pytest fixtures of the lab. A lab test is marked `lab`, takes `pair` (two booted hosts) and does what it likes:

    @pytest.mark.lab
    def test_ping(pair: tuple[Host, Host], judge: Judge) -> None:
        pair[0].run("ping", "-c1", "192.168.100.2")

The hosts are new for each module; every test is judged by what the hosts' journals say about it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.host import Host
from tests.lab.install import build_packages, install
from tests.lab.judge import Judge
from tests.lab.lab import Lab, running_lab
from tests.lab.shell import remove_tree

Pair = tuple[Host, Host]


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """Networks and registry, for the whole run; no hosts yet."""
    if os.geteuid() != 0:
        pytest.fail("lab tests boot hosts and so need root; `make test-quick` is for everybody else", pytrace=False)
    with running_lab() as running:
        yield running


@pytest.fixture(scope="session")
def packages() -> Iterator[Path]:
    """This checkout, built once."""
    made = build_packages()
    yield made
    remove_tree(made)


@pytest.fixture(scope="module")
def bare_pair(lab: Lab) -> Iterator[Pair]:
    """Two hosts as they come out of the box, without strixd."""
    first, second = lab.new_hosts()
    yield first, second
    lab.remove_hosts()


@pytest.fixture(scope="module")
def pair(bare_pair: Pair, packages: Path) -> Pair:
    """Two hosts with strixd installed, nothing configured, nothing started."""
    install(bare_pair, packages)
    return bare_pair


@pytest.fixture
def judge(bare_pair: Pair) -> Iterator[Judge]:
    """Fails the test on what nobody expected in the journals. Every test with hosts has it, asked for or not."""
    verdict = Judge(bare_pair, time.time())
    yield verdict
    if complaints := verdict.complaints():
        pytest.fail("unexpected in the journals:\n" + "\n".join(complaints[:20]), pytrace=False)


@pytest.fixture(autouse=True)
def _judged(request: pytest.FixtureRequest) -> None:
    if "bare_pair" in request.fixturenames:
        request.getfixturevalue("judge")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "lab: boots real hosts, needs root")


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Never leave tests out without a word."""
    left_out = [item for item in items if item.get_closest_marker("lab")]
    if left_out:
        reporter = left_out[0].config.pluginmanager.get_plugin("terminalreporter")
        words = f"left out: {len(left_out)} lab tests, which boot real hosts and need root (`make test` runs them)"
        if reporter is not None:
            reporter.write_line(words, yellow=True)
