"""Settings as one change: what is recorded, taken back, left alone, and not fought over. In the simulation."""

from __future__ import annotations

import json
import operator
from dataclasses import replace
from itertools import count

import pytest
from test_laws import CALM, CASES, OURS, Case, begun, fresh, lease, left

from strixd.engine import record
from strixd.engine.settings import Settings
from strixd.engine.status import Outcome, ResourceView, StepView
from strixd.errors import Rejected
from strixd.orders import Orders
from strixd.ports import KERNEL_CMDLINE, Link
from strixd.resources import network
from strixd.sim import World, simulated_host
from strixd.sim.world import FABRIC, MANAGEMENT
from tests.sim.node import virtual

ALL = next(case for case in CASES if case.name == "all-fresh")
LEASED = replace(ALL, start=lease)


class Living:
    """One process's settings, kept true pass by pass."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.settings = Settings(simulated_host(world), lambda name, doing, step: None)

    async def one_pass(self, orders: Orders | None = None, cause: str = "") -> dict[str, ResourceView]:
        self.settings.cause = cause
        tended = await self.settings.tend(orders or Orders(), ALL.pairs)
        await self.world.clock.sleep(1)
        return dict(tended.views)


async def living(case: Case) -> Living:
    node = Living(await begun(case))
    await node.settings.load()
    return node


@virtual
async def test_one_change_spans_all_and_says_who_asked() -> None:
    node = await living(ALL)
    views = await node.one_pass(cause="uid 1000: apply")
    assert {name: view.condition for name, view in views.items()} == {
        "cmdline": "reboot",
        "firewall": "ok",
        "network": "ok",
    }
    (change,) = await record.load_history(simulated_host(node.world).files)
    assert (change.by, change.outcome, change.resources) == (
        "uid 1000: apply",
        "done",
        ("cmdline", "firewall", "network"),
    )
    assert change.interface == FABRIC
    assert node.settings.running is None


@pytest.mark.parametrize("case", CASES, ids=str)
@virtual
async def test_every_inverse_survives_the_disk(case: Case) -> None:
    world = await begun(case)
    steps = await left(case, world)
    backs = [back for step in steps if (back := step.undo())]
    again = [back for step in backs if (back := step.undo())]
    parts = tuple(record.part("network", step) for step in (*steps, *backs, *again))
    change = record.Change("c1", 1.5, "drift", "b", FABRIC, parts)
    assert record.from_json(json.loads(json.dumps(record.to_json(change)))) == change


@virtual
async def test_undo_takes_back_the_last_change_and_leaves_its_settings_alone() -> None:
    node = await living(ALL)
    before = node.world.snapshot()
    await node.one_pass()
    (change,) = node.settings.history
    released = Orders(undo=change.id, released=("cmdline", "firewall", "network"))
    views = await node.one_pass(released, "uid 0: undo")
    await node.world.clock.sleep(CALM)
    assert node.world.snapshot() == before
    assert {view.why for view in views.values() if view.steps} == {"left alone since strixd-cli undo"}
    assert [(each.outcome, each.by) for each in node.settings.history] == [
        ("undone", "strixd"),
        ("done", "uid 0: undo"),
    ]
    again = await living(replace(ALL, start=lambda: node.world))  # another process
    await again.one_pass(released)
    assert node.world.snapshot() == before


@virtual
async def test_undo_that_fails_leaves_the_change_as_it_was() -> None:
    node = await living(ALL)
    await node.one_pass()
    await node.world.clock.sleep(CALM)
    before = node.world.snapshot()
    node.world.fail("network.delete", Rejected("no"))
    await node.one_pass(Orders(undo=node.settings.history[0].id))
    await node.world.clock.sleep(CALM)
    assert node.world.snapshot() == before
    assert [each.outcome for each in node.settings.history] == ["done", "failed"]


@virtual
async def test_a_kernel_installed_since_is_rid_of_the_arguments_by_undo_too() -> None:
    node = await living(ALL)
    await node.one_pass()
    node.world.install_kernel("6.19.0", node.world.boot_files.content.kernel_cmdline or "")
    await node.one_pass()
    await node.one_pass(Orders(undo=node.settings.history[0].id, released=("cmdline", "firewall", "network")))
    lines = [entry.options for entry in node.world.boot_files.content.entries]
    assert not any("iommu" in line for line in [*lines, node.world.boot_files.content.kernel_cmdline or KERNEL_CMDLINE])


@pytest.mark.parametrize(
    ("peer", "own", "words"),
    [
        (
            "192.168.100.77",
            "10.0.0.5",
            f"answers to the SSH session from 192.168.100.77 leave by {FABRIC} instead of mgmt0",
        ),
        ("172.16.0.1", "172.16.0.9", "the SSH session from 172.16.0.1 has lost this host's address 172.16.0.9"),
    ],
)
@virtual
async def test_a_change_that_would_cut_a_session_off_is_taken_back(peer: str, own: str, words: str) -> None:
    node = await living(LEASED)
    node.world.network.sessions.add((peer, own))
    before = node.world.snapshot()
    views = await node.one_pass()
    await node.world.clock.sleep(CALM)
    assert words in views["network"].why
    assert node.world.snapshot() == before


@virtual
async def test_a_change_during_which_another_link_loses_its_address_is_taken_back() -> None:
    node = await living(LEASED)
    before = node.world.snapshot()
    nic = node.world.network.nics[MANAGEMENT]
    whole = nic.link
    node.world.clock.after(0.1, lambda: setattr(nic, "link", replace(whole, addresses=(), default_route=False)))
    views = await node.one_pass()
    assert "mgmt0 has lost its address 10.0.0.5/24; mgmt0 has lost the default route" in views["network"].why
    nic.link = whole
    await node.world.clock.sleep(CALM)
    assert node.world.snapshot() == before


@virtual
async def test_the_third_repair_within_a_minute_is_held_and_a_person_lifts_it() -> None:
    node = await living(ALL)
    await node.one_pass()
    conditions = []
    for _ in range(3):
        node.world.firewalld.bind(FABRIC, "drop")
        conditions.append((await node.one_pass())["firewall"].condition)
    assert conditions == ["ok", "ok", "held"]
    assert [each.by for each in node.settings.history[1:]] == ["drift", "drift"]
    node.settings.lift()
    assert (await node.one_pass())["firewall"].condition == "ok"


@virtual
async def test_repairs_further_apart_are_no_fight() -> None:
    node = await living(ALL)
    await node.one_pass()
    for _ in range(4):
        node.world.firewalld.bind(FABRIC, "drop")
        assert (await node.one_pass())["firewall"].condition == "ok"
        await node.world.clock.sleep(40)


@virtual
async def test_what_is_wanted_otherwise_is_no_drift() -> None:
    node = await living(ALL)
    await node.one_pass()
    resource, desired = ALL.pairs[2]
    assert isinstance(desired, network.Desired)
    other = (resource, replace(desired, profile=replace(OURS, mtu=1500)))
    await node.settings.tend(Orders(), (*ALL.pairs[:2], other))
    assert node.settings.history[-1].by == "strixd"


@virtual
async def test_a_full_disk_stops_a_change_before_its_first_step() -> None:
    node = await living(replace(ALL, start=fresh))
    before = node.world.snapshot()
    node.world.disk.full = True
    views = await node.one_pass()
    assert "No space left on device" in views["cmdline"].why
    assert node.world.snapshot() == before


@pytest.mark.parametrize("text", ["", "{", "[1]", '[{"id": "x"}]', "[" * 100_000, '{"parts": []}', "null"])
@virtual
async def test_a_record_that_is_none_of_ours_is_passed_over(text: str) -> None:
    node = await living(ALL)
    for path in (record.CHANGE, record.HISTORY):
        node.world.disk.files[path] = text
    await node.settings.load()
    await node.one_pass()
    assert [each.outcome for each in node.settings.history] == ["done"]


@pytest.mark.parametrize("jump", [-3600.0, 3600.0])
@virtual
async def test_a_clock_that_is_set_during_a_change_ends_no_patience(jump: float) -> None:
    world, calls = await begun(LEASED), count()
    clock = simulated_host(world).now
    host = replace(simulated_host(world), now=lambda: clock() + jump * (next(calls) % 2))
    settings = Settings(host, lambda name, doing, step: None)
    nic = world.network.nics[MANAGEMENT]
    whole = nic.link
    world.clock.after(0.1, lambda: setattr(nic, "link", replace(whole, addresses=())))
    world.clock.after(2.0, lambda: setattr(nic, "link", whole))
    await settings.tend(Orders(), ALL.pairs)
    assert [each.outcome for each in settings.history] == ["done"]


def test_a_long_history_keeps_what_takes_strixd_back_to_the_beginning() -> None:
    part = record.Part("cmdline", StepView("do", "take back", "now"), None)
    change = record.Change("", 1.0, "drift", "b", FABRIC, (part,), ended=2.0, outcome="done")
    history: tuple[record.Change, ...] = ()
    for number in range(3 * record.KEPT):
        by = "uid 0: apply" if number % 100 == 0 else "drift"
        outcome: Outcome = "undone" if number % 3 == 1 else "done"
        history = record.with_change(history, replace(change, id=str(number), by=by, outcome=outcome))
    assert len(history) == record.KEPT
    assert [each.id for each in history if each.by != "drift"] == ["0", "200"]
    assert [int(each.id) for each in history] == sorted(int(each.id) for each in history)
    assert history[-1].id == str(3 * record.KEPT - 1)


@pytest.mark.parametrize(
    ("link", "outcome"),
    [
        (Link("veth1", "02:00:00:00:00:09", carrier=True), "done"),
        (Link("veth1", "02:00:00:00:00:09", carrier=True, addresses=("10.9.0.1/24",)), "failed"),
        (Link("br0p1", "02:00:00:00:00:09", "igc", True), "failed"),
    ],
)
@virtual
async def test_a_container_that_ends_during_a_change_takes_no_way_into_the_host_away(link: Link, outcome: str) -> None:
    node = await living(ALL)
    node.world.network.add(link)
    node.world.clock.after(0.1, lambda: operator.delitem(node.world.network.nics, link.name))
    await node.one_pass()
    assert [each.outcome for each in node.settings.history] == [outcome]


@virtual
async def test_kernels_that_are_installed_one_after_the_other_are_no_fight() -> None:
    node = await living(ALL)
    await node.one_pass()
    for number in range(4):
        node.world.install_kernel(f"6.19.{number}", "ro quiet")
        assert (await node.one_pass())["cmdline"].condition == "reboot"
    assert all("iommu=pt" in entry.options for entry in node.world.boot_files.content.entries if not entry.rescue)
