"""The contract of ports.Checkpoints: what NetworkManager takes back, when, and what it does not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from strixd.errors import Rejected
from strixd.ports import STAGED, Host, Profile
from tests.contract.stage import BRIEF, Stage, until
from tests.contract.test_network import UUID, cleaned, device
from tests.contract.test_staging import seen

MARGIN = 1.0  # seconds after its time within which a checkpoint has restored everything
State = tuple[Profile | None, str, tuple[str, ...], int, str]


async def state(host: Host, stage: Stage) -> State:
    link, now = await seen(host, stage), await device(host, stage)
    zone = await host.firewall.zone_of(stage.interface)
    return await host.network.profile(UUID), now.profile, link.addresses, link.mtu, zone


@asynccontextmanager
async def in_force(host: Host, stage: Stage) -> AsyncIterator[tuple[Profile, State]]:
    """A saved profile of ours has the link; gives it, and what the world is like."""
    async with cleaned(host, stage) as profile:
        await host.network.save(profile)
        await host.network.activate(UUID, stage.interface)
        yield profile, await state(host, stage)


async def change(host: Host, stage: Stage, profile: Profile) -> State:
    """Another address, MTU and zone come into force, staged."""
    other = replace(profile, address="192.168.213.9/28", mtu=1300, zone="drop")
    await host.network.stage(other)
    await host.network.activate(UUID, stage.interface)
    now = await state(host, stage)
    assert now == (replace(other, others=STAGED), UUID, ("192.168.213.9/28",), 1300, "drop")
    return now


async def comes_to(host: Host, stage: Stage, wanted: State) -> None:
    """The world is so soon, and is judged then."""

    async def there() -> bool:
        return await state(host, stage) == wanted

    await until(host, there, seconds=MARGIN)
    assert await state(host, stage) == wanted


async def test_what_is_not_confirmed_is_taken_back(stage: Stage) -> None:
    async with stage.host(rollback=BRIEF) as host, in_force(host, stage) as (profile, before):
        await host.network.checkpoint(stage.interface)
        await change(host, stage, profile)
        await host.sleep(BRIEF)
        await comes_to(host, stage, before)


async def test_what_was_saved_already_is_taken_back_too(stage: Stage) -> None:
    async with stage.host(rollback=BRIEF) as host, in_force(host, stage) as (profile, before):
        await host.network.checkpoint(stage.interface)
        await change(host, stage, profile)
        await host.network.save(replace(profile, address="192.168.213.9/28", mtu=1300, zone="drop"))
        await host.sleep(BRIEF)
        await comes_to(host, stage, before)


async def test_a_deleted_profile_comes_back(host: Host, stage: Stage) -> None:
    async with in_force(host, stage) as (_, before):
        opened = await host.network.checkpoint(stage.interface)
        await host.network.delete(UUID)
        await host.network.roll_back(opened)
        await comes_to(host, stage, before)


async def test_what_is_confirmed_stays(stage: Stage) -> None:
    async with stage.host(rollback=BRIEF) as host, in_force(host, stage) as (profile, _):
        opened = await host.network.checkpoint(stage.interface)
        after = await change(host, stage, profile)
        await host.network.confirm(opened)
        assert await host.network.checkpoints(stage.interface) == ()
        await host.sleep(BRIEF + MARGIN)
        assert await state(host, stage) == after


async def test_a_rolled_back_link_is_as_it_was_when_the_call_returns(host: Host, stage: Stage) -> None:
    async with in_force(host, stage) as (profile, before):
        opened = await host.network.checkpoint(stage.interface)
        await change(host, stage, profile)
        await host.network.roll_back(opened)
        assert await state(host, stage) == before
        assert await host.network.checkpoints(stage.interface) == ()


async def test_a_new_profile_stays_stored_and_the_link_goes_back(stage: Stage) -> None:
    async with stage.host(rollback=BRIEF) as host, cleaned(host, stage) as profile:
        before = await device(host, stage)
        await host.network.checkpoint(stage.interface)
        await host.network.stage(profile)
        await host.network.activate(UUID, stage.interface)
        await host.sleep(BRIEF + MARGIN)
        now = await device(host, stage)
        assert (now.profile, now.state) == (before.profile, before.state)
        assert await host.network.profile(UUID) == replace(profile, others=STAGED)


async def test_a_checkpoint_survives_the_one_who_made_it(stage: Stage) -> None:
    async with stage.host(rollback=BRIEF) as host, in_force(host, stage) as (profile, before):
        async with stage.host(rollback=BRIEF) as killed:
            opened = await killed.network.checkpoint(stage.interface)
            await change(killed, stage, profile)
        assert await host.network.checkpoints(stage.interface) == (opened,)
        await host.sleep(BRIEF)
        await comes_to(host, stage, before)


async def test_another_one_may_confirm_it(host: Host, stage: Stage) -> None:
    async with in_force(host, stage) as (profile, _):
        async with stage.host() as killed:
            opened = await killed.network.checkpoint(stage.interface)
            after = await change(killed, stage, profile)
        await host.network.confirm(opened)
        assert await host.network.checkpoints(stage.interface) == ()
        assert await state(host, stage) == after


async def test_its_time_begins_again_when_it_is_extended(stage: Stage) -> None:
    seconds = 4 * BRIEF  # to look in while it is open, on a busy machine too
    async with stage.host(rollback=seconds) as host, in_force(host, stage) as (profile, before):
        opened = await host.network.checkpoint(stage.interface)
        after = await change(host, stage, profile)
        await host.sleep(seconds / 2)
        await host.network.extend(opened)
        assert await host.network.checkpoints(stage.interface) == (opened,)
        await host.sleep(seconds * 0.6)
        assert await state(host, stage) == after
        await host.sleep(seconds * 0.4)
        await comes_to(host, stage, before)


async def test_a_device_is_in_one_checkpoint_only(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage):
        opened = await host.network.checkpoint(stage.interface)
        with pytest.raises(Rejected, match="already included in checkpoint") as refusal:
            await host.network.checkpoint(stage.interface)
        assert refusal.value.hint
        assert await host.network.checkpoints(stage.interface) == (opened,)


async def test_there_is_no_checkpoint_of_a_missing_device(host: Host) -> None:
    with pytest.raises(Rejected):
        await host.network.checkpoint("strixd-none0")
    assert await host.network.checkpoints("strixd-none0") == ()


async def test_one_that_ran_out_says_so(stage: Stage) -> None:
    async with stage.host(rollback=BRIEF) as host, in_force(host, stage) as (profile, before):
        opened = await host.network.checkpoint(stage.interface)
        await change(host, stage, profile)
        await host.sleep(BRIEF + MARGIN)
        assert await host.network.checkpoints(stage.interface) == ()
        with pytest.raises(Rejected):
            await host.network.confirm(opened)
        with pytest.raises(Rejected):
            await host.network.extend(opened)
        await host.network.roll_back(opened)
        assert await state(host, stage) == before


async def test_a_restarted_network_manager_has_forgotten_it_and_takes_nothing_back(host: Host, stage: Stage) -> None:
    async with in_force(host, stage) as (profile, _):
        opened = await host.network.checkpoint(stage.interface)
        after = await change(host, stage, profile)
        stage.restart_network()
        assert await host.network.checkpoints(stage.interface) == ()
        with pytest.raises(Rejected):
            await host.network.extend(opened)
        with pytest.raises(Rejected):
            await host.network.roll_back(opened)
        await host.network.confirm(opened)
        assert await state(host, stage) == after


async def test_a_checkpoint_of_an_earlier_network_manager_is_not_taken_for_a_new_one(host: Host, stage: Stage) -> None:
    async with in_force(host, stage):
        earlier = await host.network.checkpoint(stage.interface)
        stage.restart_network()
        opened = await host.network.checkpoint(stage.interface)
        await host.network.confirm(earlier)
        assert await host.network.checkpoints(stage.interface) == (opened,)


async def test_what_was_done_to_the_firewall_directly_is_not_taken_back(host: Host, stage: Stage) -> None:
    async with in_force(host, stage) as _:
        opened = await host.network.checkpoint(stage.interface)
        await host.firewall.move(stage.interface, "drop")
        await host.network.roll_back(opened)
        assert await host.firewall.zone_of(stage.interface) == "drop"
