"""Kernel arguments: in every boot entry but rescue ones, in what later kernels copy, and on the kernel that runs.

Written, running and effective are three facts; between the first two stands a reboot. What strixd set is recorded,
because it takes out only that, and what the policy replaces outright.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from strixd import kernelargs
from strixd.kernelpolicy import PAGE, Policy, arguments
from strixd.plan import Effect, Plan, Step, unguarded
from strixd.ports import DEFAULT_GRUB, KERNEL_CMDLINE, Boot, Effects, Host
from strixd.resources import effect, reboots

RECORD = "/var/lib/strixd/cmdline.json"


@dataclass(frozen=True, slots=True)
class Desired:
    """`add`: arguments to be in force; `replaces`: others' arguments that contradict them ("key" or "key=value");
    `expected`: what they are for. `retry_after`: when the last apply came; reboots before do not count."""

    add: tuple[str, ...]
    replaces: tuple[str, ...] = ()
    expected: effect.Expected = effect.NOTHING
    reboot: Literal["never", "auto"] = "never"
    retry_after: float = 0.0


def desired_arguments(policy: Policy, retry_after: float = 0.0) -> Desired:
    """ttm.pages_limit decides; an amdgpu.gttsize of an earlier setup only contradicts it."""
    instead = {"pt": ("amd_iommu=off",), "off": ("iommu=pt",), "leave": ()}[policy.iommu]
    replaces = (*instead, *(() if policy.gttsize_mib else ("amdgpu.gttsize",)))
    expected = effect.Expected(policy.iommu, policy.gtt_pages * PAGE, policy.pcie_aspm)
    return Desired(arguments(policy), replaces, expected, policy.reboot, retry_after)


def wanted(text: str, desired: Desired, recorded: tuple[str, ...]) -> str:
    """This command line as it should read."""
    return kernelargs.edited(text, add=desired.add, drop=(*desired.replaces, *_stale(desired, recorded)))


def _ours(desired: Desired) -> tuple[str, ...]:
    return tuple(marker for argument in desired.add for marker in kernelargs.markers(argument))


def _stale(desired: Desired, recorded: tuple[str, ...]) -> tuple[str, ...]:
    """Set by us earlier, and not asked for any more."""
    ours = _ours(desired)
    return tuple(marker for marker in recorded if marker not in ours)


@dataclass(frozen=True, slots=True)
class Change:
    """One command line: `place` is the name of a boot entry or the path of a file."""

    place: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class SetArguments:
    """Make command lines read as `after`; each knows what it was. `others`: entries that read so already, and are
    none of this step's. An entry of neither kind is a kernel that was installed since: it copied one of the lines."""

    effect: ClassVar[Effect] = Effect.REBOOT
    changes: tuple[Change, ...]
    others: tuple[str, ...] = ()

    def __str__(self) -> str:
        differences = [kernelargs.difference(change.before, change.after) for change in self.changes]
        came = " ".join(dict.fromkeys(word for new, _ in differences for word in new))
        went = " ".join(dict.fromkeys(word for _, old in differences for word in old))
        words = [f"set {came}" if came else "", f"take out {went}" if went else ""]
        return f"kernel arguments: {', '.join(filter(None, words))} in {_places(self.changes)}"

    def undo(self) -> Step:
        back = tuple(Change(change.place, change.after, change.before) for change in self.changes)
        return SetArguments(back, self.others)

    async def apply(self, host: Host) -> None:
        lines = now_reading(self, _lines(await host.boot.read()))
        if lines:
            await host.boot.change(lines)


def now_reading(step: SetArguments, lines: Mapping[str, str]) -> Mapping[str, str]:
    """Which of these lines (by place) the step changes, and into what: it may be taken days after it was planned, when
    kernels have come and gone and others have edited too."""
    changes = {change.place: change for change in step.changes}
    copied = changes.get(KERNEL_CMDLINE) or next(iter(step.changes))
    own = (KERNEL_CMDLINE, DEFAULT_GRUB, *step.others)
    then = {}
    for place, text in lines.items():
        change = changes.get(place) or (None if place in own else copied)
        then[place] = kernelargs.carried(text, change.before, change.after) if change else text
    return {place: text for place, text in then.items() if text != lines[place]}


def _places(changes: tuple[Change, ...]) -> str:
    files = [change.place for change in changes if change.place.startswith("/")]
    entries = len(changes) - len(files)
    return ", ".join([f"{entries} boot {'entry' if entries == 1 else 'entries'}"] * bool(entries) + files)


@dataclass(frozen=True, slots=True)
class Remember:
    """Write down which arguments are of our setting; before they are set, and until they are gone."""

    effect: ClassVar[Effect] = Effect.NOW
    markers: tuple[str, ...]
    before: tuple[str, ...]

    def __str__(self) -> str:
        return f"record as set by strixd: {' '.join(self.markers) or 'nothing'}"

    def undo(self) -> Step:
        return Remember(self.before, self.markers)

    async def apply(self, host: Host) -> None:
        if self.markers:
            await host.files.write(RECORD, json.dumps({"keys": self.markers}, indent=1) + "\n")
        else:
            await host.files.remove(RECORD)


def recorded_in(text: str | None) -> tuple[str, ...]:
    """A record that cannot be read proves nothing: then nothing is ours."""
    try:
        record = json.loads(text or "{}")
    except ValueError:
        return ()
    keys = record.get("keys", ()) if isinstance(record, dict) else ()
    return tuple(sorted({key for key in keys if isinstance(key, str)} if isinstance(keys, list) else ()))


@dataclass(frozen=True, slots=True)
class Observed:
    """`boot_id`: of the running kernel; `attempts`: reboots that strixd asked for."""

    boot: Boot
    effects: Effects
    boot_id: str
    recorded: tuple[str, ...] = ()
    attempts: tuple[reboots.Attempt, ...] = ()


class Cmdline:
    name: ClassVar[str] = "cmdline"
    settle: ClassVar[float] = 1.0
    supervised: ClassVar[bool] = False
    guard = staticmethod(unguarded)

    def needs(self, desired: Desired) -> tuple[str, ...]:
        return ()

    async def observe(self, host: Host, desired: Desired) -> Observed:
        return Observed(
            boot=await host.boot.read(),
            effects=await host.kernel.effects(),
            boot_id=host.identity.boot,
            recorded=recorded_in(await host.files.read(RECORD)),
            attempts=reboots.attempts_in(await host.files.read(reboots.RECORD)),
        )

    def plan(self, desired: Desired, observed: Observed) -> Plan:
        boot, recorded = observed.boot, observed.recorded
        facts = _facts(desired, observed)
        pending = _pending(desired, observed)
        if pending and not (boot.tool and any(not entry.rescue for entry in boot.entries)):
            return _blocked(self.name, desired, boot, facts)
        changes = tuple(_changes(desired, observed)) if boot.tool else ()
        first, last = _records(desired, observed, changes)
        steps: tuple[Step, ...] = (Remember(first, recorded),) if first != recorded else ()
        steps += (SetArguments(changes, _others(boot, changes)),) if changes else ()
        steps += (Remember(last, first),) if last != first else ()
        if pending:
            return _pending_plan(self.name, desired, observed, pending, steps)
        if short := effect.shortfalls(desired.expected, observed.effects):
            why = f"configured and running, not effective: {'; '.join(map(str, short))}"
            hint = "; ".join(dict.fromkeys(each.remedy for each in short))
            return Plan(self.name, steps, "ineffective", why, hint, facts)
        return Plan(self.name, steps, facts=facts)


def _pending_plan(name: str, desired: Desired, observed: Observed, pending: str, steps: tuple[Step, ...]) -> Plan:
    facts = _facts(desired, observed)
    made = reboots.done(observed.attempts, asked(desired), observed.boot_id, since=desired.retry_after)
    if len(made) < reboots.MOST:
        why = f"configured, not yet running: {pending}; reboot to make it true"
        return Plan(name, steps, "reboot", why, "systemctl reboot", facts)
    why = f"rebooted {len(made)} times, and the running kernel still differs: {pending}"
    hint = (
        "compare what has booted with strixd's entry: cat /proc/cmdline; grubby --info=DEFAULT; then strixd-cli apply"
    )
    return Plan(name, steps, "stuck", why, hint, facts)


def asked(desired: Desired) -> str:
    """For what a reboot is: the same words, the same arguments."""
    return " ".join((*desired.add, *(f"-{each}" for each in desired.replaces)))


def _blocked(name: str, desired: Desired, boot: Boot, facts: tuple[str, ...]) -> Plan:
    why = "no boot entries in /boot/loader/entries" if boot.tool else "no grubby on this host"
    hint = f"set by hand, and reboot: {' '.join(desired.add)}"
    return Plan(name, condition="blocked", why=why, hint=hint, facts=facts)


def _lines(boot: Boot) -> Mapping[str, str]:
    """Every command line that is ours to keep, by its place."""
    entries = {entry.name: entry.options for entry in boot.entries if not entry.rescue}
    files = {KERNEL_CMDLINE: boot.kernel_cmdline, DEFAULT_GRUB: boot.default_grub}
    return entries | {place: text for place, text in files.items() if text is not None}


def _changes(desired: Desired, observed: Observed) -> Iterator[Change]:
    for place, text in _lines(observed.boot).items():
        after = wanted(text, desired, observed.recorded)
        if after != text:
            yield Change(place, text, after)


def _others(boot: Boot, changes: tuple[Change, ...]) -> tuple[str, ...]:
    changed = {change.place for change in changes}
    return tuple(entry.name for entry in boot.entries if not entry.rescue and entry.name not in changed)


def _records(
    desired: Desired, observed: Observed, changes: tuple[Change, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(before the change, after it). Ours is what we had to set; what is no longer asked for stays on record until the
    running kernel is rid of it too. Without a tool nothing is of our setting."""
    recorded, ours = set(observed.recorded), set(_ours(desired))
    fresh = {marker for change in changes for marker in ours if _brings(change, marker)}
    running = {marker for marker in recorded - ours if _has(observed.boot.running, marker)}
    return tuple(sorted(recorded | fresh)), tuple(sorted(recorded & ours | fresh | running))


def _brings(change: Change, marker: str) -> bool:
    """Taking it out makes a difference afterwards that it did not make before, or its value is another."""
    name = marker.partition(":")[0]
    came = {kernelargs.key(word) for word in kernelargs.difference(change.before, change.after)[0]}
    return name in came and (":" not in marker or not _has(change.before, marker))


def _has(text: str, marker: str) -> bool:
    return kernelargs.edited(text, add=(), drop=(marker,)) != text


def _pending(desired: Desired, observed: Observed) -> str:
    """What the running kernel lacks, and what it still has."""
    running = observed.boot.running
    came, went = kernelargs.difference(running, wanted(running, desired, observed.recorded))
    replaced = {kernelargs.key(word) for word in came}
    gone = [word for word in went if kernelargs.key(word) not in replaced]
    return " ".join((*came, *(f"(still {word})" for word in gone)))


def _facts(desired: Desired, observed: Observed) -> tuple[str, ...]:
    boot = observed.boot
    keys = {kernelargs.key(argument) for argument in desired.add}
    running = " ".join(word for word in kernelargs.parts(boot.running)[0] if kernelargs.key(word) in keys)
    lines = _lines(boot)
    agreeing = sum(wanted(text, desired, observed.recorded) == text for text in lines.values())
    return (
        f"running with {running or 'none of the wanted kernel arguments'}",
        f"{agreeing} of {len(lines)} boot entries and files have them all" if lines else "no boot entries to be seen",
        *effect.facts(desired.expected, observed.effects),
    )
