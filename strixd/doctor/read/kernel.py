"""The running kernel: its version, its arguments, what they led to, and what its modules are told by whom."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

from strixd import kernelargs
from strixd.doctor.facts import Modules, Option
from strixd.doctor.gather import Scene
from strixd.doctor.read.programs import journal
from strixd.errors import Unavailable
from strixd.host.bootloader import Grubby
from strixd.host.effects import Sysfs
from strixd.host.files import read_text
from strixd.ports import Effects
from strixd.resources import cmdline, reboots

OPTIONS = ("/etc/modprobe.d", "/run/modprobe.d", "/usr/local/lib/modprobe.d", "/usr/lib/modprobe.d", "/lib/modprobe.d")
"""modprobe.d(5); a file of the same name in an earlier one replaces it."""
RUNNING = "the kernel command line"
_BARRING = ("modprobe.blacklist", "module_blacklist", "rd.driver.blacklist")
_SAYS = "unknown parameter|Unknown kernel command line parameters|Linux version"


def release(scene: Scene) -> str:
    return scene.path("/proc/sys/kernel/osrelease").read_text().strip()


def effects(scene: Scene) -> Effects:
    return asyncio.run(Sysfs(scene.root).effects())


def boot(scene: Scene) -> cmdline.Observed:
    """As the daemon observes it."""
    return cmdline.Observed(
        boot=asyncio.run(Grubby(scene.root).read()),
        effects=Effects(),  # judged by a check of its own
        boot_id=scene.path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        recorded=cmdline.recorded_in(read_text(str(scene.path(cmdline.RECORD)))),
        attempts=reboots.attempts_in(read_text(str(scene.path(reboots.RECORD)))),
    )


def modules(scene: Scene) -> Modules:
    running = kernelargs.parts(scene.path("/proc/cmdline").read_text())[0]
    files = _files(scene)
    options = (*(each for file in files for each in _options(scene, file)), *_from_line(running))
    barred = (*(each for file in files for each in _barred(scene, file)), *_barred_by_line(running))
    effective = {f"{each.module}.{each.parameter}": _value(scene, each) for each in options}
    return Modules(options, barred, {name: value for name, value in effective.items() if value is not None})


def ignored() -> tuple[str, ...]:
    """The kernel's words about arguments that nobody knows. It always says its version: a journal without that has
    none of its words. Raises Unavailable."""
    lines = list(journal(_SAYS, "-k"))
    if not any("Linux version" in line for line in lines):
        raise Unavailable("the journal has no kernel messages of this boot")
    return tuple(dict.fromkeys(line for line in lines if "nknown" in line))


def _files(scene: Scene) -> list[Path]:
    """By name, as modprobe takes them."""
    named: dict[str, Path] = {}
    for folder in OPTIONS:
        for path in scene.path(folder).glob("*.conf"):
            named.setdefault(path.name, path)
    return [named[name] for name in sorted(named)]


def _lines(scene: Scene, path: Path) -> Iterator[tuple[str, list[str]]]:
    """(place, words) of each line that says something; a backslash joins it with the next."""
    place, before = "/" + str(path.relative_to(scene.root)), ""
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        if line.endswith("\\"):
            before += f"{line[:-1]} "
            continue
        if words := (before + line).partition("#")[0].split():
            yield f"{place}:{number}", words
        before = ""


def _options(scene: Scene, path: Path) -> Iterator[Option]:
    for place, words in _lines(scene, path):
        for word in words[2:] if words[0] == "options" and len(words) > 2 else ():
            yield Option(place, _plain(words[1]), _plain(kernelargs.key(word)), kernelargs.value(word))


def _from_line(running: list[str]) -> Iterator[Option]:
    for word in running:
        module, dot, parameter = kernelargs.key(word).partition(".")
        if dot and re.fullmatch("[a-z0-9_]+", module) and "=" in word:
            yield Option(RUNNING, module, parameter, kernelargs.value(word))


def _barred(scene: Scene, path: Path) -> Iterator[tuple[str, str]]:
    """`install MODULE /bin/true` (or false) bars it as well."""
    for place, words in _lines(scene, path):
        stubbed = words[0] == "install" and len(words) > 2 and words[2].endswith(("/true", "/false"))
        if (words[0] == "blacklist" or stubbed) and len(words) > 1:
            yield place, _plain(words[1])


def _barred_by_line(running: list[str]) -> Iterator[tuple[str, str]]:
    for word in running:
        if kernelargs.key(word) in _BARRING:
            yield from ((RUNNING, _plain(name)) for name in kernelargs.value(word).split(","))


def _value(scene: Scene, option: Option) -> str | None:
    text = read_text(str(scene.path(f"/sys/module/{option.module}/parameters/{option.parameter}")))
    return None if text is None else text.strip()


def _plain(name: str) -> str:
    """To the kernel a dash in the name of a module or parameter is an underscore."""
    return name.replace("-", "_")
