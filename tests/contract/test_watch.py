"""The contract of Host.watch: what changes by itself, or by somebody else, is said soon."""

from __future__ import annotations

from strixd.ports import Host
from tests.contract.stage import Stage, until, watching
from tests.contract.test_network import UUID, cleaned
from tests.contract.test_units import unit


async def _told(reasons: list[str]) -> bool:
    return bool(reasons)


async def test_the_end_of_a_unit_is_said(host: Host) -> None:
    async with unit(host, "ExecStart=/bin/sleep 1") as name:
        await host.units.start(name)
        async with watching(host) as reasons:
            assert await until(host, lambda: _told(reasons), seconds=3)


async def test_a_device_that_is_activated_is_said(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage) as profile, watching(host) as reasons:
        await host.network.save(profile)
        await host.network.activate(UUID, stage.interface)
        assert await until(host, lambda: _told(reasons), seconds=3)


async def test_a_zone_that_is_moved_is_said(host: Host, stage: Stage) -> None:
    before = await host.firewall.zone_of(stage.interface)
    async with watching(host) as reasons:
        await host.firewall.move(stage.interface, "drop")
        assert await until(host, lambda: _told(reasons), seconds=3)
    await host.firewall.move(stage.interface, before)


async def test_where_nothing_happens_nothing_is_said(host: Host) -> None:
    async with watching(host) as reasons:
        await host.sleep(1)
        assert len(reasons) <= 1
