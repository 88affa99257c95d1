"""Options of the whole test run."""

from __future__ import annotations

import pytest

pytest_plugins = ["tests.lab.fixtures"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--real", action="store_true", help="run the contracts on this host's real services, as root")
