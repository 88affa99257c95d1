"""What Ray's list says of the nodes that the file demands: who has joined, who is missing or different. Pure.

Image and settings must be the same everywhere, or ranks differ silently; another strixd is only said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from strixd.ports import Member, RayReport


@dataclass(frozen=True, slots=True)
class Peer:
    """A node that the file names; `address` without prefix."""

    name: str
    role: str
    address: str
    gpus: int


@dataclass(frozen=True, slots=True)
class Own:
    """This node, and what the others must have in common with it: image digest, hash of settings, version of strixd,
    and the rung of the ladder that its ranks take ("rdma" or "tcp")."""

    name: str
    digest: str
    settings: str
    version: str
    rung: str = ""


@dataclass(frozen=True, slots=True)
class Lack:
    """The first node that is missing or different, how, and what to do; empty when none is."""

    why: str = ""
    hint: str = ""


LOOK = "run strixd-cli status on that node"
NOTHING = Lack()


def alive(report: RayReport, peer: Peer) -> Member | None:
    return next((m for m in report.members if m.alive and m.name == peer.name), None)


def _by_name(report: RayReport) -> Mapping[str, list[Member]]:
    """All that are alive. Whoever looks for every peer looks here: in the list itself that would grow with the square
    of the members, and with the dead ones that Ray still lists."""
    listed: dict[str, list[Member]] = {}
    for member in report.members:
        if member.alive:
            listed.setdefault(member.name, []).append(member)
    return listed


def lacking(peers: tuple[Peer, ...], own: Own, report: RayReport) -> Lack:
    listed = _by_name(report)
    for peer in peers:
        runs = listed.get(peer.name, [])
        if not runs:
            joined = sum(each.name in listed for each in peers)
            return Lack(f"{joined} of {len(peers)} members; {peer.name} ({peer.address}) has not joined", LOOK)
        if len(runs) > 1:
            why = "its earlier run is not gone yet, or two machines have that name"
            return Lack(f"{peer.name} ({peer.address}) is listed twice: {why}", LOOK)
        if (lack := _different(peer, runs[0], own)) is not NOTHING:
            return replace(lack, why=f"{peer.name} ({peer.address}) {lack.why}")
    return NOTHING


def _different(peer: Peer, member: Member, own: Own) -> Lack:
    if member.address != peer.address:
        return Lack(f"joined from {member.address}", f"strixd-cli apply on {peer.name}")
    if member.gpus != peer.gpus:
        return Lack(f"brings {member.gpus} GPUs, the file says {peer.gpus}", f"strixd-cli doctor on {peer.name}")
    return NOTHING if peer.name == own.name else _otherwise(member.record, own)


def _otherwise(theirs: Mapping[str, str], own: Own) -> Lack:
    """What another node's strixd says of it."""
    if not theirs:
        return Lack("joined, and its strixd has not said yet what it runs", LOOK)
    if theirs.get("digest") != own.digest:
        why = f"runs image {theirs.get('digest', '')[:19]}, this node {own.digest[:19]}"
        return Lack(why, "strixd-cli image update on the node whose image is older")
    if theirs.get("settings") != own.settings:
        return Lack("has another cluster.toml", "copy the same file to every node, then strixd-cli apply there")
    theirs_over = theirs.get("rung", "")
    if theirs_over and own.rung and theirs_over != own.rung:
        why = f"goes over {theirs_over.upper()}, and this node over {own.rung.upper()}: it follows within seconds"
        return Lack(why, LOOK)
    return NOTHING


def listing(peers: tuple[Peer, ...], report: RayReport) -> str:
    listed = _by_name(report)
    joined = [peer.name for peer in peers if peer.name in listed]
    version = f"Ray {report.version}: " if report.version else ""
    return f"{version}{len(joined)} of {len(peers)} members" + (f" ({', '.join(joined)})" if joined else "")


def versions(own: Own, report: RayReport) -> tuple[str, ...]:
    """Who runs another strixd than this node: no reason to serve nothing."""
    theirs = {m.name: m.record.get("version", own.version) for m in report.members if m.alive}
    others = {name: version for name, version in theirs.items() if version != own.version}
    return tuple(f"{name} runs strixd {version}, this node {own.version}" for name, version in others.items())
