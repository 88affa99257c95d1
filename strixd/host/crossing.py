"""Do large packets cross to the peers and back, in one piece? ICMP echo from a ping socket, which needs no privilege.

Nothing on the way may cut a packet up (DF is set, and no path MTU that the kernel remembers counts). Which way they are
lost: a large UDP datagram to a port on which nobody listens brings an ICMP error back, which is small, when it has
arrived; so an error proves the way there, and its absence, over many tries, that it is the way there that is broken.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import struct
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

from strixd.ports import Crossing, Wake, Way

log = logging.getLogger(__name__)

IP_MTU_DISCOVER, IP_PMTUDISC_PROBE = 10, 3  # linux/in.h: set DF, and believe no remembered path MTU
ECHO_REQUEST, ECHO_REPLY = 8, 0
IP_HEADER, ICMP_HEADER, UDP_HEADER = 20, 8, 8
SMALL = 84  # what ping(8) sends: 56 bytes of payload
CLOSED_PORT = 33434  # where traceroute begins, because nobody listens there
REFUSED = frozenset({errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.EACCES})
"""Port unreachable; forbidden by the peer's firewall. The kernel says EHOSTUNREACH of a peer without link address, too:
a small echo afterwards tells the two apart."""
BRIEF = 2  # silent tries in a row that end no streak: a busy machine answers late, a peer that sets its MTU pauses
NO_SOCKET = "cannot be asked: no ping socket (sysctl net.ipv4.ping_group_range)"

Sight = Literal["crosses", "there", "back", "silent"]
"""One try: a large echo came back; only small ones did, and a large datagram was (back) or was not (there) seen to
arrive; nothing came back."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds: until the next try while unproven or failing, when proven, and at most, more, while a peer stays silent;
    until an answer is given up; for how long a failure must last to count: a peer that is being set up looks the same
    for moments."""

    soon: float = 1.0
    proven: float = 60.0
    silent: float = 10.0
    answer: float = 1.0
    patience: float = 30.0


class Pings:
    """The port Crossings."""

    def __init__(self, pace: Pace | None = None) -> None:
        self._pace = pace or Pace()
        self._way: Way | None = None
        self._changed = asyncio.Event()
        self._events: tuple[asyncio.Event, ...] = ()
        self._known: dict[str, Crossing] = {}

    async def look(self, way: Way | None) -> tuple[Crossing, ...]:
        if way != self._way:
            self._way, self._known = way, {}
            self._changed.set()
        return tuple(self._known.get(peer, Crossing(peer)) for peer in way.peers) if way else ()

    def again(self) -> None:
        """Something happened to a link: what was proven is asked again, at the usual pace."""
        for event in self._events:
            event.set()

    async def watch(self, wake: Wake) -> None:
        """Asks about what `look` named, for ever."""
        while True:
            self._changed.clear()
            way = self._way
            peers = way.peers if way else ()
            self._events = tuple(asyncio.Event() for _ in peers)
            async with asyncio.TaskGroup() as group:
                events = zip(peers, self._events, strict=True)
                tasks = [group.create_task(self._follow(way, peer, event, wake)) for peer, event in events if way]
                await self._changed.wait()
                for task in tasks:
                    task.cancel()

    async def _follow(self, way: Way, peer: str, event: asyncio.Event, wake: Wake) -> None:
        streak = Streak(self._pace.patience)
        while True:
            event.clear()
            before = self._known.get(peer, Crossing(peer))
            now = self._known[peer] = await self._try(way, before, streak)
            if (before.state, before.direction, before.why) != (now.state, now.direction, now.why):
                log.debug("%s: %s %s", peer, now.state, now.direction or now.why)
                wake(f"{way.size} bytes to {peer}: {now.state}")
            await asyncio.sleep(self._pace.soon)
            with suppress(TimeoutError):
                await asyncio.wait_for(event.wait(), streak.rest(self._pace))

    async def _try(self, way: Way, before: Crossing, streak: Streak) -> Crossing:
        try:
            sight = await sighted(way, before.peer, self._pace.answer)
        except PermissionError as error:
            return Crossing(before.peer, why=f"{NO_SOCKET}: {error.strerror}")
        now = streak.judge(before, sight, time.monotonic())  # how long it lasts, by a clock that nobody sets
        return now if now.at == before.at else replace(now, at=time.time())


class Streak:
    """Tries at one peer that go on to be in vain although small packets come back, and what they prove. `proven`: the
    last one was not in vain."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._since = 0.0
        self._silences = 0
        self._arrived = self.proven = False

    def rest(self, pace: Pace) -> float:
        """Seconds more until the next try, unless something happens: a silent peer, which may stay so for days, is
        asked more and more seldom."""
        return pace.proven if self.proven else min(max(0.0, self._silences - 10.0), pace.silent)

    def judge(self, before: Crossing, sight: Sight, now: float) -> Crossing:
        """A datagram that was seen to arrive is a proof, and silence is none: one proof in a streak counts. `at` is
        when it was certain; a failure keeps it for as long as it lasts."""
        self.proven = sight == "crosses"
        self._silences = self._silences + 1 if sight == "silent" else 0
        if self.proven or self._silences > BRIEF:
            self._since, self._arrived = 0.0, False
        if self.proven:
            return Crossing(before.peer, "crosses", now, why="")
        if sight == "silent":
            return _unproven(before)
        self._since, self._arrived = self._since or now, self._arrived or sight == "back"
        if before.state == "failed":
            return before
        if now - self._since < self._patience:
            return _undecided(before)
        return Crossing(before.peer, "failed", now, "back" if self._arrived else "there", "")


def _unproven(before: Crossing) -> Crossing:
    return Crossing(before.peer, why="does not answer" if before.at else "does not answer yet", at=before.at)


def _undecided(before: Crossing) -> Crossing:
    """What was proven stays so until the contrary is."""
    if before.state == "crosses":
        return before
    return replace(before, state="unproven", why="answers small packets, and no large one yet")


async def sighted(way: Way, peer: str, patience: float) -> Sight:
    """One try. Raises PermissionError when this process may have no ping socket."""
    try:
        return await _sighted(way, peer, patience)
    except PermissionError:
        raise
    except OSError as error:  # the link or its address is gone
        log.debug("%s: %s", way.interface, error)
        return "silent"


async def _sighted(way: Way, peer: str, patience: float) -> Sight:
    if await _echoed(way, peer, way.size, patience):
        return "crosses"
    if not await _echoed(way, peer, SMALL, patience):
        return "silent"
    if not await _refused(way, peer, patience):
        return "there"
    return "back" if await _echoed(way, peer, SMALL, patience) else "silent"


async def _echoed(way: Way, peer: str, size: int, patience: float) -> bool:
    """An ICMP echo of so many bytes, headers included, comes back whole. The kernel numbers it for its socket."""
    payload = os.urandom(size - IP_HEADER - ICMP_HEADER)
    request = struct.pack("!BBHHH", ECHO_REQUEST, 0, 0, 0, 1) + payload
    with _socket(way, socket.IPPROTO_ICMP) as echo, suppress(TimeoutError):
        async with asyncio.timeout(patience):
            answer = await _asked(echo, (peer, 0), request)
        return answer[:1] == bytes([ECHO_REPLY]) and answer[ICMP_HEADER:] == payload
    return False


async def _refused(way: Way, peer: str, patience: float) -> bool:
    """A large datagram to a closed port brings an error back. Errors are rationed to about one a second."""
    with _socket(way, socket.IPPROTO_UDP) as datagram:
        try:
            async with asyncio.timeout(patience):
                await _send(datagram, (peer, CLOSED_PORT), bytes(way.size - IP_HEADER - UDP_HEADER))
                await asyncio.get_running_loop().sock_recv(datagram, 1)
        except OSError as error:  # the timeout is one, without a number
            return error.errno in REFUSED
    return False


async def _asked(echo: socket.socket, where: tuple[str, int], request: bytes) -> bytes:
    """The answer; b"" when the kernel says that none can come (no route, no neighbour, too large for the device)."""
    try:
        await _send(echo, where, request)
        return await asyncio.get_running_loop().sock_recv(echo, len(request) + 1)
    except OSError as error:
        log.debug("%s: %s", where[0], error)
        return b""


async def _send(by: socket.socket, where: tuple[str, int], data: bytes) -> None:
    """A datagram socket is connected at once; what then comes in is this peer's, its errors included."""
    by.connect(where)
    await asyncio.get_running_loop().sock_sendall(by, data)


def _socket(way: Way, protocol: int) -> socket.socket:
    """Bound to the link's own address and interface. Raises PermissionError."""
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC, protocol)
    made.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, way.interface.encode())
    made.bind((way.source, 0))
    return made
