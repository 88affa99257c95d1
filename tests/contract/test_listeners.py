"""The contract of ports.Listeners."""

from __future__ import annotations

import pytest

from strixd.ports import Host
from tests.contract.stage import STRANGER, Stage

PORT = 18765


async def test_nobody_listens_on_a_free_port(host: Host) -> None:
    assert await host.listeners.on(PORT) == ()


@pytest.mark.parametrize("address", ["0.0.0.0", "127.0.0.1", "::", "::1"])
async def test_who_listens_is_named_with_unit_process_and_address(host: Host, stage: Stage, address: str) -> None:
    with stage.listening(address, PORT):
        (holder,) = await host.listeners.on(PORT)
        assert (holder.address, holder.unit) == (address, STRANGER)
        assert not (address == "::" and holder.v6only)
        ((number, name),) = holder.processes
        assert (number > 1, name) == (True, "python3")
    assert await host.listeners.on(PORT) == ()


async def test_another_port_is_another_matter(host: Host, stage: Stage) -> None:
    with stage.listening("0.0.0.0", PORT):
        assert await host.listeners.on(PORT + 1) == ()
