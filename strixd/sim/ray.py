"""A Ray cluster of which this node is the head or a worker; the other nodes only exist here.

Behaves as measured with Ray 2.60: a worker waits for its head, a lost node stays listed as alive for a while, and a
worker whose head was replaced never joins the new one and exits 57 s later.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from strixd.ports import Member, RayReport
from strixd.sim.clock import Clock
from strixd.sim.pace import Pace
from strixd.sim.units import Run

HEAD_GONE = 61.0  # seconds until a worker gives up on a head that is gone
HEAD_REPLACED = 57.0
BACK_FROM_CABLE = 19.5  # a worker that was declared dead exits so long after the cable is back
PORT_TAKEN = 41.0
PORT = 6379
RANKS_END = 0.5  # seconds that ranks outlive their engine
AGAIN = 2.0  # seconds in which another node's strixd starts its Ray again


@dataclass(slots=True)
class Node:
    """A node of the cluster. `on`: its machine, its strixd and its raylet are there (another node's; this node's is a
    unit). `record`: what its probe says where that differs from this node's record; `mute`: it says nothing. `ranks`:
    of a model; `stuck`: they do not end with their engine, only with their Ray; `deaf`: its strixd lets them be."""

    name: str
    address: str
    gpus: int = 1
    on: bool = True
    record: dict[str, str] = field(default_factory=dict)
    mute: bool = False
    ranks: int = 0
    stuck: bool = False
    deaf: bool = False


@dataclass(slots=True)
class Entry:
    """A line of Ray's own list. `gone`: its raylet is, which Ray has not noticed yet."""

    node: Node
    alive: bool = True
    gone: bool = False


class Cluster:
    """The model. `lost` is called with a node's name when its ranks are gone; `kept`: what this node's probe keeps;
    `titled` is told how this node's ranks call themselves."""

    def __init__(self, clock: Clock, pace: Pace, own: Node, changed: Callable[[str], None]) -> None:
        self.clock = clock
        self.pace = pace
        self.own = own
        self.others: dict[str, Node] = {}
        self.head = own.name
        self.cable = True
        self.session = ""
        self.own_session = ""
        self.entries: list[Entry] = []
        self.probe = False
        self.kept: dict[str, str] = {}
        self.port_taken = False
        self.wrong_key = False
        self.lost: list[Callable[[str], None]] = []
        self.titled: Callable[[tuple[str, ...]], None] = lambda titles: None
        self._changed = changed
        self._sessions = 0
        self._cuts = 0

    @property
    def leads(self) -> bool:
        return self.head == self.own.name

    def begin(self) -> None:
        """A head has come up: a new cluster, into which the other nodes' strixd bring their workers."""
        self._sessions += 1
        self.session = f"session_{self._sessions:04d}"
        self.entries = []
        for node in self.others.values():
            if node.name == self.head:
                self._join(node, self.session)
            else:
                self.invite(node)
        self._changed("ray session")

    def end(self) -> None:
        self.session, self.entries = "", []
        self._lose(self.head)

    def invite(self, node: Node, *, after: float | None = None) -> None:
        session = self.session
        self.clock.after(self.pace.join if after is None else after, lambda: self._join(node, session))

    def _join(self, node: Node, session: str) -> None:
        here = node is self.own or (node.on and (self.cable or not self.leads))
        there = any(entry.node is node and entry.alive and not entry.gone for entry in self.entries)
        if not session or session != self.session or not here or there:
            return
        self.entries.append(Entry(node))
        self._changed(f"{node.name} joined")

    def alive(self, name: str) -> bool:
        return any(entry.alive and entry.node.name == name for entry in self.entries)

    def gpus(self) -> int:
        return sum(entry.node.gpus for entry in self.entries if entry.alive and not entry.gone)

    def place(self) -> None:
        """A model's ranks, one on each member."""
        for entry in self.entries:
            if entry.alive and not entry.gone:
                self._ranks(entry.node, 1)

    @property
    def ranks(self) -> int:
        return sum(node.ranks for node in self.nodes)

    def orphan(self) -> None:
        """The ranks on the other nodes are killed, and nobody takes notice."""
        for node in self.others.values():
            self._ranks(node, 0)

    def engine_ended(self) -> None:
        placed = [node for node in self.nodes if node.ranks and not node.stuck]
        for node in placed:
            self.clock.after(RANKS_END, partial(self._ranks, node, 0))

    @property
    def nodes(self) -> tuple[Node, ...]:
        return (self.own, *self.others.values())

    def _ranks(self, node: Node, count: int) -> None:
        if node.ranks == count:
            return
        node.ranks = count
        if node is self.own:
            self.titled(("ray::RayWorkerProc.run",) * count)
        self._changed(f"ranks on {node.name}")

    def heed(self) -> None:
        """What the other nodes' strixd do when the head's says that its server is down: they end what is left there."""
        for node in self.others.values():
            if self.kept.get("server") == "down" and node.ranks and node.on and not node.deaf:
                self.switch(node.name, on=False)
                self.clock.after(AGAIN, partial(self.switch, node.name, on=True))

    def switch(self, name: str, *, on: bool) -> None:
        """Another node, or only its raylet, goes or comes."""
        node = self.others[name]
        node.on = on
        if not on:
            self._ranks(node, 0)
        if name == self.head:
            self.begin() if on else self.end()
        elif on:
            self.invite(node)
        else:
            self._lose(name)
            self._declare_dead(name, self.pace.dead)

    def leave(self) -> None:
        """This node's raylet has ended."""
        self.probe, self.own_session, self.kept = False, "", {}
        self._ranks(self.own, 0)
        if self.leads:
            self.end()
        else:
            self._lose(self.own.name)
            self._declare_dead(self.own.name, self.pace.dead)

    def _declare_dead(self, name: str, after: float) -> None:
        entry = next((e for e in self.entries if e.alive and not e.gone and e.node.name == name), None)
        if entry:
            entry.gone = True
            self.clock.after(after, lambda: self._dead(entry))

    def _dead(self, entry: Entry) -> None:
        entry.alive = False
        self._changed(f"{entry.node.name} is dead")

    def _lose(self, name: str) -> None:
        for told in tuple(self.lost):
            told(name)

    def plug(self, *, cable: bool) -> None:
        """The fabric cable goes out or in. What is back before Ray declares it dead goes on by itself."""
        if cable == self.cable:
            return
        self.cable = cable
        self._cuts += 1
        cut = self._cuts
        if not cable:
            self.clock.after(self.pace.dead, lambda: self._cut_off(cut))
            return
        for node in self.others.values():
            if self.leads and self.session and not self.alive(node.name):
                self.invite(node, after=BACK_FROM_CABLE + self.pace.join)

    def _cut_off(self, cut: int) -> None:
        if cut != self._cuts:
            return
        gone = [e for e in self.entries if e.alive and (e.node is not self.own) == self.leads]
        for entry in gone:
            self._dead(entry)
            self._lose(entry.node.name)

    def report(self) -> RayReport:
        now = self.clock.now()
        if not self.session:
            return RayReport(now, own_session=self.own_session, error=f"Ray's head ({self.head}) does not answer")
        if not self.leads and not self.cable:
            return RayReport(now, own_session=self.own_session, error=f"Ray's head ({self.head}) cannot be reached")
        members = tuple(self._member(entry) for entry in self.entries)
        return RayReport(now, self.session, self.own_session, "2.60.0", members)

    def _member(self, entry: Entry) -> Member:
        node = entry.node
        record = self.kept
        if node is not self.own:
            kept = {key: text for key, text in self.kept.items() if key != "server"}
            record = {**kept, "boot": f"boot-of-{node.name}", **node.record} if kept else {}
        measured = {"ranks": str(node.ranks)} if record else {}
        return Member(node.name, node.address, entry.alive, node.gpus, {} if node.mute else {**record, **measured})


class RayNode:
    """`ray start --block` in the container of this node."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.warm_up = cluster.pace.container

    @property
    def patience(self) -> float:
        """A worker that still waits for its head takes no notice of SIGTERM."""
        return 1.0 if self._cluster.own_session else 5.0

    def started(self, run: Run) -> None:
        if self._cluster.port_taken and self._cluster.leads:
            run.log("ConnectionError: the GCS could not listen on port 6379: Address already in use")
            run.after(PORT_TAKEN, lambda: run.exit(1))
        elif self._cluster.wrong_key:
            run.log("AuthenticationError: InvalidAuthToken: another key than the head's")
            run.after(5.0, lambda: run.exit(1))
        else:
            run.after(self._cluster.pace.ray, lambda: self._up(run))

    def ended(self) -> None:
        self._cluster.leave()

    def _up(self, run: Run) -> None:
        cluster = self._cluster
        cluster.probe = True
        if cluster.leads:
            cluster.begin()
        if cluster.session and cluster.cable:
            self._joined(run)
        else:
            run.after(1.0, lambda: self._up(run))

    def _joined(self, run: Run) -> None:
        cluster = self._cluster
        cluster.own_session = cluster.session
        cluster.invite(cluster.own, after=0.0)
        run.log(f"Ray runtime started ({cluster.session})")
        self._watch_head(run, 0.0)

    def _watch_head(self, run: Run, alone: float) -> None:
        """A worker lives no longer than the patience with its head."""
        cluster = self._cluster
        if cluster.leads:
            return
        if cluster.session == cluster.own_session and not cluster.alive(cluster.own.name) and cluster.cable:
            limit = BACK_FROM_CABLE
        elif cluster.session == cluster.own_session:
            limit, alone = HEAD_GONE, -1.0
        else:
            limit = HEAD_REPLACED if cluster.session else HEAD_GONE
        if alone >= limit:
            run.exit(1)
        else:
            run.after(1.0, lambda: self._watch_head(run, alone + 1.0))
