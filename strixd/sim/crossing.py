"""The way of large packets between this node and its peers, and who tries it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from strixd.ports import Crossing, Way
from strixd.sim.clock import Clock
from strixd.sim.gate import Gate
from strixd.sim.network import NetworkManager
from strixd.sim.ray import Cluster

SOON, LATER = 1.0, 60.0  # seconds between two tries: while nothing is proven or it fails, and then
ANSWER = 1.0  # seconds until an answer is given up
PATIENCE = 30.0  # seconds that a failure lasts before it counts
Sight = Literal["crosses", "there", "back", "silent"]


@dataclass(slots=True)
class Wire:
    """The largest packets, in bytes, that each direction of the path lets through, and that the peers take."""

    there: int = 65535
    back: int = 65535
    peers: int = 65535


class SimCrossings:
    """ports.Crossings: asks for as long as its strixd lives."""

    def __init__(
        self, wire: Wire, network: NetworkManager, cluster: Cluster, gate: Gate, changed: Callable[[str], None]
    ) -> None:
        self._wire = wire
        self._network = network
        self._cluster = cluster
        self._clock: Clock = cluster.clock
        self._gate = gate
        self._changed = changed
        self._way: Way | None = None
        self._turn = 0
        self._known: dict[str, Crossing] = {}
        self._since: dict[str, float] = {}

    async def look(self, way: Way | None) -> tuple[Crossing, ...]:
        async with self._gate.read("crossings", "look"):
            if way != self._way:
                self._way, self._known, self._since = way, {}, {}
                self._turn += 1
                for peer in way.peers if way else ():
                    self._try(self._turn, peer)
            return tuple(self._known.get(peer, Crossing(peer)) for peer in way.peers) if way else ()

    def _try(self, turn: int, peer: str) -> None:
        if turn == self._turn and not (self._gate.closed or self._gate.dead) and self._way:
            sight = self._sight(self._way, peer)
            wait = 0.001 if sight == "crosses" else ANSWER
            self._clock.after(wait, lambda: self._told(turn, peer, sight))

    def _sight(self, way: Way, peer: str) -> Sight:
        nic = self._network.nics.get(way.interface)
        there = nic is not None and nic.link.carrier and any(a.startswith(f"{way.source}/") for a in nic.link.addresses)
        answers = any(node.on and node.address == peer for node in self._cluster.others.values())
        if nic is None or not there or not answers or not self._cluster.cable:
            return "silent"
        if way.size > min(nic.link.mtu, self._wire.there, self._wire.peers):
            return "there"
        return "back" if way.size > self._wire.back else "crosses"

    def _told(self, turn: int, peer: str, sight: Sight) -> None:
        if turn != self._turn or self._gate.closed or self._gate.dead:
            return
        before = self._known.get(peer, Crossing(peer))
        now = self._known[peer] = self._judged(before, sight)
        if (before.state, before.why) != (now.state, now.why):
            self._changed(f"crossing to {peer}")
        self._clock.after(LATER if sight == "crosses" else SOON, lambda: self._try(turn, peer))

    def _judged(self, before: Crossing, sight: Sight) -> Crossing:
        now = self._clock.now()
        if sight in ("crosses", "silent"):
            self._since.pop(before.peer, None)
            answers = Crossing(before.peer, "crosses", now, why="")
            return answers if sight == "crosses" else Crossing(before.peer, at=before.at, why="does not answer yet")
        since = self._since.setdefault(before.peer, now)
        if before.state == "failed" or (before.state == "crosses" and now - since < PATIENCE):
            return before
        if now - since < PATIENCE:
            return Crossing(before.peer, at=before.at, why="answers small packets, and no large one yet")
        return Crossing(before.peer, "failed", now, "there" if sight == "there" else "back", "")
