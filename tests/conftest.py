"""Options of the whole test run."""

from __future__ import annotations

import signal

import pytest
from hypothesis import HealthCheck, settings

# A test run in the background is deaf to Ctrl-C, and so would be every program that it starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same inputs every time, and no opinion about time: machines that test are noisy.
settings.register_profile(
    "steady", derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")

pytest_plugins = ["tests.lab.fixtures"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--real", action="store_true", help="run the contracts on this host's real services, as root")
