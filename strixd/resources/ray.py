"""The Ray container ("toolbox"): head or worker, up, and a member of the expected cluster as Ray itself lists it.

On a worker, ok means that this node has joined; on the head, that every node of the file has, with the image,
settings and GPUs that the file demands: below that nothing may be served. A worker that waits for its head is left
alone; one whose head was replaced starts again at once, since it would never join the new one (Ray 2.60, seen).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from strixd import collectives, workload
from strixd.elapsed import elapsed, later
from strixd.fabric import LINKS, Fabric, Pick, pick
from strixd.ladder import Wanted, forbidden
from strixd.occupied import Seat, unless_taken
from strixd.plan import Plan, Step, unguarded
from strixd.ports import Card, Holder, Host, RayReport, Unit
from strixd.quadlet import Container, link, render
from strixd.resources import fabric, image, leftovers, members, rung
from strixd.resources.completed import fingerprint, with_host
from strixd.resources.members import Peer
from strixd.resources.publish import Publish

NAME = "strixd-ray"
NO_TOKENS = 64  # exit status of strixd/probe: this image's Ray knows no token authentication
SERVER = "strixd-vllm"
UNLISTED_AFTER = 120.0  # seconds that a running raylet may be missing from Ray's list before it is started again


@dataclass(frozen=True, slots=True)
class Desired:
    """`container` lacks what only the host knows: image, devices, interface, keys. `retry_after`: when a person
    last gave an order or an apply; what failed before that is tried again."""

    node: Peer
    head: Peer
    port: int
    peers: tuple[Peer, ...]
    fabric: Fabric
    management: tuple[str, ...]
    container: Container
    reference: str
    key: str  # path of the cluster key, "" when the file turns Ray's authentication off
    settings: str  # hash of what must agree between nodes
    version: str
    retry_after: float
    restart: str = ""  # the run of the unit that is to be followed by another
    link: Wanted = field(default_factory=Wanted)

    @property
    def leads(self) -> bool:
        return self.node == self.head


@dataclass(frozen=True, slots=True)
class Observed:
    pick: Pick
    image: image.Report
    boot: str
    text: str | None
    unit: Unit
    devices: tuple[str, ...]  # those of the file's that exist
    keys: str  # fingerprint; "" without a key
    report: RayReport | None
    published: Mapping[str, str]
    now: float
    words: tuple[str, ...] = ()
    holders: tuple[Holder, ...] = ()  # who listens on the head's port; asked there, while the unit is down
    ended: float = 0.0  # on the head: since when the server is down, 0 while it is up
    ranks: int = 0  # in this node's own container
    card: Card | None = None  # the hardware of the link; None when it is gone


class Ray:
    name: ClassVar[str] = "ray"
    settle: ClassVar[float] = 0.0
    supervised: ClassVar[bool] = True
    guard = staticmethod(unguarded)

    def needs(self, desired: Desired) -> tuple[str, ...]:
        return ("firewall", "network", "image")

    async def observe(self, host: Host, desired: Desired) -> Observed:
        unit = await host.units.read(f"{NAME}.service")
        found = pick(desired.fabric, await host.links.read(), management=desired.management)
        return Observed(
            pick=found,
            image=image.report(await host.files.read(image.REPORT)),
            boot=host.identity.boot,
            text=await host.files.read(desired.container.path),
            unit=unit,
            devices=await host.files.present(desired.container.devices),
            keys=await fingerprint(host.files, desired.key),
            report=await host.ray.report(),
            published=await host.ray.published(),
            now=host.now(),
            words=await workload.last_words(host, unit, 5) if unit.active == "failed" else (),
            holders=await host.listeners.on(desired.port) if desired.leads and workload.down(unit) else (),
            ended=await _ended(host, desired),
            ranks=sum(map(leftovers.is_rank, await host.units.programs(unit.name))) if unit.active == "active" else 0,
            card=await fabric.card(host, found),
        )

    def plan(self, desired: Desired, observed: Observed) -> Plan:
        """A head that cannot listen takes 41 s to say so (Ray 2.60), and listens on all addresses."""
        seat = Seat("::", desired.port, "[cluster] ray-port")
        return unless_taken(self._plan(desired, observed), observed.unit, seat, observed.holders)

    def _plan(self, desired: Desired, observed: Observed) -> Plan:
        if desired.key and not observed.keys:
            why = f"no {desired.key}: without it Ray would obey anybody on the link"
            hint = "strixd-cli key new on one node, then strixd-cli key import on the others"
            return Plan(self.name, condition="blocked", why=why, hint=hint)
        if observed.pick.link is None:
            return Plan(self.name, condition="blocked", why=observed.pick.why, hint=LINKS)
        chosen, unit = choice(desired, observed), observed.unit
        if chosen.halt:
            return Plan(self.name, _word(desired, observed), chosen.halt, chosen.why, chosen.hint)
        changed = observed.text != render(complete(desired, observed))
        if under_way := workload.under_way(self.name, unit, changed=changed):
            return under_way
        if changed:
            return _changed(self.name, desired, observed, chosen)
        if unit.active != "active":
            return _down(self.name, desired, observed)
        if unit.invocation == desired.restart:
            steps = (workload.Stop(unit.name, "ordered"), workload.Start(unit.name, "ordered"))
            return Plan(self.name, steps, "waiting", "a restart is ordered")
        return _membership(self.name, desired, observed)


async def _ended(host: Host, desired: Desired) -> float:
    """When the server on this node ended, 0 while it is up; an order counts as its end, if that was later."""
    if not desired.leads:
        return 0.0
    server, now = await host.units.read(f"{SERVER}.service"), host.now()
    ago = min(elapsed(server.since, now), elapsed(desired.retry_after, now))
    return max(now - ago, 1.0) if workload.down(server) else 0.0


def choice(desired: Desired, observed: Observed) -> rung.Choice:
    """The way that this node's ranks take over the link."""
    told = link(observed.text or "")
    if observed.card is None:
        return rung.Choice(told, "waiting", "waits for fabric: the link has just gone", LINKS)
    names, leads = tuple(peer.name for peer in desired.peers), desired.leads
    seen = rung.Seen(
        told,
        busy=bool(observed.ranks) or (leads and not observed.ended),
        others=rung.others(observed.report, desired.node.name, names),
        head="" if leads else rung.named(observed.report, desired.head.name),
    )
    verdict = rung.judged(desired.link, observed.pick, observed.card, observed.now)
    chosen = rung.choose(verdict, seen, leads=leads, allow_tcp=desired.link.allow_tcp, dscp=desired.link.dscp)
    return replace(chosen, why="", lost=False) if forbidden(desired.link) else chosen  # not lost: not wanted


def complete(desired: Desired, observed: Observed) -> Container:
    """The container with what only this host knows."""
    base = replace(desired.container, devices=observed.devices, keys=observed.keys)
    return with_host(base, observed.image, choice(desired, observed).told)


def _changed(name: str, desired: Desired, observed: Observed, chosen: rung.Choice) -> Plan:
    why = chosen.why or ("its settings changed" if observed.text else "")
    saved = chosen.lost and (desired.leads or _lost_here(desired, observed))
    first = workload.gather(observed.unit, why) if saved else ()
    steps = workload.replace(complete(desired, observed), before=observed.text, unit=observed.unit, why=why)
    return Plan(name, (*first, *steps), "held" if chosen.lost else "ok", why)


def _down(name: str, desired: Desired, observed: Observed) -> Plan:
    unit = observed.unit
    fresh = not later(desired.retry_after, unit.since, observed.now)
    if unit.result == "exit-code" and unit.status == NO_TOKENS and fresh:
        why = "the Ray of this image knows no token authentication: anybody on the link could run code in it"
        hint = 'use an image with Ray 2.52 or later, or set RAY_AUTH_MODE = "disabled" in [image] environment'
        return Plan(name, condition="stuck", why=why, hint=hint)
    how = workload.ended(unit)
    why = f"{unit.name} {how}" if how else f"{unit.name} is not running"
    return Plan(name, workload.start(unit, how), "held", why, "strixd-cli logs ray", observed.words[-2:])


def _membership(name: str, desired: Desired, observed: Observed) -> Plan:
    report, unit = observed.report, observed.unit
    if report is None:
        why = "the probe in the container has not reported yet"
        return Plan(name, condition="waiting", why=why, hint="strixd-cli logs ray", echo=True)
    this, leads = _own(desired, observed), desired.leads
    facts = (
        members.listing(desired.peers, report),
        *_way(desired, observed),
        *(members.versions(this, report) if leads else ()),
    )
    if report.session and report.own_session and report.session != report.own_session:
        why = "its head was replaced"
        return Plan(name, workload.restart(unit.name, why), "waiting", why, facts=facts)
    if report.error:
        return Plan(name, condition="waiting", why=report.error, hint=_hint(desired, report.error), facts=facts)
    own = members.alive(report, desired.node)
    if own is None:
        return _unlisted(name, desired, observed, facts)
    if observed.ranks and _abandoned(desired, observed, report):
        why = f"{leftovers.count(observed.ranks)} of an ended model left over"
        return Plan(name, workload.restart(unit.name, why), "waiting", why, facts=facts)
    publish = _publish(desired, observed, report)
    lack = members.lacking(desired.peers, this, report) if leads else members.NOTHING
    held = leftovers.memory(report.members, observed.ended, observed.now)
    why = lack.why or leftovers.sentence(_ranks(desired, observed, report)) or held
    hint = lack.hint or members.LOOK * bool(why)
    echo, again = bool(why) and not lack.why, leftovers.FREED_WITHIN * bool(held)
    return Plan(name, publish, "waiting" if why else "ok", why, hint, facts, again=again, echo=echo)


def _own(desired: Desired, observed: Observed) -> members.Own:
    over = collectives.name(link(observed.text or "")) or ""
    return members.Own(desired.node.name, observed.image.digest, desired.settings, desired.version, over)


def _way(desired: Desired, observed: Observed) -> tuple[str, ...]:
    over, better = way(observed), choice(desired, observed).better
    there = f"{better} is there: strixd-cli restart vllm takes it" if better else ""
    return tuple(filter(None, (f"the model's processes talk over {over}" if over else "", there)))


def way(observed: Observed) -> str:
    """The rung in force in words, "" for none."""
    return collectives.words(link(observed.text or ""), observed.card)


def _word(desired: Desired, observed: Observed) -> tuple[Step, ...]:
    """A node that cannot take part says why, unless that may pass: the head decides for all."""
    report = observed.report
    ready = observed.unit.active == "active" and report and not report.error and members.alive(report, desired.node)
    return _publish(desired, observed, report) if ready and report else ()


def _publish(desired: Desired, observed: Observed, report: RayReport) -> tuple[Step, ...]:
    """The others hear at once of a link that is lost: each of them then saves what it has of the same moment."""
    record = _record(desired, observed, report)
    if dict(record) == observed.published:
        return ()
    lost = _lost_here(desired, observed)
    why = f"RDMA is lost: {dict(record)[rung.RDMA]}" if lost else ""
    return (Publish(record), *(workload.gather(observed.unit, why) if lost else ()))


def _lost_here(desired: Desired, observed: Observed) -> bool:
    if observed.card is None or forbidden(desired.link):
        return False
    verdict = rung.judged(desired.link, observed.pick, observed.card, observed.now)
    return rung.newly_lost(verdict, observed.published, link(observed.text or ""))


def _abandoned(desired: Desired, observed: Observed, report: RayReport) -> bool:
    """The server of this node's ranks has been down for so long that they will not end by themselves."""
    return leftovers.overdue(observed.ended, observed.now) or _called_down(desired, report)


def _called_down(desired: Desired, report: RayReport) -> bool:
    head = None if desired.leads else members.alive(report, desired.head)
    return head is not None and leftovers.called_down(head)


def _ranks(desired: Desired, observed: Observed, report: RayReport) -> Mapping[str, int]:
    """Those of the ended model by node, on the head."""
    return leftovers.by_node(report.members, desired.node.name, observed.ranks) if observed.ended else {}


def _unlisted(name: str, desired: Desired, observed: Observed, facts: tuple[str, ...]) -> Plan:
    why = f"this node is not in Ray's list at {desired.head.address}:{desired.port}"
    late = observed.now - observed.unit.since > UNLISTED_AFTER
    steps = workload.restart(observed.unit.name, why) if late else ()
    return Plan(name, steps, "held" if late else "waiting", why, "strixd-cli logs ray", facts)


def _hint(desired: Desired, error: str) -> str:
    if "cluster key" in error:
        return (
            f"ssh root@{desired.head.name} cat {desired.key} | strixd-cli key import --replace, then strixd-cli apply"
        )
    if desired.leads:
        return "strixd-cli logs ray"
    return f"on {desired.head.name} ({desired.head.address}): systemctl status strixd; here: strixd-cli logs ray"


def _record(desired: Desired, observed: Observed, report: RayReport) -> tuple[tuple[str, str], ...]:
    digest = observed.image.digest
    record = {"boot": observed.boot, "digest": digest, "settings": desired.settings, "version": desired.version}
    if observed.card:
        verdict = rung.judged(desired.link, observed.pick, observed.card, observed.now)
        record |= rung.said(verdict, observed.published, link(observed.text or ""))
    if leftovers.overdue(observed.ended, observed.now) and _ranks(desired, observed, report):
        record["server"] = "down"
    return tuple(sorted(record.items()))
