"""Which rung the ranks of this node take: all nodes the same, and none changed under a model without need. Pure.

The head decides, by its own check and by what the members' records say of theirs; the others follow the rung that its
record names. Nothing is remembered but what the Ray container was told: its text. While ranks are there (or, on the
head, the server) that stays, unless RDMA is lost on some node; a better rung is taken when nothing runs, and so at the
next start. While the members' records are not all there, as after a start of Ray, TCP in force stays TCP: else a head
would go to RDMA each time until a member says again that it has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from strixd import collectives
from strixd.fabric import Pick
from strixd.ladder import COST, Name, Rung, Verdict, Wanted, judge
from strixd.ports import Card, RayReport

FINE = "ok"
RDMA, RUNG = "rdma", "rung"
"""Keys of a node's record: FINE, or why it cannot; the rung that its Ray container has."""
FEW = "status there says more: strixd-cli status"


@dataclass(frozen=True, slots=True)
class Seen:
    """What `choose` goes by. `told`: what the Ray container in force was told of the link; `busy`: a model is served,
    or starts, or has left ranks; `others`: what the records of the other members say of RDMA, None for one that
    says nothing; `head`: the rung that the head's record names, "" on the head and when there is none."""

    told: Mapping[str, str] = field(default_factory=dict)
    busy: bool = False
    others: Mapping[str, str | None] = field(default_factory=dict)
    head: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """`told`: what the containers of this node are told of the link. `halt`: waiting or blocked, nothing is changed for
    the link now, and `why` and `hint` say what is in the way; else `why` says why another rung than the one in force is
    taken, "" for none; `lost`: that is a worse one. `better`: the rung that a next start would take instead."""

    told: Mapping[str, str]
    halt: Literal["", "waiting", "blocked"] = ""
    why: str = ""
    hint: str = ""
    lost: bool = False
    better: str = ""


def judged(wanted: Wanted, found: Pick, card: Card, now: float) -> Verdict:
    """RDMA that the spare has not got was lost with the first link. `now`: seconds since the epoch."""
    verdict = judge(wanted, card, now)
    if found.spare and verdict.rdma.why:
        return replace(verdict, rdma=replace(verdict.rdma, why=found.note))
    return verdict


def others(report: RayReport | None, own: str, peers: tuple[str, ...]) -> dict[str, str | None]:
    """What the members but this one say of RDMA."""
    listed = {member.name: member.record.get(RDMA) for member in report.members if member.alive} if report else {}
    return {name: listed.get(name) for name in peers if name != own}


def named(report: RayReport | None, head: str) -> str:
    """The rung that the head's record names, "" for none."""
    records = [member.record for member in report.members if member.alive and member.name == head] if report else []
    return records[-1].get(RUNG, "") if records else ""


def said(verdict: Verdict, before: Mapping[str, str], told: Mapping[str, str]) -> dict[str, str]:
    """For this node's record: what the others must know of its link. While RDMA may yet come, and without carrier, it
    says what it said `before`."""
    settled = verdict.condition != "waiting" and not verdict.tcp.why
    fine = verdict.rdma.why or FINE if settled else before.get(RDMA, FINE)
    return {RDMA: fine, RUNG: collectives.name(told) or ""}


def newly_lost(verdict: Verdict, before: Mapping[str, str], told: Mapping[str, str]) -> bool:
    """The RDMA that the containers were `told` of is lost by this node's own link, and its record does not say so yet:
    what is saved of that is saved once, however long the head takes to restart."""
    return collectives.name(told) == "rdma" and before.get(RDMA, FINE) == FINE != said(verdict, before, told)[RDMA]


def choose(verdict: Verdict, seen: Seen, *, leads: bool, allow_tcp: bool, dscp: int) -> Choice:
    """`leads`: this node is the head."""
    force = collectives.name(seen.told)
    lacking = _lacking(verdict, seen.others if leads else {})
    if verdict.condition != "ok":
        kept = seen.told or collectives.told(verdict.best, dscp)
        return Choice(kept, "waiting", f"waits for fabric: {verdict.why}", verdict.hint)
    if lacking and not allow_tcp:
        return Choice(seen.told or collectives.told(verdict.best, dscp), "blocked", f"{lacking}; {NO_TCP}", FEW)
    name = _leader(lacking, seen, force) if leads else _follower(verdict, seen, force)
    if name == force and seen.busy:
        return Choice(collectives.marked(seen.told, dscp), better=_better(verdict, seen, lacking, force))
    rung = verdict.rdma if name == "rdma" and not verdict.rdma.why else verdict.tcp
    why = _why(rung, force, lacking or _of_head(seen))
    return Choice(collectives.told(rung, dscp), why=why, lost=bool(why) and rung.port is None)


NO_TCP = "[fabric] allow-tcp = false"


def _lacking(verdict: Verdict, others: Mapping[str, str | None]) -> str:
    """Why RDMA cannot be taken, this node's reason first; "" when it can, as far as is known."""
    told = [f"{name}: {why}" for name, why in others.items() if why not in (None, FINE)]
    return verdict.rdma.why or (told[0] if told else "")


def _leader(lacking: str, seen: Seen, force: Name | None) -> Name:
    if lacking:
        return "tcp"
    unsure = seen.busy or any(said is None for said in seen.others.values())
    return "tcp" if force == "tcp" and unsure else "rdma"


def _follower(verdict: Verdict, seen: Seen, force: Name | None) -> Name:
    if seen.head == "tcp":
        return "tcp"
    if seen.busy and force:
        return force
    if verdict.rdma.why:
        return "tcp"
    return "tcp" if force == "tcp" and seen.head != "rdma" else "rdma"


def _of_head(seen: Seen) -> str:
    return "the head takes TCP" if seen.head == "tcp" else ""


def _why(rung: Rung, force: Name | None, lacking: str) -> str:
    if force is None or force == rung.name:
        return ""
    if rung.name == "rdma":
        return f"{rung} is there now"
    return f"RDMA is lost: {lacking or rung.why}; goes on over TCP, {COST}"


def _better(verdict: Verdict, seen: Seen, lacking: str, force: Name | None) -> str:
    ready = all(said == FINE for said in seen.others.values())
    return str(verdict.rdma) if force == "tcp" and not lacking and ready else ""
