"""Who is in the way of a workload that is about to listen on a TCP port. Pure data.

A start that cannot listen fails late (vLLM after 8 s, Ray's head after 41 s) and names nobody, so one looks before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from ipaddress import ip_address

from strixd.plan import Plan
from strixd.ports import Holder, Unit
from strixd.workload import Start, Stop, down

AGAIN = 2.0
"""Seconds between looks at a port that is taken: nobody says when it is free."""
NAMED = 3
"""Processes of a unit that are told by name, when any of them may be the one."""


@dataclass(frozen=True, slots=True)
class Seat:
    """Where a workload listens. `setting`: what in cluster.toml says so."""

    address: str
    port: int
    setting: str


def unless_taken(plan: Plan, unit: Unit, seat: Seat, holders: tuple[Holder, ...]) -> Plan:
    """The plan; if it would start the unit and the port is taken, what to do instead. What the unit's own last run
    left over is ended first; a stranger is named and left alone."""
    holder = next((holder for holder in holders if conflicts(seat.address, holder)), None)
    if holder is None or not down(unit) or not any(isinstance(step, Start) for step in plan.steps):
        return plan
    if holder.unit == unit.name:
        why = f"left over from its last run, on port {seat.port}: {', '.join(_named(holder))}"
        return replace(plan, steps=(Stop(unit.name, why), *plan.steps))
    why = f"port {seat.port} is taken by {who(holder)}"
    look = f"systemctl status {holder.unit}" if holder.unit else f"ss -Hltnp sport = :{seat.port}"
    hint = f"{look}; stop it, or write another {seat.setting} into every node's cluster.toml, then strixd-cli apply"
    facts = (f"it listens on {holder.address}", *plan.facts)
    return Plan(plan.resource, (), "blocked", why, hint, facts, again=AGAIN)


def conflicts(address: str, holder: Holder) -> bool:
    """Whether nobody can listen on this address beside the holder; ours, "::" is all of IPv4 too."""
    ours, theirs = ip_address(address), ip_address(holder.address)
    if ours.version == theirs.version:
        return ours == theirs or ours.is_unspecified or theirs.is_unspecified
    if ours.version == 6:
        return ours.is_unspecified
    return theirs.is_unspecified and not holder.v6only


def who(holder: Holder) -> str:
    """ "nc (pid 123, stranger.service)" """
    if not holder.processes:
        return holder.unit or "a program that cannot be named from here"
    if len(holder.processes) == 1:
        number, name = holder.processes[0]
        return f"{name} (pid {number}, {holder.unit})"
    return f"{holder.unit}: one of {', '.join(_named(holder))}"


def _named(holder: Holder) -> list[str]:
    named = [f"{name} (pid {number})" for number, name in holder.processes]
    return named if len(named) <= NAMED else [*named[:NAMED], f"{len(named) - NAMED} more"]
