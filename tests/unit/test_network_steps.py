"""The fabric link's steps: what is planned, what NetworkManager takes back from a strixd that never returns, what the
guard does with a checkpoint, and that a change can be taken back afterwards."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from test_laws import CALM, OURS, idle, lease, stale

from strixd.decode import decode
from strixd.engine.transaction import Look, Outcome, transact
from strixd.errors import NotSettled, Rejected, StrixdError, Unavailable
from strixd.fabric import Fabric, Pick
from strixd.plan import Effect, Plan, Step
from strixd.ports import STAGED, Device, Host, Link, Profile
from strixd.resources import network
from strixd.resources.network_steps import Activate, KeepProfile, StageProfile, guard
from strixd.resources.spare import Choice
from strixd.sim import World, simulated_host
from strixd.sim.gate import Killed
from strixd.sim.world import FABRIC
from tests.sim.node import virtual

LINK = Link(FABRIC, "50:7c:6f:00:00:01", "ice", True, 9000, addresses=(OURS.address,))
WANTED = replace(OURS, mac=LINK.mac)
KEPT_ON = Device(FABRIC, True, "activated", OURS.uuid, OURS.name)
OTHER_ON = Device(FABRIC, True, "activating", "auto-fabric", "Wired connection 1")
STAGE = StageProfile(FABRIC, WANTED)
ACTIVATE = Activate(FABRIC, WANTED.uuid, WANTED.name, "auto-fabric", "Wired connection 1")
KEEP = KeepProfile(FABRIC, WANTED)
DESIRED = network.Desired(Fabric(driver="ice"), (), OURS)


def holder(device: Device) -> str:
    return device.interface if device.profile == OURS.uuid else ""


def planned(profile: Profile | None, device: Device, link: Link = LINK) -> Plan:
    return network.Network().plan(DESIRED, network.Observed(Choice(Pick(link)), profile, device, holder=holder(device)))


def test_a_new_profile_is_staged_activated_and_kept() -> None:
    assert planned(None, OTHER_ON).steps == (STAGE, ACTIVATE, KEEP)


def test_what_is_staged_and_active_only_lacks_being_kept() -> None:
    assert planned(replace(WANTED, others=STAGED), KEPT_ON).steps == (KEEP,)


def test_what_is_staged_and_not_active_is_activated_and_kept() -> None:
    assert planned(replace(WANTED, others=STAGED), OTHER_ON).steps == (ACTIVATE, KEEP)


def test_what_is_kept_and_not_active_is_activated() -> None:
    assert planned(WANTED, OTHER_ON).steps == (ACTIVATE,)


def test_what_is_kept_and_active_is_left_alone() -> None:
    assert planned(WANTED, KEPT_ON).steps == ()


def test_a_staged_profile_that_is_on_its_way_is_not_kept_before_it_has_arrived() -> None:
    coming = replace(KEPT_ON, state="activating")
    again = Activate(FABRIC, WANTED.uuid, WANTED.name, WANTED.uuid, WANTED.name)
    assert planned(replace(WANTED, others=STAGED), coming).steps == (again, KEEP)
    assert planned(WANTED, coming).condition == "waiting"


def test_a_setting_of_somebody_else_in_ours_is_replaced() -> None:
    for others in (("ipv4.gateway",), STAGED[:1]):
        strange = replace(WANTED, others=others)
        assert planned(strange, KEPT_ON).steps[0] == StageProfile(FABRIC, WANTED, strange, in_force=True)


def test_nothing_is_written_without_carrier() -> None:
    plan = planned(None, OTHER_ON, replace(LINK, carrier=False))
    assert (plan.steps, plan.condition) == ((), "blocked")


@pytest.mark.parametrize("before", [None, replace(WANTED, mtu=1500)], ids=["new", "changed"])
def test_steps_and_their_inverses_survive_json(before: Profile | None) -> None:
    steps: list[Step] = [StageProfile(FABRIC, WANTED, before, in_force=before is not None), ACTIVATE, KEEP]
    steps += [Activate(FABRIC, WANTED.uuid, WANTED.name), *(back for step in steps if (back := step.undo()))]
    steps += [again for step in steps if (again := step.undo())]
    for step in steps:
        value: Any = step
        assert decode(type(value), json.loads(json.dumps(dataclasses.asdict(value))), key=str).value == step


Start = Callable[[], World]
starts = pytest.mark.parametrize("start", [World, idle, lease, stale], ids=["fresh", "idle", "lease", "stale"])


async def begun(start: Start) -> World:
    world = start()
    await world.clock.sleep(CALM)
    return world


async def one_change(world: World) -> Outcome:
    """By a process of its own, without the engine's record around it."""
    host, resource = simulated_host(world), network.Network()
    plan = resource.plan(DESIRED, await resource.observe(host, DESIRED))
    return await transact((Look(resource, DESIRED, plan),), host, lambda name, doing, step: None)


async def writing_calls(start: Start) -> int:
    world = await begun(start)
    assert (await one_change(world)).failure is None
    return len(world.calls.writes)


def in_force(world: World) -> dict[str, object]:
    seen = world.snapshot()
    return {key: seen[key] for key in ("devices", "runtime zones", "permanent zones")}


@starts
@virtual
async def test_whenever_strixd_is_killed_for_good_the_link_is_as_it_was_within_a_minute(start: Start) -> None:
    """A profile that is new stays stored: in memory only, unless strixd was killed between keeping it and the
    confirmation that follows at once."""
    calls = await writing_calls(start)
    for number in range(1, calls + 1):
        world, same = await begun(start), await begun(start)
        before = world.network.stored.get(OURS.uuid)
        world.kill_at(number)
        with pytest.raises(Killed):
            await one_change(world)
        await world.clock.sleep(61)
        await same.clock.sleep(1)
        after = world.network.stored.get(OURS.uuid)
        assert in_force(world) == in_force(same), number
        assert after == before or before is None, number
        assert after is None or before or after.others == STAGED or number == calls, number


@starts
@virtual
async def test_a_killed_attempt_that_is_lost_with_the_power_leaves_nothing(start: Start) -> None:
    for number in range(1, await writing_calls(start) - 1):
        world, same = await begun(start), await begun(start)
        world.kill_at(number)
        with pytest.raises(Killed):
            await one_change(world)
        for each in (world, same):
            each.reboot()
            await each.clock.sleep(1)
        assert world.snapshot()["profiles"] == same.snapshot()["profiles"], number
        assert in_force(world) == in_force(same), number


@starts
@virtual
async def test_a_change_that_succeeded_can_be_taken_back_and_made_again(start: Start) -> None:
    """As `strixd-cli undo` does: all inverses in reverse, as a plan of its own, which has inverses too."""
    world = await begun(start)
    host, before = simulated_host(world), world.snapshot()
    plan = network.Network().plan(DESIRED, await network.Network().observe(host, DESIRED))
    await one_change(world)
    await world.clock.sleep(1)
    made = world.snapshot()
    undo = Plan(
        "network", interface=FABRIC, steps=tuple(back for step in reversed(plan.steps) if (back := step.undo()))
    )
    await _take(host, undo)
    assert world.snapshot() == before
    await _take(
        host,
        Plan("network", interface=FABRIC, steps=tuple(back for step in reversed(undo.steps) if (back := step.undo()))),
    )
    assert world.snapshot() == made
    await _take(host, undo)
    await _take(host, undo)
    assert world.snapshot() == before


async def _take(host: Host, plan: Plan) -> None:
    async with guard(host, plan, resumed=False):
        for step in plan.steps:
            await step.apply(host)
    await host.sleep(1)


@virtual
async def test_undoing_leaves_the_link_to_network_manager_when_its_profile_is_gone() -> None:
    world = lease()
    host = simulated_host(world)
    plan = network.Network().plan(DESIRED, await network.Network().observe(host, DESIRED))
    await one_change(world)
    world.network.automatic.clear()
    await _take(
        host,
        Plan("network", interface=FABRIC, steps=tuple(back for step in reversed(plan.steps) if (back := step.undo()))),
    )
    assert world.network.nics[FABRIC].profile == ""
    assert OURS.uuid not in world.network.stored


class NotTrue:
    """A step after which the world is not as it should be."""

    effect: ClassVar[Effect] = Effect.NOW

    def undo(self) -> None:
        return None

    async def apply(self, _: Host) -> None:
        raise NotSettled("no")


PLAN = Plan("network", (STAGE, ACTIVATE), interface=FABRIC)


@virtual
async def test_a_guard_without_steps_or_without_its_device_does_nothing() -> None:
    world = World()
    for plan in (Plan("network", interface=FABRIC), Plan("network", (Activate("strixd-none0", "", ""),))):
        async with guard(simulated_host(world), plan, resumed=False):
            assert world.network.checkpoints == {}
    assert world.writes == []


@virtual
async def test_a_guard_is_confirmed_when_it_is_left() -> None:
    world = World()
    async with guard(simulated_host(world), PLAN, resumed=False):
        assert len(world.network.checkpoints) == 1
    assert world.network.checkpoints == {}


@virtual
async def test_a_failure_rolls_back_and_is_told() -> None:
    world = lease()
    before, host = in_force(world), simulated_host(world)
    with pytest.raises(NotSettled):
        await _take(host, replace(PLAN, steps=(STAGE, ACTIVATE, NotTrue())))
    await host.sleep(0.1)
    assert in_force(world) == before
    assert world.network.checkpoints == {}


@virtual
async def test_the_first_failure_is_told_when_the_rollback_fails_too() -> None:
    world = World()
    world.fail("network.roll_back", Unavailable("away"))
    with pytest.raises(NotSettled):
        async with guard(simulated_host(world), PLAN, resumed=False):
            raise NotSettled("no")


@virtual
async def test_a_confirmation_that_fails_rolls_back() -> None:
    world = lease()
    before, host = in_force(world), simulated_host(world)
    world.fail("network.confirm", Rejected("no"))
    with pytest.raises(Rejected):
        await _take(host, PLAN)
    await host.sleep(0.1)
    assert in_force(world) == before


@pytest.mark.parametrize("end", [asyncio.CancelledError(), Killed("now"), RuntimeError("a bug")], ids=repr)
@virtual
async def test_whatever_else_ends_it_leaves_it_to_network_manager(end: BaseException) -> None:
    world = World()
    with pytest.raises(type(end)):
        async with guard(simulated_host(world), PLAN, resumed=False):
            raise end
    assert len(world.network.checkpoints) == 1


@virtual
async def test_a_resumed_attempt_takes_the_open_checkpoint_over_and_its_time_begins_again() -> None:
    world = World()
    await simulated_host(world).network.checkpoint(FABRIC)
    (opened,) = world.network.checkpoints
    await world.clock.sleep(50)
    async with guard(simulated_host(world), PLAN, resumed=True):
        await world.clock.sleep(50)
        assert list(world.network.checkpoints) == [opened]
    assert world.network.checkpoints == {}


@virtual
async def test_a_resumed_attempt_with_nothing_left_to_do_confirms() -> None:
    world = World()
    await simulated_host(world).network.checkpoint(FABRIC)
    async with guard(simulated_host(world), Plan("network", interface=FABRIC), resumed=True):
        pass
    assert world.network.checkpoints == {}


@virtual
async def test_a_resumed_attempt_whose_checkpoint_is_gone_begins_another() -> None:
    world = World()
    async with guard(simulated_host(world), PLAN, resumed=True):
        assert len(world.network.checkpoints) == 1
    assert world.network.checkpoints == {}


@virtual
async def test_somebody_elses_checkpoint_is_in_the_way() -> None:
    world = World()
    await simulated_host(world, rollback=300).network.checkpoint(FABRIC)
    for resumed in (False, True):
        with pytest.raises(StrixdError, match="already included in checkpoint"):
            async with guard(simulated_host(world), PLAN, resumed=resumed):
                pass
    assert len(world.network.checkpoints) == 1


@virtual
async def test_a_duplicate_address_is_noticed_at_once_and_everything_taken_back() -> None:
    world = await begun(lease)
    world.network.duplicates.add(OURS.address)
    before, at = world.snapshot(), world.clock.now()
    outcome = await one_change(world)
    assert OURS.address in str(outcome.failure)
    assert outcome.undone
    assert world.clock.now() - at < 1
    await world.clock.sleep(1)
    assert world.snapshot() == before
