"""The contracts of ports.Kernel and ports.Power, as far as a host survives them (tests/lab/test_cmdline.py reboots)."""

from __future__ import annotations

import pytest

from strixd.errors import Unavailable
from strixd.ports import Host
from tests.contract.stage import Stage


async def test_what_the_kernel_made_of_its_arguments_can_be_read(host: Host) -> None:
    effects = await host.kernel.effects()
    assert all(gpu.gtt > 0 and gpu.vram >= 0 for gpu in effects.gpus)
    assert set(effects.iommu) <= {"DMA", "DMA-FQ", "identity", "blocked", "auto"}
    assert effects == await host.kernel.effects()


async def test_without_login1_a_reboot_is_a_named_failure(stage: Stage, host: Host) -> None:
    with stage.without_power(), pytest.raises(Unavailable, match="Cannot re"):
        await host.power.reboot()
