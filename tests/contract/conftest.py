"""Runs `async def` tests: simulated ones in virtual time, real ones in an ordinary loop, each with a fresh host.

A test asks for `host: Host`, and for `stage: Stage` when it must arrange something that no port can.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import Any, cast

import pytest

from strixd.sim import clock
from tests.contract.stage import Real, Simulated, Stage


@pytest.fixture
def stage(request: pytest.FixtureRequest) -> Stage:
    return Real() if request.config.getoption("--real") else Simulated()


@pytest.fixture
def host(stage: Stage) -> None:
    """Made inside the test's event loop; see below."""


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    stage = cast(Stage, pyfuncitem.funcargs["stage"])
    wanted = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    main = _play(stage, pyfuncitem.obj, wanted)
    asyncio.run(main) if stage.real else clock.run(main)
    return True


async def _play(stage: Stage, test: Any, wanted: dict[str, object]) -> None:
    if "host" not in wanted:
        await test(**wanted)
        return
    async with stage.host() as host:
        await test(**{**wanted, "host": host})
