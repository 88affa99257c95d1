"""The laws that every resource keeps, and all of them as one change, each in several starting worlds:

idempotent: after a pass the plan is empty; quiet: a second pass makes no writing call; reversible: whichever writing
call fails, the world is as it was (the change's own history may fail alone); resumable: at whichever writing call
strixd is killed, the next pass converges to the same world.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pytest

from strixd.engine import record
from strixd.engine.settings import Settings
from strixd.errors import Rejected, StrixdError, Unavailable
from strixd.fabric import Fabric
from strixd.kernelpolicy import Policy as KernelPolicy
from strixd.ladder import Wanted
from strixd.orders import Orders
from strixd.plan import Resource, Step
from strixd.ports import Boot, BootEntry, Policy, Profile, Zone
from strixd.resources import cmdline, dscp, firewall, network
from strixd.resources import fabric as fabric_link
from strixd.resources.spare import GRACE
from strixd.sim import World, clock, simulated_host
from strixd.sim.gate import Killed, When
from strixd.sim.hotplug import spared
from strixd.sim.world import FABRIC, SPARE, leased

CALM = 6.0  # seconds until what happens by itself after a pass has happened
ROLLBACK = 66.0  # seconds in which a checkpoint that nobody confirmed has run out
OURS = Profile("0d8b", "strixd-test", "", "", "192.168.100.1/24", 9000, "trusted", 100)
OWN = Zone("strixd", "of strixd", "default", ('rule family="ipv4" source address="192.168.100.2" accept',))
REJECT = 'rule family="ipv4" source NOT address="192.168.100.0/24" port port="6379" protocol="tcp" reject'
FENCE = Policy("strixd-fence", "of strixd", (REJECT,))


@dataclass(frozen=True)
class Case:
    """A resource, what it shall be, and the world in which it is made so. `start` runs inside the event loop."""

    name: str
    pairs: tuple[tuple[Resource[Any, Any], object], ...]
    start: Callable[[], World]

    def __str__(self) -> str:
        return self.name


def fresh() -> World:
    return World()


def idle() -> World:
    """No DHCP: the automatic profile has given up, and a stored profile gets the link by itself."""
    world = World()
    world.network.give_up(FABRIC)
    return world


def lease() -> World:
    return leased(World())


def stale() -> World:
    """An earlier setting of ours is in force."""
    world = World()
    world.network.save(Profile(OURS.uuid, "strixd-old", FABRIC, "", "192.168.99.1/24", 1500, "public", 100))
    world.network.begin(OURS.uuid, FABRIC)
    world.firewalld.zones[OWN.name] = Zone(OWN.name, "older")
    return world


def saved() -> World:
    """Stored as it shall be, and not active."""
    world = World()
    nic = world.network.nics[FABRIC]
    world.network.stored[OURS.uuid] = Profile(
        OURS.uuid, OURS.name, "", nic.link.mac, OURS.address, OURS.mtu, OURS.zone, OURS.autoconnect_priority
    )
    return world


def staged() -> World:
    """As a killed attempt leaves it: ours is in memory, and another one has the link."""
    world = World()
    nic = world.network.nics[FABRIC]
    world.network.stage(replace(OURS, mac=nic.link.mac))
    return world


def unkept() -> World:
    """All holds, and would be lost at the next boot."""
    world = staged()
    world.network.begin(OURS.uuid, FABRIC)
    return world


def elsewhere() -> World:
    """Somebody has moved the link, which is ours, and a permanent file names it."""
    world = saved()
    world.network.begin(OURS.uuid, FABRIC)
    world.firewalld.bind(FABRIC, "drop")
    world.firewalld.files[FABRIC] = "drop"
    return world


def unplugged() -> World:
    world = World()
    world.plug(cable=False)
    return world


def fenced() -> World:
    """An earlier fence of ours is there, and no zone of ours."""
    world = World()
    world.firewalld.policies[FENCE.name] = Policy(FENCE.name, "older")
    return world


def cut() -> World:
    """The first link, which is as it shall be, is out, and the spare is there."""
    world = spared(unkept())
    world.network.save(world.network.stored[OURS.uuid])
    world.plug(cable=False)
    return world


def moved() -> World:
    """On the spare, and the first link is back."""
    world = spared(saved())
    bolt = world.network.nics[SPARE].link
    world.network.stage(replace(OURS, mac=bolt.mac, mtu=bolt.max_mtu))
    world.network.begin(OURS.uuid, SPARE)
    return world


STARTS = (fresh, idle, lease, stale, saved, unplugged)


KERNEL = cmdline.desired_arguments(KernelPolicy(gtt_pages=32505856, gttsize_mib=126976, arguments=("quiet2=1",)))


def by_hand() -> World:
    """Somebody's own values are there, some of which contradict ours, and a list that is shared."""
    world = World()
    options = "root=UUID=5e3f ro amd_iommu=off pci=noaer ttm.pages_limit=1 quiet"
    world.boot_files.content = Boot("grubby", options, (BootEntry("a", options), BootEntry("b", "ro")), options, "")
    return world


def dropped() -> World:
    """What strixd set earlier is not asked for any more."""
    world = by_hand()
    world.disk.put(cmdline.RECORD, json.dumps({"keys": ["mitigations", "quiet"]}, indent=1) + "\n")
    return world


def marked_before() -> World:
    """The link is up, and an earlier file asked for another DSCP; somebody else had asked before that."""
    world = unkept()
    world.rdma.tos = 46 << 2
    world.disk.put(
        dscp.RECORD, json.dumps({"device": "irdma0", "number": 1, "tos": 46 << 2, "found": 32, "before": 32}) + "\n"
    )
    return world


def cases() -> Iterator[Case]:
    fabric = Fabric(driver="ice")
    kernel = (cmdline.Cmdline(), KERNEL)
    link = (network.Network(), network.Desired(fabric, (), OURS))
    two = Fabric(driver="ice", address=OURS.address, spare=Fabric(interface=SPARE))
    either = (network.Network(), network.Desired(two, (), OURS, apart=1.0))
    trusted = (
        firewall.Firewall(),
        firewall.Desired(fabric, (), "trusted", firewall.Own(policy=FENCE), profile=OURS.uuid, address=OURS.address),
    )
    own = (
        firewall.Firewall(),
        firewall.Desired(fabric, (), OWN.name, firewall.Own(OWN, FENCE), profile=OURS.uuid, address=OURS.address),
    )
    for start, asked in ((unkept, 26), (marked_before, 26), (marked_before, 0)):
        marked = fabric_link.Desired(fabric, (), Wanted(dscp=asked, address="192.168.100.1"))
        yield Case(f"dscp-{asked}-{start.__name__}", ((dscp.Dscp(), marked),), start)
    for start in (fresh, by_hand, dropped):
        yield Case(f"cmdline-{start.__name__}", (kernel,), start)
    for start in (*STARTS, staged, unkept):  # not `elsewhere`: a zone set only at run time outlives no activation
        yield Case(f"network-{start.__name__}", (link,), start)
        yield Case(f"all-{start.__name__}", (kernel, trusted, link), start)
    for start in (cut, moved, unkept):
        yield Case(f"spare-{start.__name__}", (either,), start)
    for start in (*STARTS, elsewhere, fenced):
        yield Case(f"firewall-{start.__name__}", (trusted,), start)
        yield Case(f"firewall-own-{start.__name__}", (own,), start)


CASES = tuple(cases())
every = pytest.mark.parametrize("case", CASES, ids=str)
whens = pytest.mark.parametrize("when", ["before", "after"])


async def begun(case: Case) -> World:
    world = case.start()
    await world.clock.sleep(CALM)
    return world


@dataclass(frozen=True)
class Passed:
    """What a pass left to do, and what went wrong in it."""

    steps: tuple[Step, ...]
    failures: tuple[str, ...]


async def one_pass(case: Case, world: World) -> Passed:
    """By a process of its own."""
    host = simulated_host(world)
    settings = Settings(host, lambda name, doing, step: None)
    await settings.load()
    tended = await settings.tend(Orders(), case.pairs)
    if any(view.next_try and view.condition != "held" for view in tended.views.values()):
        await world.clock.sleep(GRACE)  # there is nothing but time to wait for
        tended = await settings.tend(Orders(), case.pairs)
    failures = tuple(view.why for view in tended.views.values() if view.condition in ("held", "blocked"))
    return Passed(await left(case, world), failures)


async def left(case: Case, world: World) -> tuple[Step, ...]:
    host = simulated_host(world)
    plans = [resource.plan(desired, await resource.observe(host, desired)) for resource, desired in case.pairs]
    return tuple(step for plan in plans for step in plan.steps)


async def undisturbed(case: Case) -> World:
    world = await begun(case)
    await one_pass(case, world)
    await world.clock.sleep(CALM)
    return world


def only_history(world: World, number: int) -> bool:
    """This writing call is after the change, and only keeps what it was."""
    call = world.calls.writes[number - 1]
    kept = {("write", record.HISTORY), ("remove", record.CHANGE)}
    return call.port == "files" and (call.method, call.args[0]) in kept


@every
def test_idempotent(case: Case) -> None:
    async def law() -> None:
        world = await begun(case)
        assert (await one_pass(case, world)).steps == ()
        await world.clock.sleep(CALM)
        assert await left(case, world) == ()

    clock.run(law())


@every
def test_quiet(case: Case) -> None:
    async def law() -> None:
        world = await undisturbed(case)
        settled, calls = world.snapshot(), list(world.calls.writes)
        await one_pass(case, world)
        assert world.calls.writes == calls
        assert world.snapshot() == settled

    clock.run(law())


@every
@whens
@pytest.mark.parametrize("error", [Rejected("no"), Unavailable("away")], ids=["rejected", "unavailable"])
def test_reversible(case: Case, when: When, error: StrixdError) -> None:
    """`when`: a call may fail before or after it had its effect."""

    async def law() -> None:
        calm = await undisturbed(case)
        for number in range(1, len(calm.calls.writes) + 1):
            world = await begun(case)
            before = world.snapshot()
            world.fail("write", error, at=number, when=when)
            passed = await one_pass(case, world)
            await world.clock.sleep(CALM)
            if only_history(calm, number):
                assert passed.steps == ()
                assert await one_pass(case, world) == Passed((), passed.failures)
                assert world.snapshot() == calm.snapshot()
            else:
                assert str(error) in passed.failures
                assert world.snapshot() == before, f"call {number} of {calm.writes}"

    clock.run(law())


@every
@whens
def test_resumable(case: Case, when: When) -> None:
    async def law() -> None:
        calm = await undisturbed(case)
        await calm.clock.sleep(ROLLBACK)
        for number in range(1, len(calm.calls.writes) + 1):
            world = await begun(case)
            world.kill_at(number, when=when)
            with pytest.raises(Killed):
                await one_pass(case, world)
            assert (await one_pass(case, world)).steps == ()
            await world.clock.sleep(ROLLBACK)
            assert world.snapshot() == calm.snapshot(), f"killed at call {number} of {calm.writes}"

    clock.run(law())


@every
@whens
def test_killed_twice_is_taken_back_and_left_alone(case: Case, when: When) -> None:
    async def law() -> None:
        calm = await undisturbed(case)
        for first in range(1, len(calm.calls.writes) + 1):
            for second in (1, 2, 3):
                world = await begun(case)
                before = world.snapshot()
                for number in (first, second):
                    world.kill_at(number, when=when)
                    with suppress(Killed):
                        await one_pass(case, world)
                world.calls.faults.clear()
                passed = await one_pass(case, world)
                await world.clock.sleep(CALM)
                world.disk.files.pop(record.CHANGE, None)  # why it is left alone
                assert passed.steps == () or world.snapshot() == before, f"killed at {first}, then {second}"

    clock.run(law())


@every
def test_an_absent_service_changes_nothing(case: Case) -> None:
    """What cannot be reached is a named failure, or blocked, and writes nothing."""

    async def law() -> None:
        world = await begun(case)
        before = world.snapshot()
        world.calls.down |= {"network", "firewall", "boot", "rdma_cm"}
        host = simulated_host(world)
        settings = Settings(host, lambda name, doing, step: None)
        tended = await settings.tend(Orders(), case.pairs)
        assert {view.condition for view in tended.views.values()} == {"blocked"}
        assert world.calls.writes == []
        assert world.snapshot() == before

    clock.run(law())
