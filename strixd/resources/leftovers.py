"""Ranks of an ended model: they hold the GPUs and memory that the next one needs; and memory that is not free although
they have ended. Pure.

Ray ends them half a second after the engine; one that is stopped or stuck may stay. So while its server is down the
head is ok only without ranks, anywhere: by its own processes here, by the probes' records elsewhere (which tell an
end within a moment: strixd/probe/look.py). After LEFT_AFTER the head says "server: down" in its own record, and each
node with ranks starts its own Ray again, the head too, which surely ends them. That record is taken back before the
server is started, so no new rank is taken for an old one; and it counts only while it is renewed.

Nothing of this is remembered: the time is the one at which systemd saw the server end, or of an order that came later.
A record that is no longer renewed proves nothing: its ranks do not keep the next model waiting.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from strixd.plan import Plan
from strixd.ports import Member
from strixd.resources import record
from strixd.resources.members import LOOK
from strixd.workload import Start

LEFT_AFTER = 10.0  # seconds that ranks may outlive their server
FREED_WITHIN = 30.0  # seconds from the end of the server: what GPUs hold longer is somebody else's
STALE_AFTER = 15.0  # seconds: three renewals of a record missed


def is_rank(title: str) -> bool:
    """A process of a model, by the title that vLLM's own code gives it. Ray's agents and idle workers are "ray::…", too
    (Ray 2.60, seen)."""
    return title.startswith(("ray::RayWorker", "VLLM::"))


def overdue(ended: float, now: float) -> bool:
    """`ended`: since when the server is down, 0 while it is up."""
    return bool(ended) and now - ended > LEFT_AFTER


def called_down(head: Member) -> bool:
    """The head's strixd says that its server is down and ranks are left."""
    return head.age <= STALE_AFTER and head.record.get("server") == "down"


def by_node(members: Iterable[Member], node: str = "", own: int = 0) -> Mapping[str, int]:
    """`own`: what was counted on this node just now. A probe that says nothing of ranks (an older one) has none."""
    told = {m.name: _number(m.record.get("ranks", "")) for m in members if m.alive and m.age <= STALE_AFTER}
    counts = {**told, node: max(own, told.get(node, 0))}
    return {name: counts[name] for name in sorted(counts) if counts[name]}


def counted(members: Iterable[Member]) -> int | None:
    """All ranks that the nodes tell of now; None where one says nothing of them, or has not for a while."""
    told = [m.record.get("ranks", "") for m in members if m.alive and m.age <= STALE_AFTER]
    whole = len(told) == sum(m.alive for m in members)
    return sum(map(_number, told)) if whole and all(told) else None


def without(plan: Plan, ranks: Mapping[str, int]) -> Plan:
    """The plan, but nothing is started beside ranks. Ray's resource sees to that, too, but not when the server ends
    between the looks at the two in one pass."""
    if not ranks or not any(isinstance(step, Start) for step in plan.steps):
        return plan
    if plan.condition != "ok":
        return replace(plan, steps=())
    return Plan(plan.resource, condition="waiting", why=sentence(ranks), hint=LOOK, echo=True)


def memory(members: Iterable[Member], ended: float, now: float) -> str:
    """Which GPUs have not given back what the ended model held, in words; "" when all have, or after FREED_WITHIN."""
    if not ended or now - ended > FREED_WITHIN:
        return ""
    fresh = ((m.name, _number(m.record.get("gpu", ""))) for m in members if m.alive and m.age <= STALE_AFTER)
    held = [f"{gib} GiB on {name}" for name, gib in sorted(fresh) if gib]
    return f"GPU memory of the former run is not free yet: {', '.join(held)}" if held else ""


def _number(text: str) -> int:
    return int(record.number(text))


def sentence(ranks: Mapping[str, int]) -> str:
    total = sum(ranks.values())
    verb = "is" if total == 1 else "are"
    return f"{count(total)} of the former run {verb} still there, on {', '.join(ranks)}" if ranks else ""


def count(ranks: int) -> str:
    return f"{ranks} rank{'s' * (ranks != 1)}"
