"""The cmdline resource on the simulated node: what it plans, takes back, records and says."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import ClassVar

import pytest

from strixd.engine.transaction import Look, Outcome, transact
from strixd.errors import Rejected
from strixd.kernelpolicy import Policy
from strixd.plan import Effect, Plan, Step
from strixd.ports import Boot, BootEntry, Host
from strixd.resources.cmdline import RECORD, Cmdline, Desired, SetArguments, desired_arguments, recorded_in
from strixd.sim import World, simulated_host

GUIDE = desired_arguments(Policy(gtt_pages=32505856, gttsize_mib=126976))
LEAVE = desired_arguments(Policy(iommu="leave", pci_realloc=False, pcie_aspm="leave"))
CMDLINE = Cmdline()


def _plan(host: Host, desired: Desired) -> Plan:
    return CMDLINE.plan(desired, asyncio.run(CMDLINE.observe(host, desired)))


def _apply(host: Host, desired: Desired) -> Outcome:
    return asyncio.run(transact((Look(CMDLINE, desired, _plan(host, desired)),), host, _quiet))


def _quiet(_name: str, _doing: str, _step: Step) -> None:
    pass


def _boot(world: World) -> Boot:
    return world.boot_files.content


def _set(world: World, **changes: object) -> None:
    world.boot_files.content = replace(_boot(world), **changes)  # type: ignore[arg-type]


def _run_what_is_written(world: World) -> None:
    _set(world, running=f"BOOT_IMAGE=x {_boot(world).entries[0].options}")


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def host(world: World) -> Host:
    return simulated_host(world)


def test_a_fresh_host_gets_the_arguments_and_then_waits_for_a_reboot(world: World, host: Host) -> None:
    outcome = _apply(host, GUIDE)
    assert outcome.failure is None
    assert (outcome.plans["cmdline"].steps, outcome.plans["cmdline"].condition) == ((), "reboot")
    assert outcome.plans["cmdline"].why.startswith("configured, not yet running: iommu=pt pci=realloc")
    assert outcome.plans["cmdline"].why.endswith("; reboot to make it true")
    for entry in _boot(world).entries:
        assert ("iommu=pt" in entry.options) is not entry.rescue
    _run_what_is_written(world)
    plan = _plan(host, GUIDE)
    assert (plan.steps, plan.condition, plan.why) == ((), "ok", "")


def test_the_steps_are_said_in_words(host: Host) -> None:
    texts = [str(step) for step in _plan(host, GUIDE).steps]
    assert texts[0] == "record as set by strixd: amdgpu.gttsize iommu pci:realloc pcie_aspm ttm.pages_limit"
    assert texts[1].startswith("kernel arguments: set iommu=pt pci=realloc pcie_aspm=off amdgpu.gttsize=126976")
    assert texts[1].endswith(" in 2 boot entries, /etc/kernel/cmdline, /etc/default/grub")


def test_a_new_kernel_without_them_is_mended(world: World, host: Host) -> None:
    _apply(host, GUIDE)
    _run_what_is_written(world)
    _set(world, entries=(BootEntry("6.19.0", "root=UUID=5e3f ro quiet"), *_boot(world).entries))
    (step,) = _plan(host, GUIDE).steps
    assert isinstance(step, SetArguments)
    assert [change.place for change in step.changes] == ["6.19.0"]
    assert _apply(host, GUIDE).plans["cmdline"].condition == "ok"


def test_a_failure_leaves_everything_as_it_was(world: World, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    _set(world, entries=(BootEntry("b", "quiet pci=noaer"), BootEntry("a", "amd_iommu=off  ro"), *_boot(world).entries))
    before = _boot(world)
    plan = _plan(host, GUIDE)

    class Refusing:
        effect: ClassVar[Effect] = Effect.NOW

        def undo(self) -> Step | None:
            return None

        async def apply(self, host: Host) -> None:
            raise Rejected("Cannot do this: no")

    outcome = asyncio.run(
        transact((Look(CMDLINE, GUIDE, replace(plan, steps=(*plan.steps, Refusing()))),), host, _quiet)
    )
    assert isinstance(outcome.failure, Rejected)
    assert outcome.undone
    assert _boot(world) == before
    assert RECORD not in world.disk.files


def test_only_what_strixd_set_is_taken_out_again(world: World, host: Host) -> None:
    foreign = tuple(
        entry if entry.rescue else replace(entry, options="ro pci=noaer iommu=soft quiet")
        for entry in _boot(world).entries
    )
    _set(world, entries=foreign, kernel_cmdline="ro pci=noaer iommu=soft quiet", default_grub="quiet")
    wanted = desired_arguments(Policy(iommu="leave", gtt_pages=7, pcie_aspm="leave"))
    _apply(host, wanted)
    _run_what_is_written(world)
    assert _boot(world).entries[0].options == "ro pci=noaer,realloc iommu=soft quiet ttm.pages_limit=7"
    outcome = _apply(host, LEAVE)
    assert _boot(world).entries[0].options == "ro pci=noaer iommu=soft quiet"
    assert _boot(world).default_grub == "quiet"
    assert "not yet running: pci=noaer (still ttm.pages_limit=7);" in outcome.plans["cmdline"].why
    _run_what_is_written(world)
    assert _apply(host, LEAVE).plans["cmdline"] == _plan(host, LEAVE)
    assert RECORD not in world.disk.files
    assert _plan(host, LEAVE).condition == "ok"


def test_what_was_there_before_strixd_is_not_of_its_setting(world: World, host: Host) -> None:
    words = " ".join(GUIDE.add)
    _set(
        world,
        entries=(BootEntry("k", f"ro {words}"),),
        kernel_cmdline=words,
        default_grub=words,
        running=f"ro {words}",
    )
    assert _plan(host, GUIDE).steps == ()
    assert RECORD not in world.disk.files


def test_no_grubby(world: World, host: Host) -> None:
    _set(world, tool="", entries=())
    plan = _plan(host, GUIDE)
    assert (plan.steps, plan.condition, plan.why) == ((), "blocked", "no grubby on this host")
    assert "iommu=pt" in plan.hint


def test_no_grubby_is_no_matter_where_everything_runs(world: World, host: Host) -> None:
    _set(world, tool="", running=" ".join(GUIDE.add))
    assert _plan(host, GUIDE).condition == "ok"


def test_grubby_without_boot_entries(world: World, host: Host) -> None:
    _set(world, entries=())
    assert _plan(host, GUIDE).why == "no boot entries in /boot/loader/entries"


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"keys": 7}', '{"keys": [7]}', "\ufffd"])
def test_a_record_that_cannot_be_read_proves_nothing(text: str | None) -> None:
    assert recorded_in(text) == ()


def _step(host: Host) -> SetArguments:
    return next(step for step in _plan(host, GUIDE).steps if isinstance(step, SetArguments))


def test_undone_later_it_cleans_a_kernel_that_was_installed_since_too(world: World, host: Host) -> None:
    before, step = _boot(world), _step(host)
    _apply(host, GUIDE)
    copied = _boot(world).kernel_cmdline
    _set(world, entries=(BootEntry("6.19.0", f"{copied} late"), *_boot(world).entries))
    asyncio.run(step.undo().apply(host))
    newest, *older = _boot(world).entries
    assert newest.options == f"{before.kernel_cmdline} late"
    assert (tuple(older), _boot(world).kernel_cmdline, _boot(world).default_grub) == (
        before.entries,
        before.kernel_cmdline,
        before.default_grub,
    )


def test_an_entry_that_had_it_all_before_keeps_it(world: World, host: Host) -> None:
    own = BootEntry("by hand", f"ro {' '.join(GUIDE.add)}")
    _set(world, entries=(own, *_boot(world).entries))
    step = _step(host)
    assert step.others == ("by hand",)
    asyncio.run(step.apply(host))
    asyncio.run(step.undo().apply(host))
    assert _boot(world).entries[0] == own


def test_what_others_edited_between_looking_and_writing_stays(world: World, host: Host) -> None:
    step = _step(host)
    new, old, rescue = _boot(world).entries
    _set(world, entries=(replace(new, options=f"{new.options} debug"), rescue))  # and the old kernel is gone
    asyncio.run(step.apply(host))
    assert [entry.name for entry in _boot(world).entries] == [new.name, rescue.name]
    assert _boot(world).entries[0].options == f"{new.options} debug {' '.join(GUIDE.add)}"
    assert old.name not in str(world.calls.writes[-1])


def test_a_change_that_holds_already_is_not_written_again(world: World, host: Host) -> None:
    step = _step(host)
    asyncio.run(step.apply(host))
    writes = len(world.calls.writes)
    asyncio.run(step.apply(host))
    assert len(world.calls.writes) == writes
