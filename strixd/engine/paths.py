"""The ways by which people come into this host: what a change must leave as it was. Pure, but for the reading."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass

from strixd.ports import Host, Link, Session


@dataclass(frozen=True, slots=True)
class Paths:
    links: tuple[Link, ...]
    sessions: tuple[Session, ...]


async def read(host: Host) -> Paths:
    return Paths(await host.links.read(), await host.links.sessions())


def lost(before: Paths, after: Paths, *, ours: Set[str]) -> tuple[str, ...]:
    """In words, what no longer works. `ours`: the interfaces that the change is about, whose addresses may go, and to
    which one may come from another link."""
    now = {link.name: link for link in after.links}
    came = {address for link in after.links if link.name in ours for address in link.addresses}
    links = (each for link in before.links if link.name not in ours for each in _link(link, now.get(link.name), came))
    moved = {(address.partition("/")[0], link) for address in came for link in ours}
    return (*links, *_sessions(before.sessions, after, moved))


def _link(before: Link, after: Link | None, came: Set[str]) -> Iterator[str]:
    if not (before.driver or before.addresses or before.default_route):
        return  # the end of a container or virtual machine: these come and go by themselves
    if after is None:
        yield f"{before.name} is gone"
        return
    if before.carrier and not after.carrier:
        yield f"{before.name} has no carrier"
    for address in before.addresses:
        if address not in after.addresses and address not in came:
            yield f"{before.name} has lost its address {address}"
    if before.default_route and not after.default_route:
        yield f"{before.name} has lost the default route"


def _sessions(before: tuple[Session, ...], after: Paths, moved: Set[tuple[str, str]]) -> Iterator[str]:
    """A connection that ended by itself is no loss; one that cannot go on is. `moved`: addresses that go with their
    sessions to another link."""
    now = {(session.peer, session.address): session for session in after.sessions}
    here = {address.partition("/")[0] for link in after.links for address in link.addresses}
    for session in before:
        later = now.get((session.peer, session.address), session)
        if session.interface and session.address not in here:
            yield f"the SSH session from {session.peer} has lost this host's address {session.address}"
        elif later.interface != session.interface and (session.address, later.interface) not in moved:
            where = later.interface or "no interface"
            yield f"answers to the SSH session from {session.peer} leave by {where} instead of {session.interface}"
