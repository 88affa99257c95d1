"""Which of a host's links is the fabric: the one that the file names by interface, MAC or driver.

Interface names are per node and change; nothing here guesses or falls back to another name.
"""

from __future__ import annotations

from dataclasses import dataclass

from strixd.ports import Link


@dataclass(frozen=True, slots=True)
class Fabric:
    """How the file names the fabric link of a node; exactly one is set."""

    interface: str = ""
    mac: str = ""
    driver: str = ""

    def __str__(self) -> str:
        if self.interface:
            return f"interface {self.interface}"
        return f"the card with MAC {self.mac}" if self.mac else f"the card of driver {self.driver}"


@dataclass(frozen=True, slots=True)
class Pick:
    """The link, or why there is none."""

    link: Link | None = None
    why: str = ""


def pick(fabric: Fabric, links: tuple[Link, ...], *, management: tuple[str, ...] = ()) -> Pick:
    """The one link that matches. A link that carries the management path is taken only if named outright."""
    found = [link for link in links if _matches(fabric, link)]
    if not found:
        there = ", ".join(sorted(link.name for link in links if link.name != "lo")) or "none"
        return Pick(why=f"no link is {fabric}; links here: {there}")
    if len(found) > 1:
        names = " and ".join(sorted(link.name for link in found))
        return Pick(why=f"{fabric} fits {names}; name one of them in cluster.toml with interface or mac")
    link = found[0]
    if link.name in management:
        return Pick(why=f"{link.name} is listed in fabric.management and is never touched")
    if link.default_route and not fabric.interface:
        return Pick(why=f"{link.name} holds the default route; to use it all the same, name it with interface")
    return Pick(link)


def _matches(fabric: Fabric, link: Link) -> bool:
    if fabric.interface:
        return link.name == fabric.interface
    if fabric.mac:
        return link.mac == fabric.mac
    return link.driver == fabric.driver
