"""The contract of ports.Network for profiles that are only staged, and for giving a link back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from strixd.errors import Rejected
from strixd.ports import STAGED, Host, Link
from tests.contract.stage import Stage, until
from tests.contract.test_links import fabric
from tests.contract.test_network import NOBODY, UUID, cleaned, device

AT_ONCE = 2.0  # seconds


def files(stage: Stage, folder: str) -> list[str]:
    """The texts of the files with our profile; only where `real`."""
    texts = [path.read_text() for path in Path(folder, "system-connections").glob("*")] if stage.real else []
    return [text for text in texts if UUID in text]


async def seen(host: Host, stage: Stage) -> Link:
    """The port of links may give what it read a moment ago, where nobody watches."""
    await host.sleep(0.25)
    return await fabric(host, stage)


async def test_a_staged_profile_is_known_and_neither_on_disk_nor_activated_by_itself(host: Host, stage: Stage) -> None:
    before = await device(host, stage)
    async with cleaned(host, stage) as profile:
        await host.network.stage(profile)
        assert await host.network.profile(UUID) == replace(profile, others=STAGED)
        assert files(stage, "/etc/NetworkManager") == []
        await host.sleep(1)
        assert (await device(host, stage)).profile == before.profile


async def test_a_staged_profile_can_be_activated(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage) as profile:
        await host.network.stage(profile)
        await host.network.activate(UUID, stage.interface)
        link = await seen(host, stage)
        assert (link.addresses, link.mtu) == ((profile.address,), profile.mtu)
        assert await host.firewall.zone_of(stage.interface) == "trusted"


async def test_a_staged_profile_that_is_active_can_be_saved_and_stays_so(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage) as profile:
        await host.network.stage(profile)
        await host.network.activate(UUID, stage.interface)
        await host.network.save(profile)
        assert await host.network.profile(UUID) == profile
        assert len(files(stage, "/etc/NetworkManager")) == stage.real
        assert files(stage, "/run/NetworkManager") == []
        await host.sleep(0.5)
        assert ((await device(host, stage)).state, (await seen(host, stage)).mtu) == ("activated", profile.mtu)


async def test_what_is_staged_over_a_saved_profile_leaves_its_file_as_it_was(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage) as profile:
        await host.network.save(profile)
        saved = files(stage, "/etc/NetworkManager")
        other = replace(profile, address="192.168.213.7/28", mtu=1300)
        await host.network.stage(other)
        assert await host.network.profile(UUID) == replace(other, others=STAGED)
        assert files(stage, "/etc/NetworkManager") == saved
        await host.network.save(profile)
        assert await host.network.profile(UUID) == profile
        assert files(stage, "/etc/NetworkManager") == saved


async def test_a_saved_profile_can_be_taken_from_the_disk_and_stays_active(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage) as profile:
        await host.network.save(profile)
        await host.network.activate(UUID, stage.interface)
        for _ in range(2):
            await host.network.unsave(profile)
            assert await host.network.profile(UUID) == replace(profile, others=STAGED)
            assert files(stage, "/etc/NetworkManager") == []
        assert (await device(host, stage)).state == "activated"


async def test_what_is_not_there_can_be_taken_from_the_disk_too(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage) as profile:
        await host.network.unsave(profile)
        assert await host.network.profile(UUID) == replace(profile, others=STAGED)


async def test_a_profile_that_is_staged_over_a_saved_one_is_deleted_with_it(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage) as profile:
        await host.network.save(profile)
        await host.network.stage(replace(profile, mtu=1300))
        await host.network.delete(UUID)
        assert await host.network.profile(UUID) is None
        assert files(stage, "/etc/NetworkManager") == files(stage, "/run/NetworkManager") == []


async def test_what_is_staged_and_active_survives_a_restart_of_network_manager(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage) as profile:
        await host.network.stage(profile)
        await host.network.activate(UUID, stage.interface)
        stage.restart_network()
        assert await host.network.profile(UUID) == replace(profile, others=STAGED)
        assert (await device(host, stage)).profile == UUID
        assert (await seen(host, stage)).addresses == (profile.address,)


async def test_a_link_is_given_back_at_once_though_its_profile_waits_for_an_address(host: Host, stage: Stage) -> None:
    before = await device(host, stage)
    async with cleaned(host, stage) as profile:
        await host.network.save(profile)
        await host.network.activate(UUID, stage.interface)
        begun = host.now()
        await host.network.give_back(stage.interface, ours=UUID, to=before.profile)
        assert host.now() - begun < AT_ONCE
        now = await device(host, stage)
        assert (now.profile, now.state) == (before.profile, "activating")


async def test_what_has_its_link_already_is_not_activated_again(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage) as profile:
        await host.network.save(profile)
        await host.network.activate(UUID, stage.interface)
        await host.network.give_back(stage.interface, ours=NOBODY, to=UUID)
        assert (await device(host, stage)).state == "activated"


async def test_a_link_that_a_third_profile_has_is_left_alone(host: Host, stage: Stage) -> None:
    before = await device(host, stage)
    async with cleaned(host, stage) as profile:
        await host.network.save(profile)
        await host.network.activate(UUID, stage.interface)
        await host.network.give_back(stage.interface, ours=NOBODY, to=before.profile)
        assert (await device(host, stage)).profile == UUID


async def test_a_link_whose_profile_is_gone_is_left_to_network_manager(host: Host, stage: Stage) -> None:
    """Ours is on disk and has the highest priority, and does not take the link again all the same."""
    async with cleaned(host, stage) as profile:
        await host.network.save(profile)
        await host.network.activate(UUID, stage.interface)
        await host.network.give_back(stage.interface, ours=UUID, to=NOBODY)
        assert (await device(host, stage)).profile != UUID
        await host.sleep(1)
        assert (await device(host, stage)).profile != UUID
        await host.network.give_back(stage.interface, ours=UUID, to=NOBODY)
        await host.network.activate(UUID, stage.interface)


async def test_there_is_nothing_to_give_back_on_a_missing_device(host: Host) -> None:
    await host.network.give_back("strixd-none0", ours=UUID, to=NOBODY)


async def test_an_address_that_another_host_has_is_refused_at_once(host: Host, stage: Stage) -> None:
    before = await device(host, stage)
    async with cleaned(host, stage) as profile:
        await host.network.stage(replace(profile, address=stage.taken))
        opened = await host.network.checkpoint(stage.interface)
        begun = host.now()
        with pytest.raises(Rejected):
            await host.network.activate(UUID, stage.interface)
        assert host.now() - begun < AT_ONCE
        await host.network.give_back(stage.interface, ours=UUID, to=before.profile)
        await host.network.confirm(opened)

        async def back() -> bool:
            return (await device(host, stage)).profile == before.profile

        assert await until(host, back)
