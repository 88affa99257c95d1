"""A failure is told at once, since a run of hours may be interrupted; the table of the soak comes at the end."""

from __future__ import annotations

import sys

import pytest

from tests.faults.soaked import SOAKED
from tests.faults.tokens.seeds import SEED


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        sys.stderr.write(f"\n{report.longreprtext}\n")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    soaked = [each for each in config.stash.get(SOAKED, []) if each.passes]
    if not soaked:
        return
    terminalreporter.section("eight simulated hours with random faults, three times")
    terminalreporter.write_line(f"STRIXD_FAULTS_SEED={SEED}")
    least = soaked[0]
    for each in soaked:
        ratio, members = each.cost / least.cost, each.count / least.count
        terminalreporter.write_line(
            f"{each.count:3} nodes: {each.faults} faults, {each.incidents} incidents, {each.ray} starts of Ray here, "
            f"{each.model} of the model, {each.all_passes} passes of {each.cost:.2f} ms CPU: {ratio:.1f} times that of "
            f"{least.count} nodes, for {members:.0f} times the members"
        )
