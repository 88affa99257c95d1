"""The zone of the fabric link in firewalld as in force now, and a fence around the ports of the cluster.

What lasts is the zone in the NetworkManager profile (resources/network.py): a zone that is set only here is lost
at the next activation. Here its effect is watched, drift is mended, and a zone of our own is defined where asked. The
fence is a policy of ours that looks at what comes in before any zone does and only ever rejects, so that no zone of
another interface is touched and all the same none opens the cluster's ports.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_interface
from typing import ClassVar

from strixd import richrule
from strixd.fabric import OWN_NETWORK, Fabric, Pick, overlap, pick
from strixd.plan import Condition, Effect, Plan, Step, unguarded
from strixd.ports import Host, Policy, Running, Zone

EPHEMERAL = "/proc/sys/net/ipv4/ip_local_port_range"
OFF = "or set firewall = false in [fabric] of cluster.toml"
AWAY: Mapping[Running, tuple[Condition, str, str]] = {
    "starting": ("waiting", "firewalld is starting", ""),
    "stopped": ("blocked", "firewalld does not run on this host", f"systemctl start firewalld, {OFF}"),
    "failed": ("blocked", "firewalld has failed", f"journalctl -u firewalld, {OFF}"),
    "masked": (
        "blocked",
        "firewalld is masked on this host",
        f"systemctl unmask firewalld && systemctl start firewalld, {OFF}",
    ),
    "absent": ("blocked", "there is no firewalld on this host", f"dnf install firewalld, {OFF}"),
}
"""What it means when firewalld cannot be asked: the condition, why, and what a person can do."""


@dataclass(frozen=True, slots=True)
class Own:
    """What is strixd's own in firewalld."""

    zone: Zone | None = None
    policy: Policy | None = None

    def __str__(self) -> str:
        zone = f"zone {self.zone.name} ({len(self.zone.rules)} rules)" if self.zone else ""
        policy = f"policy {self.policy.name} ({len(self.policy.rules)} rules)" if self.policy else ""
        return " and ".join(filter(None, (zone, policy)))


@dataclass(frozen=True, slots=True)
class Define:
    """Make the permanent definitions of what is ours be `own`, instead of `before`, and put them in force. `moving`:
    the link, where its profile and zone are changed at the same time."""

    effect: ClassVar[Effect] = Effect.NOW
    own: Own
    before: Own
    moving: str = ""

    def __str__(self) -> str:
        if self.own == Own():
            return f"remove firewall {self.before}"
        return f"{'add' if self.before == Own() else 'change'} firewall {self.own}"

    def undo(self) -> Step:
        return Define(self.before, self.own, self.moving)

    async def apply(self, host: Host) -> None:
        """First what comes, then what goes."""
        if self.own != Own():
            await host.firewall.define(zone=self.own.zone, policy=self.own.policy, moving=self.moving)
        zone = self.before.zone.name if self.before.zone and not self.own.zone else ""
        policy = self.before.policy.name if self.before.policy and not self.own.policy else ""
        if zone or policy:
            await host.firewall.remove(zone=zone, policy=policy, moving=self.moving)


@dataclass(frozen=True, slots=True)
class Move:
    """Put the interface into another zone, now. A zone of "" is the default one."""

    effect: ClassVar[Effect] = Effect.NOW
    interface: str
    zone: str
    before: str

    def __str__(self) -> str:
        return f"move {self.interface} from zone {self.before or 'default'} to {self.zone or 'default'}"

    def undo(self) -> Step:
        return Move(self.interface, self.before, self.zone)

    async def apply(self, host: Host) -> None:
        await host.firewall.move(self.interface, self.zone)


@dataclass(frozen=True, slots=True)
class Revive:
    """Start firewalld, which nobody stopped. It has no Restart= of its own, and ends with the system bus, say (2.3)."""

    effect: ClassVar[Effect] = Effect.NOW

    def __str__(self) -> str:
        return "start firewalld, which has failed"

    def undo(self) -> Step | None:
        return None

    async def apply(self, host: Host) -> None:
        await host.firewall.start()


@dataclass(frozen=True, slots=True)
class Desired:
    """`zone` "" when the file says `firewall = false`; `own`: its definition when it is a zone of ours, and the fence.
    `fenced`: the ports behind the fence, in words; `ephemeral`: the first and last that the kernel should choose;
    `former`: a policy that we made when the file said otherwise; `profile`: the uuid of the link's, `address` ours."""

    fabric: Fabric
    management: tuple[str, ...]
    zone: str
    own: Own = Own()
    fenced: str = ""
    ephemeral: tuple[int, int] = (0, 65535)
    former: str = ""
    profile: str = ""
    address: str = ""


@dataclass(frozen=True, slots=True)
class Observed:
    """`links`: all but the loopback. `zones`: those of the other links, read only when there is no fence in force.
    `ephemeral`: what this kernel says of the ports it chooses. `ours`: the link is in the right zone, or has our
    profile. `ssh`: where sshd listens."""

    pick: Pick
    links: tuple[str, ...] = ()
    running: Running = "running"
    now: str = ""
    permanent: str = ""
    own: Own = Own()
    zones: Mapping[str, str] = field(default_factory=dict)
    ephemeral: str = ""
    ours: bool = True
    ssh: tuple[int, ...] = ()
    overlap: str = ""


class Firewall:
    name: ClassVar[str] = "firewall"
    settle: ClassVar[float] = 3.0
    supervised: ClassVar[bool] = False
    guard = staticmethod(unguarded)

    def needs(self, desired: Desired) -> tuple[str, ...]:
        return ()

    async def observe(self, host: Host, desired: Desired) -> Observed:
        all_links = await host.links.read()
        found = pick(desired.fabric, all_links, management=desired.management)
        links = tuple(sorted(link.name for link in all_links if link.name != "lo"))
        running = await host.firewall.running()
        if running != "running":
            return Observed(found, links, running)
        if not desired.zone:
            return Observed(found, links, own=Own(policy=await host.firewall.policy(desired.former)))
        ssh = await host.links.ssh_ports()
        desired = _sparing(desired, ssh)
        own, fabric = await _own(host, desired.own), found.link.name if found.link else ""
        now = await host.firewall.zone_of(fabric) if fabric else ""
        permanent = await host.firewall.permanent_zone_of(fabric) if fabric else ""
        others = [name for name in links if name != fabric and own.policy != desired.own.policy]
        zones = {name: await host.firewall.zone_of(name) for name in others}
        ephemeral = await host.files.read(EPHEMERAL) or ""
        ours = now == desired.zone or not fabric or await _has(host, fabric, desired.profile)
        shared = overlap(desired.address, found, all_links)
        return Observed(found, links, running, now, permanent, own, zones, ephemeral, ours, ssh, shared)

    def plan(self, desired: Desired, observed: Observed) -> Plan:
        if not desired.zone:
            gone: tuple[Step, ...] = () if observed.own == Own() else (Define(Own(), observed.own),)
            interface = observed.pick.link.name if observed.pick.link else ""
            return Plan(self.name, gone, facts=_not_ours(observed), interface=interface)
        if observed.running in AWAY:
            condition, why, hint = AWAY[observed.running]
            steps: tuple[Step, ...] = (Revive(),) if observed.running == "failed" else ()
            return Plan(self.name, steps, condition, why, hint)
        desired = _sparing(desired, observed.ssh)
        steps = () if desired.own == observed.own else (Define(desired.own, observed.own),)
        link, facts = observed.pick.link, _facts(desired, observed)
        if observed.overlap:  # the fence would let that network in
            return Plan(self.name, condition="blocked", why=observed.overlap, hint=OWN_NETWORK, facts=facts)
        if link is None:
            return Plan(self.name, steps, "blocked", observed.pick.why, "ip -br link", facts)
        if not link.carrier:  # NetworkManager takes the zone away with the address, and brings both back
            return Plan(self.name, steps, "waiting", f"no carrier on {link.name}", facts=facts)
        if not observed.ours:
            return self._before_the_link(desired, observed, link.name)
        if observed.now != desired.zone:
            steps += (Move(link.name, desired.zone, observed.now),)
        return Plan(self.name, steps, facts=facts, interface=link.name)

    def _before_the_link(self, desired: Desired, observed: Observed, link: str) -> Plan:
        """Another profile has it, and the zone comes with ours. A zone of our own must be there before; the fence alone
        is put up while NetworkManager asks whether the address is free, which takes as long."""
        alone = desired.own.zone is None
        define = Define(desired.own, observed.own, link if alone else "")
        steps = () if desired.own == observed.own else (define,)
        why, facts = f"{link} has another profile", _facts(desired, observed)
        return Plan(self.name, steps, "waiting", why, facts=facts, interface="" if alone else link)


def _sparing(desired: Desired, ssh: tuple[int, ...]) -> Desired:
    """An administrator who comes in by a port behind the fence is not shut out: sessions go on, new ones would not."""
    policy = desired.own.policy
    spared = [str(port) for port in ssh if policy and richrule.sparing(policy, (port,)) != policy]
    if policy is None or not spared:
        return desired
    own = replace(desired.own, policy=richrule.sparing(policy, ssh))
    return replace(desired, own=own, fenced=f"{desired.fenced}, but for SSH on {' and '.join(spared)}")


async def _has(host: Host, interface: str, profile: str) -> bool:
    device = await host.network.device(interface)
    return device is not None and device.profile == profile


async def _own(host: Host, desired: Own) -> Own:
    zone = await host.firewall.zone(desired.zone.name) if desired.zone else None
    policy = await host.firewall.policy(desired.policy.name) if desired.policy else None
    return Own(zone, policy)


def _not_ours(observed: Observed) -> tuple[str, ...]:
    links = ", ".join(observed.links) or "no link"
    return (
        "not ours: the file says firewall = false",
        f"nothing of strixd's keeps the ports of the cluster from being reached over any interface: {links}",
    )


def _facts(desired: Desired, observed: Observed) -> tuple[str, ...]:
    return (*_placed(desired, observed), *_reachable(desired, observed), *_beyond(desired, observed))


def _placed(desired: Desired, observed: Observed) -> tuple[str, ...]:
    if observed.pick.link is None:
        return ()
    interface = observed.pick.link.name
    facts = (f"{interface} is in zone {observed.now or 'default'}",)
    if observed.permanent in ("", desired.zone):
        return facts
    command = f"firewall-cmd --permanent --zone={observed.permanent} --remove-interface={interface}"
    return (*facts, f"the permanent file of zone {observed.permanent} names {interface} too; to mend: {command}")


def _reachable(desired: Desired, observed: Observed) -> tuple[str, ...]:
    """Over which interfaces the cluster's ports can be reached, as far as the policy and the zones tell."""
    if desired.own.policy is None:
        return ()
    name, ports = desired.own.policy.name, f"the ports of the cluster (TCP {desired.fenced})"
    if observed.own.policy == desired.own.policy:
        over = f" ({observed.pick.link.name})" if observed.pick.link and observed.ours else ""
        network = ip_interface(desired.address).network if desired.address else "the fabric"
        return (f"{ports} are reachable from {network}{over} only: policy {name} is in force",)
    left = ", ".join(f"{link} (zone {zone or 'default'})" for link, zone in observed.zones.items()) or "no other link"
    return (f"policy {name} is not in force as it should be: {ports} are as open as its zone leaves them on {left}",)


def _beyond(desired: Desired, observed: Observed) -> tuple[str, ...]:
    """Ranks let the kernel choose their ports; an administrator may have told it to choose elsewhere."""
    first, last = desired.ephemeral
    chosen = [int(each) for each in observed.ephemeral.split()]
    if all(first <= port <= last for port in chosen):
        return ()
    chooses = f"this kernel chooses ports {chosen[0]}-{chosen[-1]} for the ranks, and only {first}-{last} are fenced"
    return (f'{chooses}; to mend: sysctl -w net.ipv4.ip_local_port_range="{first} {last}"',)
