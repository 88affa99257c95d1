"""The contract of Host.watch: what changes by itself, or by somebody else, is said soon."""

from __future__ import annotations

from dataclasses import replace

from strixd.ports import Host
from tests.contract import test_firewall as firewall
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


async def test_what_another_changes_in_the_firewall_is_seen_soon(host: Host, stage: Stage) -> None:
    """Also where it was read a moment before."""
    own, fence = firewall.OWN, firewall.FENCE
    now = replace(own, rules=(firewall.RULE.format(3),)), replace(fence, rules=(firewall.REJECT.format("47002"),))

    async def seen() -> tuple[object, ...]:
        port = host.firewall
        zone, policy = await port.zone(own.name), await port.policy(fence.name)
        return zone, policy, await port.zone_of(stage.interface), await port.permanent_zone_of(stage.interface)

    async def soon(*wanted: object) -> None:
        async def so() -> bool:
            return await seen() == wanted

        assert await until(host, so), await seen()

    async with watching(host), stage.host() as other, firewall.cleaned(other, stage):
        await soon(None, None, "public", "")
        await other.firewall.define(zone=own, policy=fence)
        await soon(own, fence, "public", "")
        await other.firewall.define(zone=now[0])
        await soon(now[0], fence, "public", "")
        await other.firewall.define(policy=now[1])
        await soon(*now, "public", "")
        await other.firewall.move(stage.interface, own.name)
        await soon(*now, own.name, "")
        with stage.permanently("drop"):
            await soon(*now, own.name, "drop")
        await soon(*now, own.name, "")
        await other.firewall.move(stage.interface, "drop")
        await other.firewall.remove(zone=own.name, policy=fence.name)
        await soon(None, None, "drop", "")


async def test_where_nothing_happens_nothing_is_said(host: Host) -> None:
    async with watching(host) as reasons:
        await host.sleep(1)
        assert len(reasons) <= 1
