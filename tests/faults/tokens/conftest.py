"""A cluster of two lab hosts that serves the tiny model, once for all faults; the table of their times at the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.cluster import Cluster
from tests.faults.tokens.course import COURSES, table
from tests.faults.tokens.revival import Undergo, undergoing
from tests.faults.tokens.seeds import SEED
from tests.lab.cluster import ENVIRONMENT, Table
from tests.lab.fixtures import Pair
from tests.lab.install import install
from tests.lab.judge import Judge
from tests.lab.lab import Lab

MIDDLEWARE = Path(__file__).with_name("middleware.py")
LAID: dict[str, Table] = {
    "image": {"environment": {**ENVIRONMENT, "PYTHONPATH": "/models/lab"}},
    "model": {"arguments": ["--max-model-len", "1024", "--middleware", "middleware.Sick"]},
}


@pytest.fixture(scope="package")
def bare_pair(lab: Lab) -> Iterator[Pair]:
    first, second = lab.new_hosts(disk="2G")
    yield first, second
    lab.remove_hosts()


@pytest.fixture(scope="package")
def cluster(bare_pair: Pair, packages: Path) -> Cluster:
    """Started on both at once, and a first completion has come out."""
    install(bare_pair, packages)
    made = Cluster(bare_pair)
    for host in bare_pair:
        host.write("/var/lib/strixd/models/lab/middleware.py", MIDDLEWARE.read_text())
    made.lay(LAID)
    made.start()
    made.serve()
    return made


@pytest.fixture
def undergone(cluster: Cluster, judge: Judge, request: pytest.FixtureRequest) -> Iterator[Undergo]:
    """undergone(fault): the cluster undergoes it. Before and afterwards it serves, by force if need be."""
    with undergoing(cluster, judge, request.config.stash.setdefault(COURSES, [])) as undergo:
        yield undergo


def pytest_report_collectionfinish() -> str:
    return f"to draw the same at random again: STRIXD_FAULTS_SEED={SEED}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if courses := config.stash.get(COURSES, []):
        terminalreporter.section("seconds from each fault on")
        terminalreporter.write_line(f"STRIXD_FAULTS_SEED={SEED}")
        for line in table(courses):
            terminalreporter.write_line(line)
