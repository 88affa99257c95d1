"""Where the nodes' packages come from while they are installed: is all of it on the medium? Pure.

Beside a source that is named Anaconda turns on no repository of its own, neither Fedora's nor its updates
(pyanaconda/modules/payloads/payload/dnf/initialization.py, `_load_source`: it does so for the closest mirror only),
and a package of %packages that lacks something ends the installation. No DVD of Fedora's holds all that strixd needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from strixd.decode import listed
from strixd.media.capability import Capability, Package, Rich, atoms, holds, meets, read

WANTED: Final = ("chrony", "firewalld", "NetworkManager", "openssh-server", "podman", "strixd", "strixd-selinux")
"""What %packages in kickstart/cluster.ks names, beside Fedora's @core."""
COMPLETE: Final = "strixd/complete"
"""A file of the medium, there when nothing is missing: kickstart/pick.sh then asks no mirror."""
_PROVIDED_BY_RPM = "rpmlib("


@dataclass(frozen=True, slots=True)
class Supply:
    """`words`: for whoever makes the medium; `hint`: what would bring the rest, "" for nothing."""

    complete: bool
    words: str
    hint: str = ""


def supply(repository: str, own: Sequence[Package], dvd: Sequence[Package]) -> Supply:
    """`repository`: [install] repository; `own`: of --rpms; `dvd`: on the image, none on one without packages."""
    if repository:
        return Supply(False, f"The nodes get Fedora's packages from {repository} while they are installed.")
    if not dvd:
        words = "The nodes need the internet while they are installed: Fedora's packages come from its mirrors."
        return Supply(False, words)
    lacks = missing(WANTED, own, dvd)
    if not lacks:
        words = "The nodes need no internet while they are installed; the packages are as old as the image and --rpms."
        return Supply(True, words, "dnf upgrade --refresh, on an installed node, brings newer ones")
    asked = " ".join(f"'{each}'" for each in lacks)
    words = f"The nodes need the internet while they are installed: this medium has no {listed(lacks)}."
    return Supply(False, words, f"with these among --rpms they do not: dnf download --resolve --alldeps {asked}")


def missing(names: Iterable[str], own: Sequence[Package], others: Sequence[Package]) -> tuple[str, ...]:
    """What no package meets of what these names need, and what of `own` they lead to. `others` need only each other."""
    providers: dict[str, list[tuple[Capability, Package | None]]] = {}
    for held, packages in ((True, own), (False, others)):
        for package in packages:
            for each in package.provides:
                providers.setdefault(each.name, []).append((each, package if held else None))
    lacks, seen, ahead = set(), set(), [Capability(name) for name in names]
    while ahead:
        wanted = ahead.pop()
        if wanted in seen or wanted.name.startswith(_PROVIDED_BY_RPM):
            continue
        seen.add(wanted)
        meant = read(wanted)
        if not _available(meant, providers):
            lacks.add(str(wanted))
        ahead += [more for package in _led_to(meant, providers) for more in package.requires]
    return tuple(sorted(lacks))


_Providers = dict[str, list[tuple[Capability, Package | None]]]


def _available(meant: Capability | Rich, providers: _Providers) -> bool:
    return holds(meant, lambda one: any(meets(each, one) for each, _ in providers.get(one.name, ())))


def _led_to(meant: Capability | Rich, providers: _Providers) -> list[Package]:
    found = ((one, pair) for one in atoms(meant) for pair in providers.get(one.name, ()))
    return [package for one, (each, package) in found if package and meets(each, one)]
