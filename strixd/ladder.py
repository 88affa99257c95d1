"""What a link really is, and the best way over it for the ranks: RDMA, else TCP. Pure.

A rung of the ladder passes its check or says why it does not; what could not be read does not pass. A fixed kind is
demanded: another one is not made do with. `ethernet` and `thunderbolt` mean TCP, whatever else a card could do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from strixd.elapsed import elapsed
from strixd.ports.hardware import WINDOW, Card, RdmaPort

Kind = Literal["roce", "infiniband", "thunderbolt", "ethernet"]
Name = Literal["rdma", "tcp"]
ROCE_V2 = "RoCE v2"
CABLE = "check the cable and whether the other end is on; ethtool {}"
"""What to do about a link without carrier."""
OFF = "NCCL_IB_DISABLE"
GRACE = 10.0
"""Seconds that RDMA has to come, where it can be expected: a driver loads late, and a port and its GIDs come after the
carrier. As long must it be gone before a model is ended for it."""
LOSSES = 3
"""So often lost within WINDOW, a link is no ground for RDMA: its queue pairs do not outlive a reset of the card."""
COST = "about 70 µs instead of 5 µs"
"""Of a message: what RDMA is worth, measured by the guide's author on an E810."""
RDMA_DRIVERS = ("ice", "mlx4_en", "mlx5_core", "bnxt_en", "qede")
"""Ethernet drivers whose cards have RDMA devices in most cases."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the file says of the link. `address`: the node's own, without prefix; `person`: what [image] environment
    says of the link, which wins over what is derived."""

    kind: Kind | Literal["auto"] = "auto"
    allow_tcp: bool = True
    dscp: int = 0
    address: str = ""
    person: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rung:
    """A way, and why it cannot be taken: "" when it can; `hint`: what mends that. `port` and `gid` (an index) of RDMA;
    no index is needed on InfiniBand."""

    name: Name
    interface: str
    why: str = ""
    hint: str = ""
    port: RdmaPort | None = None
    gid: int | None = None
    speed: float = 0.0

    def __str__(self) -> str:
        if self.port is None:
            return f"TCP over {self.interface}" + (f", {self.speed:g} Gb/s" if self.speed else "")
        index = "" if self.gid is None else f", GID {self.gid}"
        return f"RDMA ({'InfiniBand' if self.port.transport == 'InfiniBand' else ROCE_V2}, {self.port}{index})"


@dataclass(frozen=True, slots=True)
class Verdict:
    """`kind`: what was found; the rungs, the best first. `condition`, `why` and `hint` as in a plan: ok means that one
    of them can be taken."""

    kind: Kind
    rdma: Rung
    tcp: Rung
    condition: Literal["ok", "waiting", "blocked"] = "ok"
    why: str = ""
    hint: str = ""

    @property
    def best(self) -> Rung:
        return self.tcp if self.rdma.why else self.rdma


def judge(wanted: Wanted, card: Card, now: float) -> Verdict:
    """`now`: seconds since the epoch."""
    kind, rdma = classify(wanted, card), _rdma(wanted, card)
    tcp = Rung("tcp", card.interface, "" if card.carrier else _no_carrier(card), speed=card.speed)
    if tcp.why:
        return Verdict(kind, rdma, tcp, "blocked", tcp.why, CABLE.format(card.interface))
    if rdma.why and _may_come(wanted, card) and elapsed(card.since, now) < GRACE:
        then = f"when it does not come within {GRACE:.0f} s, TCP is taken, {COST}"
        why = f"RDMA is not there: {rdma.why}; {then if wanted.allow_tcp else f'it has {GRACE:.0f} s to come'}"
        return Verdict(kind, rdma, tcp, "waiting", why, rdma.hint)
    if wanted.kind not in ("auto", kind):
        why = f'[fabric] kind = "{wanted.kind}", and {card.interface} is {found(card)}'
        hint = rdma.hint if wanted.kind in ("roce", "infiniband") else ""
        hint = hint or f'write kind = "{kind}" or "auto", then strixd-cli apply'
        return Verdict(kind, rdma, tcp, "blocked", why, hint)
    if rdma.why and not wanted.allow_tcp:
        why = f"{rdma.why}, and [fabric] allow-tcp = false"
        return Verdict(kind, rdma, tcp, "blocked", why, rdma.hint or "set allow-tcp = true, then strixd-cli apply")
    return Verdict(kind, rdma, tcp)


def classify(wanted: Wanted, card: Card) -> Kind:
    """What the link is. A card for RoCE is one for Ethernet, too, where that is demanded."""
    if card.thunderbolt:
        return "thunderbolt"
    transports = {port.transport for port in card.ports}
    if "InfiniBand" in transports:
        return "infiniband"
    return "roce" if "RoCE" in transports and wanted.kind != "ethernet" else "ethernet"


def found(card: Card) -> str:
    """The card in words, with what its RDMA devices are."""
    what = "Thunderbolt" if card.thunderbolt else f"a card of driver {card.driver}" if card.driver else "plain Ethernet"
    told = [f"{port.device} is {port.transport or 'of an unknown protocol'}" for port in card.ports]
    mode = ", in safe mode" if card.firmware.safe_mode else ""
    return f"{what}{mode} ({', '.join(told) or 'no RDMA device is bound to it'})"


def _no_carrier(card: Card) -> str:
    return f"no carrier on {card.interface}" if card.carrier is False else f"the carrier of {card.interface} is unknown"


def _may_come(wanted: Wanted, card: Card) -> bool:
    """RDMA that is not there may be on its way."""
    if card.thunderbolt or card.firmware.safe_mode or forbidden(wanted) or card.lost >= LOSSES:
        return False
    if card.ports:
        return any(port.transport != "iWARP" for port in card.ports)
    return card.driver in RDMA_DRIVERS or wanted.kind in ("roce", "infiniband")


def forbidden(wanted: Wanted) -> str:
    """Why RDMA is not wanted at all, "" when it is."""
    if wanted.kind in ("ethernet", "thunderbolt"):
        return f'[fabric] kind = "{wanted.kind}" means TCP'
    if wanted.person.get(OFF, "0") != "0":
        return f"[image] environment says {OFF}={wanted.person[OFF]}"
    return ""


def _rdma(wanted: Wanted, card: Card) -> Rung:
    """The first port that will do; else what is wrong with the first."""
    if card.thunderbolt:
        return Rung("rdma", card.interface, "Thunderbolt carries TCP only")
    if why := forbidden(wanted):
        mend = "take that out of cluster.toml, then strixd-cli apply" if OFF in why else ""
        return Rung("rdma", card.interface, why, mend)
    if card.firmware.safe_mode:
        why = f"{card.interface} is in safe mode: its driver found no DDP package"
        return Rung("rdma", card.interface, why, "dnf install linux-firmware; reboot; journalctl -k -g 'ice.*DDP'")
    if not card.ports:
        why = f"no RDMA device is bound to {card.interface}"
        hint = "modprobe irdma; journalctl -k -g irdma" if card.driver == "ice" else "rdma link; lsmod"
        return Rung("rdma", card.interface, why, hint if card.driver in RDMA_DRIVERS else "")
    if card.lost >= LOSSES:
        why = f"{card.interface} lost its carrier or its RDMA port {card.lost} times within {WINDOW / 60:.0f} min"
        return Rung("rdma", card.interface, why, f"look at cable and card: journalctl -k -g {card.interface}")
    rungs = [_port(wanted, card, port) for port in card.ports]
    return next((rung for rung in rungs if not rung.why), rungs[0])


def _port(wanted: Wanted, card: Card, port: RdmaPort) -> Rung:
    rung = Rung("rdma", card.interface)
    if port.transport in ("iWARP", ""):
        why = f"{port} is {port.transport or 'of an unknown protocol'}, not RoCE"
        hint = _to_roce(card) if port.transport else f"cat /sys/class/infiniband/{port.device}/node_type"
        return replace(rung, why=why, hint=hint)
    if port.state != "ACTIVE" or port.physical != "LinkUp":
        why = f"{port} is {port.state or 'in an unknown state'}, {port.physical or 'physically unknown'}"
        hint = f"rdma link show {port.device}/{port.number}; journalctl -k -g {port.device}"
        return replace(rung, why=why, hint=hint)
    return replace(rung, port=port) if port.transport == "InfiniBand" else _by_gid(wanted, rung, port)


def _by_gid(wanted: Wanted, rung: Rung, port: RdmaPort) -> Rung:
    """The index moves whenever addresses come and go: it is looked up each time."""
    ours = [gid for gid in port.gids if gid.ip == wanted.address and gid.interface in ("", rung.interface)]
    second = [gid.index for gid in ours if gid.kind == ROCE_V2]
    if second:
        return replace(rung, port=port, gid=second[0])
    only = f"only as {ours[0].kind or 'an unknown kind'}" if ours else "in none"
    why = f"{port} has {wanted.address} {only} of its GIDs, and needs it as {ROCE_V2}"
    return replace(rung, why=why, hint=f"ip addr show {rung.interface}; rdma link show {port.device}/{port.number}")


def _to_roce(card: Card) -> str:
    """ice has a parameter for each protocol, of which one may be on (Documentation/networking/devlink/ice.rst)."""
    place = f"pci/{card.pci.address}" if card.pci else "pci/ADDRESS"
    turn = f"devlink dev param set {place} name enable_{{}} value {{}} cmode runtime"
    own = "with Intel's own irdma: options irdma roce_ena=1 in /etc/modprobe.d"
    return f"{turn.format('iwarp', 'false')} && {turn.format('roce', 'true')}; {own}"
