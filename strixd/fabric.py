"""Which of a host's links is the fabric: the one that the file names by interface, MAC or driver, or its spare.

Interface names are per node and change; nothing here guesses or falls back to another name.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from ipaddress import ip_interface

from strixd.ports import Link

LINKS = "ip -br link; then name the fabric's card in cluster.toml, and strixd-cli apply"
OWN_NETWORK = "give the nodes addresses of a network of their own in cluster.toml"


@dataclass(frozen=True, slots=True)
class Fabric:
    """How the file names the fabric link of a node: exactly one of interface, MAC and driver is set. `address`: the
    node's own, with prefix; `spare`: how it names the link that is taken while that one has no carrier, None for none.
    `card`: the MAC that our stored profile is bound to, "" while there is none; it finds a named interface that is
    called otherwise now. It is observed, no wish, and so two that differ in it alone are equal."""

    interface: str = ""
    mac: str = ""
    driver: str = ""
    card: str = field(default="", compare=False, repr=False)
    address: str = ""
    spare: Fabric | None = None

    def __str__(self) -> str:
        if self.interface:
            return f"interface {self.interface}"
        return f"the card with MAC {self.mac}" if self.mac else f"the card of driver {self.driver}"


@dataclass(frozen=True, slots=True)
class Pick:
    """The link, or why there is none. `note`: what is remarkable about the link; `spare`: it is the spare one, and
    `note` says why; `other`: of the first link and the spare the one that this is not, where it is there."""

    link: Link | None = None
    why: str = ""
    note: str = ""
    spare: bool = False
    other: Link | None = None


def pick(fabric: Fabric, links: tuple[Link, ...], *, management: tuple[str, ...] = ()) -> Pick:
    """The link in force: the spare as long as that has our address; else the first. Which of the two shall have it,
    resources/network.py alone decides."""
    first, spare = both(fabric, links, management=management)
    moved = spare.link is not None and fabric.address in spare.link.addresses
    return spare if moved and not _serves(fabric, first) else first


def _serves(fabric: Fabric, first: Pick) -> bool:
    """While the address goes from one link to the other, both may have it for a moment."""
    return first.link is not None and first.link.carrier and fabric.address in first.link.addresses


def both(fabric: Fabric, links: tuple[Link, ...], *, management: tuple[str, ...] = ()) -> tuple[Pick, Pick]:
    """The first link and the spare."""
    first = _one(fabric, links, management)
    if fabric.spare is None:
        return first, Pick(why="cluster.toml names no spare link")
    spare = _one(fabric.spare, links, management)
    if spare.link and first.link and spare.link.name == first.link.name:
        return first, Pick(why=f"{spare.link.name} is named as the spare of itself; name another link in cluster.toml")
    note = f"{spare.link.name}, the spare, is in force ({_absent(first)})" if spare.link else ""
    return replace(first, other=spare.link), replace(spare, note=note, spare=True, other=first.link)


def _absent(first: Pick) -> str:
    """Why the first link is not the one in force."""
    if first.link is None:
        return first.why
    name = first.link.name
    return f"{name} has its carrier again: strixd-cli apply takes it" if first.link.carrier else f"no carrier on {name}"


def _one(fabric: Fabric, links: tuple[Link, ...], management: tuple[str, ...]) -> Pick:
    """The one link that matches. A link that carries the management path is taken only if named outright."""
    found = [link for link in links if _matches(fabric, link)]
    card = [link for link in links if fabric.interface and fabric.card and link.mac == fabric.card]
    if found and card and found[0] not in card:
        return Pick(why=_two_cards(found[0], card, fabric.card))
    if not (found or card):
        there = ", ".join(sorted(link.name for link in links if link.name != "lo")) or "none"
        return Pick(why=f"no link is {fabric}; links here: {there}")
    if len(found or card) > 1:
        return Pick(
            why=f"{fabric} fits {_names(found or card)}; name one of them in cluster.toml with interface or mac"
        )
    return _allowed(fabric, (found or card)[0], management)


def _allowed(fabric: Fabric, link: Link, management: tuple[str, ...]) -> Pick:
    if link.name in management:
        return Pick(why=f"{link.name} is listed in fabric.management and is never touched")
    if link.default_route and link.name != fabric.interface:
        return Pick(why=f"{link.name} holds the default route; to use it all the same, name it with interface")
    if fabric.interface in ("", link.name):
        return Pick(link)
    return Pick(link, note=f"{fabric.interface} of the file is called {link.name} now (same card, MAC {link.mac})")


def _two_cards(named: Link, card: list[Link], mac: str) -> str:
    """A name that went to another card meanwhile."""
    earlier = f"{_names(card)} is the card that had it until now (MAC {mac})"
    return f"{named.name} of the file is another card now (MAC {named.mac}), and {earlier}; name one of them with mac"


def _names(links: list[Link]) -> str:
    return " and ".join(sorted(link.name for link in links))


def _matches(fabric: Fabric, link: Link) -> bool:
    if fabric.interface:
        return link.name == fabric.interface
    if fabric.mac:
        return link.mac == fabric.mac
    return link.driver == fabric.driver


def overlap(address: str, ours: Pick, links: tuple[Link, ...]) -> str:
    """Which other link's network shares addresses with ours, in words: packets to it would leave by the wrong one. Our
    very address on the fabric's other link is the one that it has just had."""
    for link in links if ours.link and address else ():
        for other in link.addresses if link != ours.link else ():
            before = ours.other is not None and link.name == ours.other.name and other == address
            if not before and ip_interface(address).network.overlaps(ip_interface(other).network):
                return f"{address} of the file overlaps {other} of {link.name}"
    return ""
