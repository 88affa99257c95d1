"""The kernel: version, arguments (configured, running, effective), and what else speaks to its modules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from strixd import kernelargs
from strixd.desired import derive
from strixd.doctor.facts import Graphics, Modules, Own
from strixd.doctor.finding import Check, Judged, Verdict
from strixd.doctor.known import Known, older, same
from strixd.orders import Orders
from strixd.plan import Plan
from strixd.ports import Effects
from strixd.resources import cmdline, effect

_CONDITIONS: Mapping[str, Verdict] = {"ok": "ok", "waiting": "warning", "blocked": "warning"}
_LEFTOVERS: Mapping[str, str] = {
    "nomodeset": "no GPU driver takes the card",
    "mem": "the kernel uses only a part of the memory",
    "maxcpus": "the kernel uses only some of the processors",
    "nosmp": "the kernel uses only one processor",
}
"""What people leave on the command line after trying something, and what it does."""
_NEEDED = ("amdgpu", "ice", "irdma", "thunderbolt", "thunderbolt_net")
_REMOVE = "grubby --update-kernel=ALL --remove-args={}; then systemctl reboot"


def version(release: str, graphics: Graphics, known: Known) -> Judged | None:
    if not graphics.pci:
        return None
    wanted, mend = f"{known.kernel.least} or later", "dnf upgrade kernel && systemctl reboot"
    if any(same(release, bad) for bad in known.kernel.bad):
        return Judged("fault", f"{release}, a version that is known to be bad", mend, wanted)
    return Judged("fault", release, mend, wanted) if older(release, known.kernel.least) else Judged("ok", release)


def arguments(boot: cmdline.Observed, own: Own, orders: Orders) -> Judged:
    plan = _plan(boot, own, orders)
    wanted = " ".join(_desired(own, orders).add)
    if plan.condition == "ok" and not plan.steps:
        return Judged("ok", "; ".join(plan.facts), "", wanted)
    read = plan.why or f"to do: {plan.steps[0]}"
    verdict = "warning" if plan.condition == "ok" else _CONDITIONS.get(plan.condition, "fault")
    return Judged(verdict, read, plan.hint or "strixd-cli apply", wanted)


def _desired(own: Own, orders: Orders) -> cmdline.Desired:
    return derive(own.config, own.node, orders).cmdline


def _plan(boot: cmdline.Observed, own: Own, orders: Orders) -> Plan:
    """Of a pass, but for the effect."""
    return cmdline.Cmdline().plan(replace(_desired(own, orders), expected=effect.NOTHING), boot)


def effective(effects: Effects, boot: cmdline.Observed, own: Own, orders: Orders) -> Judged:
    """What does not run has no effect yet: that is no fault of its own. The carve-out has a check of its own."""
    expected = _desired(own, orders).expected
    short = [each for each in effect.shortfalls(expected, effects) if "vram" not in each.read]
    if not short:
        return Judged("ok", "; ".join(effect.facts(expected, effects)) or "nothing is expected of them")
    words, mend = "; ".join(map(str, short)), "; ".join(dict.fromkeys(each.remedy for each in short))
    if _plan(boot, own, orders).condition == "ok":
        return Judged("fault", words, mend)
    return Judged("warning", f"{words}; not all arguments run yet", mend)


def conflicts(modules: Modules) -> Judged:
    """Two places that set one parameter of a module to different values: which one wins depends on when the module is
    loaded, and from where."""
    found = list(_conflicts(modules))
    if not found:
        return Judged("ok", f"{len(modules.options)} parameters of modules are set, none of them twice")
    words = "; ".join(text for text, _ in found)
    return Judged("warning", words, " and ".join(dict.fromkeys(mend for _, mend in found)))


def _conflicts(modules: Modules) -> Iterator[tuple[str, str]]:
    names = dict.fromkeys((each.module, each.parameter) for each in modules.options)
    for name in names:
        setting = [each for each in modules.options if (each.module, each.parameter) == name]
        if len({each.value for each in setting}) < 2:
            continue
        spelled = ".".join(name)
        places = ", ".join(f"{each.value} by {each.place}" for each in setting)
        value = modules.effective.get(spelled)
        counts = f"{value} is effective" if value is not None else "the module is not loaded"
        file = next((each.place for each in setting if each.place.startswith("/")), setting[0].place)
        yield f"{spelled}: {places}; {counts}", f"take {spelled} out of {file}"


def parameters(ignored: tuple[str, ...], own: Own, orders: Orders) -> Judged:
    """Those that no module and no part of the kernel takes. What the kernel hands to the first program is often meant
    for it: there only what strixd sets counts."""
    ours = {kernelargs.key(each) for each in _desired(own, orders).add}
    lines = [line for line in ignored if "command line" not in line or ours & set(_keys(line))]
    if not lines:
        return Judged("ok", "the kernel complains of none")
    return Judged("warning", "; ".join(lines), "modinfo -p MODULE lists the parameters that there are")


def _keys(line: str) -> Iterator[str]:
    return (kernelargs.key(word.strip('",')) for word in line.split())


def leftovers(boot: cmdline.Observed, modules: Modules) -> Judged:
    running = {kernelargs.key(word): word for word in kernelargs.parts(boot.boot.running)[0]}
    found = {running[key]: what for key, what in _LEFTOVERS.items() if key in running}
    barred = {f"{name}, barred by {place}": place for place, name in modules.barred if name in _NEEDED}
    words = [*(f"{word}: {what}" for word, what in found.items()), *(f"the module {each}" for each in barred)]
    if not words:
        return Judged("ok", "none on the kernel command line, and no needed module is barred")
    mends = [_REMOVE.format(word) for word in found] + [
        f"take it out of {place}" for place in dict.fromkeys(barred.values())
    ]
    return Judged("fault", "; ".join(words), "; ".join(mends))


def gpu(graphics: Graphics, own: Own) -> Judged | None:
    if "/dev/kfd" not in own.config.image.devices:
        return None
    if not graphics.pci:
        return Judged("warning", "no AMD GPU on the PCI bus", "lspci -nn; is this the right machine?")
    if not graphics.kfd:
        mend = 'journalctl -k -b -g "amdgpu|kfd" says why; dnf install amd-gpu-firmware'
        return Judged("fault", f"GPU {graphics.pci[0]} has no /dev/kfd: its driver has not taken it", mend)
    count, wanted = len(graphics.targets), own.node.gpus
    read = f"{', '.join(graphics.targets) or 'no'} in /sys/class/kfd, {len(graphics.pci)} on the PCI bus"
    if count < 1:
        return Judged("fault", read, 'journalctl -k -b -g "amdgpu|kfd"', f"{wanted} GPU")
    return Judged("ok", read, "", f"{wanted} GPU")


CHECKS = (
    Check("kernel-version", "kernel", version, "a kernel that drives this GPU", "older ones hang the GPU under load"),
    Check(
        "arguments",
        "kernel",
        arguments,
        "the arguments of [kernel], in every boot entry and on the running kernel",
        "without them the GPU may use half of the memory",
    ),
    Check(
        "conflicts",
        "kernel",
        conflicts,
        "one place for each parameter of a module",
        "which of two values counts changes with the next initramfs",
    ),
    Check(
        "module-parameters",
        "kernel",
        parameters,
        "no argument that nobody knows",
        "a misspelled or abandoned parameter does nothing, silently",
        doubt="ok",
    ),
    Check(
        "leftovers",
        "kernel",
        leftovers,
        "no argument of an earlier trial",
        "such an argument takes away what the model needs",
    ),
    Check("gpu", "kernel", gpu, "the GPU, and its driver for computing", "without it there is nothing to compute on"),
    Check("effective", "kernel", effective, "what the arguments are for", "an argument may run and do nothing"),
)
