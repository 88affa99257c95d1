"""The contract of ports.RdmaCm, as far as a host without RDMA can keep it; with it: tests/unit/test_dscp.py."""

from __future__ import annotations

import pytest

from strixd.errors import StrixdError, Unavailable
from strixd.ports import Host
from tests.contract.stage import Stage


async def test_without_rdma_cm_nothing_is_known_and_the_next_command_is_named(stage: Stage, host: Host) -> None:
    with stage.without_rdma_cm():
        for call in (host.rdma_cm.tos("irdma0", 1), host.rdma_cm.set_tos("irdma0", 1, 104)):
            with pytest.raises(Unavailable) as told:
                await call
            assert told.value.hint


async def test_a_device_that_is_not_there_is_given_nothing(host: Host) -> None:
    with pytest.raises(StrixdError):
        await host.rdma_cm.set_tos("strixd-none", 1, 104)
