"""Which MTU the fabric link shall have: the wanted one, unless it was proven not to cross. Pure, but for two steps.

Until a peer answers nothing is proven, and the wanted MTU stays. A failure is remembered, so that a restarted strixd
does not try again under a served model; a reboot, an order or an apply after it ends it, and so does another size.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from math import ceil
from typing import ClassVar

from strixd.decode import decode
from strixd.plan import Effect, Step
from strixd.ports import Crossing, Host, Link, Way

RECORD = "/var/lib/strixd/mtu.json"
PLAIN = 1500  # bytes; crosses everywhere
LARGEST = 65535  # bytes of an IPv4 packet
THUNDERBOLT = "thunderbolt-net"  # takes 65522 bytes, and is the faster the more of them (drivers/net/thunderbolt)


@dataclass(frozen=True, slots=True)
class Peer:
    """Another node; `address` without prefix."""

    name: str
    address: str


@dataclass(frozen=True, slots=True)
class Record:
    """A failure: packets of `size` bytes are lost on the way "there" (to `peer`) or "back". `at`: milliseconds
    since the epoch; `boot`: the kernel's id of the boot in which it was seen; `link`: of which interface, "" in what an
    earlier strixd kept, which knew one only."""

    size: int
    peer: str
    direction: str
    at: int
    boot: str
    link: str = ""

    def __str__(self) -> str:
        way = f"from {self.peer} to here" if self.direction == "back" else f"from here to {self.peer}"
        return f"MTU {self.size} does not cross {way}"


@dataclass(frozen=True, slots=True)
class Remember:
    """Keep a failure; `before` was kept until now."""

    effect: ClassVar[Effect] = Effect.NOW
    record: Record
    before: Record | None = None

    def __str__(self) -> str:
        return f"remember that {self.record}"

    def undo(self) -> Step:
        return Remember(self.before, self.record) if self.before else Forget(self.record)

    async def apply(self, host: Host) -> None:
        await host.files.write(RECORD, json.dumps(asdict(self.record)) + "\n")


@dataclass(frozen=True, slots=True)
class Forget:
    """Keep no failure any more."""

    effect: ClassVar[Effect] = Effect.NOW
    record: Record

    def __str__(self) -> str:
        return f"forget that {self.record}"

    def undo(self) -> Step:
        return Remember(self.record)

    async def apply(self, host: Host) -> None:
        await host.files.remove(RECORD)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the file and a person ask for: the MTU, to these peers. `after`: when the last apply came."""

    size: int
    peers: tuple[Peer, ...] = ()
    after: float = 0.0


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known here: a failure that was kept, in which boot this is, and what the tries of now say."""

    record: Record | None = None
    boot: str = ""
    crossings: tuple[Crossing, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The MTU, what must be kept or forgotten before it is set, why that is so, and what to tell."""

    size: int
    steps: tuple[Step, ...] = ()
    why: str = ""
    fact: str = ""
    hint: str = ""


def loads(text: str | None) -> Record | None:
    """What cannot be read is no failure: it is found again if it is one."""
    try:
        raw = json.loads(text or "null")
    except ValueError:
        return None
    return decode(Record, raw, key=str).value


def largest(asked: Asked, link: Link) -> int:
    """No larger than the device takes; by Thunderbolt as large as it takes, unless the file wants a plain one."""
    if link.driver == THUNDERBOLT and asked.size > PLAIN and link.max_mtu:
        return min(link.max_mtu, LARGEST)
    return min(asked.size, link.max_mtu) if link.max_mtu else asked.size


def way(asked: Asked, link: Link, address: str) -> Way | None:
    """What is to be tried, as soon as the link is as it shall be; nothing where nothing can be lost."""
    size = largest(asked, link)
    if size <= PLAIN or link.mtu != size or not link.carrier or address not in link.addresses:
        return None
    return Way(link.name, address.partition("/")[0], tuple(peer.address for peer in asked.peers), size, asked.after)


def judge(asked: Asked, link: Link, seen: Seen) -> Verdict:
    size, kept = largest(asked, link), seen.record
    if kept and kept.link in ("", link.name) and _counts(kept, size, asked, seen):
        return _lowered(kept)
    if failure := _failure(size, asked, seen, link.name):
        return _lowered(failure, (Remember(failure, kept),))
    told = "; ".join(_told(size, asked, seen))
    return Verdict(size, (Forget(kept),), f"MTU {size} is tried again", told) if kept else Verdict(size, fact=told)


def _counts(record: Record, size: int, asked: Asked, seen: Seen) -> bool:
    peers = [peer.name for peer in asked.peers]
    return (
        record.size == size > PLAIN
        and record.boot == seen.boot
        and record.at > asked.after * 1000
        and record.peer in peers
    )


def _failure(size: int, asked: Asked, seen: Seen, link: str) -> Record | None:
    """One peer to which it fails is enough: all share the link. It was seen after what was asked, also by a clock that
    was set back since: what does not count would be forgotten and found again without end."""
    names = {peer.address: peer.name for peer in asked.peers}
    for one in seen.crossings:
        if one.state == "failed" and one.peer in names:
            at = max(ceil(one.at * 1000), int(asked.after * 1000) + 1)
            return Record(size, names[one.peer], one.direction, at, seen.boot, link)
    return None


def _lowered(record: Record, steps: tuple[Step, ...] = ()) -> Verdict:
    fact = f"{record}: it is {PLAIN} on this side until strixd-cli apply on every node, or a reboot of every node"
    where = "on this node" if record.direction == "there" else f"on {record.peer}"
    hint = (
        f"look at what {where} sends through (MTU of every switch port, ip -s link); then strixd-cli apply everywhere"
    )
    return Verdict(PLAIN, steps, str(record) if steps else "", fact, hint)


def _told(size: int, asked: Asked, seen: Seen) -> Iterator[str]:
    if size <= PLAIN:
        return
    known = {one.peer: one for one in seen.crossings}
    pairs = [(peer.name, known.get(peer.address, Crossing(peer.address))) for peer in asked.peers]
    if over := [name for name, one in pairs if one.state == "crosses"]:
        yield f"MTU {size} crosses to {' and '.join(over)} and back"
    if lacking := [f"{name} {one.why}" for name, one in pairs if one.state != "crosses"]:
        yield f"MTU {size} unproven: {', '.join(lacking)}"
