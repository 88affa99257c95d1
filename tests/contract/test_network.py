"""The contract of ports.Network, and what an activation does to the link and to its firewalld zone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from strixd.errors import Rejected
from strixd.ports import Device, Host, Profile
from tests.contract.stage import Stage, until
from tests.contract.test_links import fabric

UUID = "5f0e6f0a-4f0b-5b0e-9d6e-57c0a1d7c0de"
NOBODY = "00000000-0000-4000-8000-000000000001"


@asynccontextmanager
async def cleaned(host: Host, stage: Stage) -> AsyncIterator[Profile]:
    """A profile that is not stored yet; afterwards it is gone and the automatic one has the link again."""
    profile = Profile(
        uuid=UUID,
        name="strixd-contract",
        interface=stage.interface,
        address="192.168.213.1/24",
        mtu=1400,
        zone="trusted",
        autoconnect_priority=100,
    )
    before = await device(host, stage)
    try:
        yield profile
    finally:
        for open_one in await host.network.checkpoints(stage.interface):
            await host.network.confirm(open_one)
        await host.network.delete(UUID)
        await until(host, lambda: _has(host, stage, before.profile))


async def device(host: Host, stage: Stage) -> Device:
    found = await host.network.device(stage.interface)
    assert found
    return found


async def _has(host: Host, stage: Stage, profile: str) -> bool:
    return (await device(host, stage)).profile == profile


async def test_nobody_knows_a_profile_that_is_not_stored(host: Host) -> None:
    assert await host.network.profile(NOBODY) is None


async def test_there_is_no_such_device(host: Host) -> None:
    assert await host.network.device("strixd-none0") is None


async def test_the_fabric_link_is_managed_and_occupied_by_an_automatic_profile(host: Host, stage: Stage) -> None:
    found = await device(host, stage)
    assert found.managed
    assert found.interface == stage.interface
    assert found.profile
    assert found.profile_name


async def test_a_saved_profile_is_read_back_as_it_was(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage) as profile:
        await host.network.save(profile)
        assert await host.network.profile(UUID) == profile


async def test_a_profile_may_be_bound_to_a_card(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage) as profile:
        bound = replace(profile, interface="", mac=(await fabric(host, stage)).mac)
        await host.network.save(bound)
        assert await host.network.profile(UUID) == bound


async def test_saving_again_leaves_nothing_of_the_earlier_one(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage) as profile:
        await host.network.save(profile)
        other = replace(profile, name="strixd-other", address="192.168.213.7/28", mtu=9000, zone="", interface="")
        other = replace(other, mac=(await fabric(host, stage)).mac, autoconnect_priority=7)
        await host.network.save(other)
        assert await host.network.profile(UUID) == other


async def test_saving_the_same_twice_is_harmless(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage) as profile:
        await host.network.save(profile)
        await host.network.save(profile)
        assert await host.network.profile(UUID) == profile


async def test_saving_does_not_take_the_link_from_its_profile(host: Host, stage: Stage) -> None:
    before = await device(host, stage)
    async with cleaned(host, stage) as profile:
        await host.network.save(profile)
        await host.sleep(1)
        assert (await device(host, stage)).profile == before.profile


async def test_a_saved_profile_is_on_disk(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage) as profile:
        await host.network.save(profile)
        if stage.real:
            files = Path("/etc/NetworkManager/system-connections").glob("*")  # noqa: ASYNC240 - a test
            assert [file for file in files if UUID in file.read_text()]


async def test_a_deleted_profile_is_forgotten(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage) as profile:
        await host.network.save(profile)
        await host.network.delete(UUID)
        assert await host.network.profile(UUID) is None


async def test_deleting_what_is_not_there_does_nothing(host: Host) -> None:
    await host.network.delete(NOBODY)


async def test_an_activated_profile_has_the_device_when_the_call_returns(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage) as profile:
        await host.network.save(profile)
        await host.network.activate(UUID, stage.interface)
        assert await device(host, stage) == Device(stage.interface, True, "activated", UUID, "strixd-contract")


async def test_an_activated_profile_sets_address_and_mtu_and_no_route(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage) as profile:
        await host.network.save(profile)
        await host.network.activate(UUID, stage.interface)
        link = await fabric(host, stage)
        assert link.addresses == ("192.168.213.1/24",)
        assert link.mtu == 1400
        assert not link.default_route


async def test_a_changed_profile_takes_effect_when_it_is_activated_again(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage) as profile:
        await host.network.save(profile)
        await host.network.activate(UUID, stage.interface)
        await host.network.save(replace(profile, address="192.168.213.2/24", mtu=1450))
        await host.network.activate(UUID, stage.interface)
        link = await fabric(host, stage)
        assert link.addresses == ("192.168.213.2/24",)
        assert link.mtu == 1450


async def test_the_zone_follows_the_profile(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage) as profile:
        await host.network.save(profile)
        await host.network.activate(UUID, stage.interface)
        assert await host.firewall.zone_of(stage.interface) == "trusted"


async def test_a_zone_set_only_at_run_time_is_lost_at_the_next_activation(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage) as profile:
        await host.network.save(profile)
        await host.network.activate(UUID, stage.interface)
        await host.firewall.move(stage.interface, "drop")
        assert await host.firewall.zone_of(stage.interface) == "drop"
        await host.network.activate(UUID, stage.interface)
        assert await host.firewall.zone_of(stage.interface) == "trusted"


async def test_a_zone_alone_follows_a_saved_profile_at_once(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage) as profile:
        await host.network.save(profile)
        await host.network.activate(UUID, stage.interface)
        await host.network.save(replace(profile, zone="drop"))

        async def moved() -> bool:
            return await host.firewall.zone_of(stage.interface) == "drop"

        assert await until(host, moved)


async def test_a_profile_without_zone_leads_to_the_default_one(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage) as profile:
        await host.network.save(replace(profile, zone=""))
        await host.network.activate(UUID, stage.interface)
        assert await host.firewall.zone_of(stage.interface) == "public"


async def test_what_is_not_stored_cannot_be_activated(host: Host, stage: Stage) -> None:
    before = await device(host, stage)
    with pytest.raises(Rejected):
        await host.network.activate(NOBODY, stage.interface)
    assert (await device(host, stage)).profile == before.profile


async def test_there_is_nothing_to_activate_on_a_missing_device(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage) as profile:
        await host.network.save(profile)
        with pytest.raises(Rejected):
            await host.network.activate(UUID, "strixd-none0")


async def test_a_disconnected_device_stays_so_and_can_be_activated(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage) as profile:
        await host.network.save(profile)
        await host.network.activate(UUID, stage.interface)
        await host.network.disconnect(stage.interface)
        await host.sleep(1)
        assert (await device(host, stage)).state == "disconnected"
        assert (await device(host, stage)).profile == ""
        assert (await fabric(host, stage)).addresses == ()
        assert await host.firewall.zone_of(stage.interface) == ""
        await host.network.activate(UUID, stage.interface)
        assert (await device(host, stage)).state == "activated"


async def test_a_disconnected_device_can_be_disconnected_again(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage) as profile:
        await host.network.save(profile)
        await host.network.activate(UUID, stage.interface)
        await host.network.disconnect(stage.interface)
        await host.network.disconnect(stage.interface)
        assert await until(host, lambda: _has(host, stage, "")), "NetworkManager replies when it begins"
        await host.network.activate(UUID, stage.interface)


async def test_deleting_the_active_profile_frees_the_device(host: Host, stage: Stage) -> None:
    """Whether the automatic one takes it again depends on how often that has tried in vain."""
    link = await fabric(host, stage)
    async with cleaned(host, stage) as profile:
        await host.network.save(profile)
        await host.network.activate(UUID, stage.interface)
        await host.network.delete(UUID)

        async def restored() -> bool:
            now = await fabric(host, stage)
            return not await _has(host, stage, UUID) and (now.mtu, now.addresses) == (link.mtu, link.addresses)

        assert await until(host, restored)


async def test_a_profile_that_is_activated_on_another_device_leaves_the_first(host: Host, stage: Stage) -> None:
    """Its address goes along, also where it is stored for the other one in memory only."""
    async with cleaned(host, stage) as profile:
        with stage.second() as other:
            await host.network.save(profile)
            await host.network.activate(UUID, stage.interface)
            (second,) = [link for link in await host.links.read() if link.name == other]
            await host.network.stage(replace(profile, interface="", mac=second.mac))
            assert await _has(host, stage, UUID), "staged for another device, it stays in force here"
            await host.network.activate(UUID, other)

            async def moved() -> bool:
                held = {link.name for link in await host.links.read() if profile.address in link.addresses}
                return held == {other} and not await _has(host, stage, UUID)

            assert await until(host, moved)


async def test_other_links_are_left_alone(host: Host, stage: Stage) -> None:
    before = [link for link in await host.links.read() if link.name != stage.interface]
    async with cleaned(host, stage) as profile:
        await host.network.save(profile)
        await host.network.activate(UUID, stage.interface)
        assert [link for link in await host.links.read() if link.name != stage.interface] == before
