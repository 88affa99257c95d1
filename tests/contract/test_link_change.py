"""The whole change of the link, as strixd makes it, by the simulated and by the real NetworkManager: fail or kill it at
any call, and the world is as it was."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal

import pytest

from strixd.engine.transaction import Killed, Look, Outcome, transact
from strixd.errors import Rejected
from strixd.fabric import Fabric
from strixd.plan import Plan
from strixd.ports import Host, Profile
from strixd.resources.network import Desired, Network
from strixd.resources.network_steps import guard
from tests.contract.stage import BRIEF, Stage
from tests.contract.test_checkpoints import change, comes_to, in_force, state
from tests.contract.test_network import UUID, cleaned
from tests.contract.test_staging import AT_ONCE, files

CALLS = ("checkpoint", "stage", "activate", "save", "confirm")
calls = pytest.mark.parametrize("call", CALLS)
When = Literal["before", "after"]
whens = pytest.mark.parametrize("when", ["before", "after"])


class Failing:
    """ports.Network whose method `call` fails once, before or after it had its effect."""

    def __init__(self, network: object, call: str, when: When, error: BaseException) -> None:
        self._network, self._call, self._when, self._error = network, call, when, error

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method: Callable[..., Any] = getattr(self._network, name)
        return self._failing(method) if name == self._call else method

    def _failing(self, method: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: object, **kwargs: object) -> None:
            self._call = ""
            if self._when == "after":
                await method(*args, **kwargs)
            raise self._error

        return call


def failing(host: Host, call: str, when: When, error: BaseException) -> Host:
    network: Any = Failing(host.network, call, when, error)
    return replace(host, network=network)


def wish(stage: Stage, profile: Profile) -> Desired:
    return Desired(Fabric(interface=stage.interface), (), replace(profile, interface=""))


async def bound(host: Host, stage: Stage, profile: Profile) -> Profile:
    """As it is written: to the card, not to its name."""
    card = next(link.mac for link in await host.links.read() if link.name == stage.interface)
    return replace(profile, interface="", mac=card)


async def planned(host: Host, desired: Desired) -> Plan:
    await host.sleep(0.25)  # the port of links may give what it read a moment ago, where nobody watches
    return Network().plan(desired, await Network().observe(host, desired))


async def one_pass(host: Host, desired: Desired, *, resumed: bool = False) -> Outcome:
    plan = await planned(host, desired)
    look = Look(Network(), desired, plan)
    return await transact((look,), host, lambda name, doing, step: None, killed=Killed() if resumed else None)


async def undo(host: Host, plan: Plan) -> None:
    inverses = Plan(
        plan.resource, tuple(back for step in reversed(plan.steps) if (back := step.undo())), interface=plan.interface
    )
    async with guard(host, inverses, resumed=False):
        for step in inverses.steps:
            await step.apply(host)


def stored(stage: Stage) -> list[str]:
    return files(stage, "/etc/NetworkManager") + files(stage, "/run/NetworkManager")


async def test_the_link_is_made_right_and_kept(host: Host, stage: Stage) -> None:
    async with cleaned(host, stage) as profile:
        outcome = await one_pass(host, wish(stage, profile))
        assert (outcome.failure, outcome.plans["network"].steps) == (None, ())
        written = await bound(host, stage, profile)
        assert await state(host, stage) == (written, UUID, (profile.address,), profile.mtu, profile.zone)
        assert len(files(stage, "/etc/NetworkManager")) == stage.real
        assert (await planned(host, wish(stage, profile))).steps == ()


@calls
@whens
async def test_whatever_call_fails_the_link_is_as_it_was(host: Host, stage: Stage, call: str, when: When) -> None:
    before = await state(host, stage)
    async with cleaned(host, stage) as profile:
        error, begun = Rejected("no"), host.now()
        outcome = await one_pass(failing(host, call, when, error), wish(stage, profile))
        assert outcome.failure is error
        assert outcome.undone
        assert host.now() - begun < 2 * AT_ONCE + (10 if call == "confirm" else 0)  # a rollback may wait for DHCP
        await comes_to(host, stage, before)
        assert stored(stage) == []


@calls
async def test_whatever_call_fails_an_earlier_profile_is_as_it_was(host: Host, stage: Stage, call: str) -> None:
    async with in_force(host, stage) as (profile, before):
        written = stored(stage)
        other = replace(profile, address="192.168.213.9/28", mtu=1300, zone="drop")
        outcome = await one_pass(failing(host, call, "after", Rejected("no")), wish(stage, other))
        assert outcome.failure
        assert outcome.undone
        await comes_to(host, stage, before)
        assert stored(stage) == written


@pytest.mark.parametrize("call", CALLS[1:])
async def test_a_strixd_that_never_returns_leaves_the_earlier_profile(stage: Stage, call: str) -> None:
    async with stage.host(rollback=BRIEF) as host, in_force(host, stage) as (profile, before):
        written = stored(stage)
        await _killed(host, stage, profile, call)
        await host.sleep(BRIEF)
        await comes_to(host, stage, before)
        assert stored(stage) == written


@calls
async def test_a_strixd_that_returns_finishes(host: Host, stage: Stage, call: str) -> None:
    async with in_force(host, stage) as (profile, _):
        other = await _killed(host, stage, profile, call)
        outcome = await one_pass(host, wish(stage, other), resumed=True)
        assert (outcome.failure, outcome.plans["network"].steps) == (None, ())
        assert await host.network.checkpoints(stage.interface) == ()
        written = await bound(host, stage, other)
        assert await state(host, stage) == (written, UUID, (other.address,), other.mtu, other.zone)


async def _killed(host: Host, stage: Stage, profile: Profile, call: str) -> Profile:
    """At this call, on the way to another address, MTU and zone; gives what was wanted."""
    other = replace(profile, address="192.168.213.9/28", mtu=1300, zone="drop")
    with suppress(asyncio.CancelledError):
        await one_pass(failing(host, call, "before", asyncio.CancelledError()), wish(stage, other))
    return other


async def test_what_was_made_can_be_taken_back_and_made_again(host: Host, stage: Stage) -> None:
    before = await state(host, stage)
    async with cleaned(host, stage) as profile:
        plan = await planned(host, wish(stage, profile))
        await one_pass(host, wish(stage, profile))
        made, begun = await state(host, stage), host.now()
        await undo(host, plan)
        assert host.now() - begun < AT_ONCE
        await comes_to(host, stage, before)
        assert stored(stage) == []
        assert (await one_pass(host, wish(stage, profile))).failure is None
        assert await state(host, stage) == made


async def test_what_was_changed_can_be_taken_back(host: Host, stage: Stage) -> None:
    async with in_force(host, stage) as (profile, before):
        written = stored(stage)
        other = replace(profile, address="192.168.213.9/28", mtu=1300, zone="drop")
        plan = await planned(host, wish(stage, other))
        await one_pass(host, wish(stage, other))
        await undo(host, plan)
        await undo(host, plan)
        await comes_to(host, stage, before)
        assert stored(stage) == written


async def test_a_network_manager_that_is_restarted_in_the_middle_changes_nothing(host: Host, stage: Stage) -> None:
    async with in_force(host, stage) as (profile, _):
        async with guard(host, await planned(host, wish(stage, replace(profile, mtu=1300))), resumed=False):
            after = await change(host, stage, profile)
            stage.restart_network()
        assert await state(host, stage) == after


async def test_an_address_that_another_host_has_is_taken_back_at_once(host: Host, stage: Stage) -> None:
    before = await state(host, stage)
    async with cleaned(host, stage) as profile:
        begun = host.now()
        outcome = await one_pass(host, wish(stage, replace(profile, address=stage.taken)))
        assert host.now() - begun < 2 * AT_ONCE
        assert outcome.failure
        assert outcome.undone
        await comes_to(host, stage, before)
        assert stored(stage) == []
