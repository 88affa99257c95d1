"""The card's place and firmware, and whether RDMA can be used over the link."""

from __future__ import annotations

from strixd import ladder
from strixd.desired import derive
from strixd.doctor.checks.daemon import resource
from strixd.doctor.facts import Own
from strixd.doctor.finding import Check, Judged
from strixd.doctor.known import Known, older
from strixd.ladder import RDMA_DRIVERS, Verdict
from strixd.orders import Orders
from strixd.ports import Card

LANES = 4
"""Of PCIe: an E810 in such a slot gives about 50 Gb/s, which is enough."""
LARGEST = 4096
"""Bytes: the largest payload of an RDMA packet."""
_SWITCHED = 2
"""Nodes that need no switch between them."""


def firmware(hardware: Card | None, known: Known) -> Judged | None:
    least = known.nic.least.get(hardware.driver, "") if hardware else ""
    if hardware is None or not least:
        return None
    version, wanted = hardware.firmware.version, f"{least} or later, for driver {hardware.driver}"
    if not version:
        return Judged("unknown", f"{hardware.interface} does not tell its firmware", f"ethtool -i {hardware.interface}")
    if older(version.partition(" ")[0], least):
        mend = "the card's update tool (nvmupdate64e of Intel for an E810), then a cold start"
        return Judged("warning", f"{version} on {hardware.interface}", mend, wanted)
    return Judged("ok", f"{version} on {hardware.interface}", "", wanted)


def pcie(hardware: Card | None) -> Judged | None:
    """Fewer lanes than the card has are as the slot is; a lower speed than it can is negotiated, and mostly a riser."""
    if hardware is None or hardware.pci is None:
        return None
    pci = hardware.pci
    read = f"{pci.speed:g} GT/s x{pci.width} at {pci.address}; the card can {pci.max_speed:g} GT/s x{pci.max_width}"
    if not (pci.speed and pci.width and pci.max_speed and pci.max_width):
        return Judged("unknown", f"the PCIe link of {pci.address} cannot be read", f"lspci -vv -s {pci.address}")
    if pci.speed < pci.max_speed or pci.width < min(LANES, pci.max_width):
        mend = f"seat the card again; another riser or slot; lspci -vv -s {pci.address} shows LnkSta beside LnkCap"
        return Judged("warning", read, mend)
    return Judged("ok", read)


def _ladder(hardware: Card, own: Own, orders: Orders) -> Verdict:
    """As of a card that has had its time to come."""
    return ladder.judge(derive(own.config, own.node, orders).fabric.wanted, hardware, hardware.since + ladder.GRACE)


def rdma(hardware: Card | None, own: Own, orders: Orders) -> Judged | None:
    """TCP is a fault only where cluster.toml forbids it, and a warning where the card could do better."""
    if hardware is None:
        return None
    verdict = _ladder(hardware, own, orders)
    if (verdict.rdma.why or verdict.why) and _unread(hardware):
        return Judged("unknown", verdict.why or verdict.rdma.why, verdict.hint or verdict.rdma.hint)
    if verdict.condition != "ok":
        return Judged("fault", verdict.why, verdict.hint or "strixd-cli config show")
    if not verdict.rdma.why:
        return Judged("ok", str(verdict.rdma))
    read = f"{verdict.tcp}; no RDMA: {verdict.rdma.why}"
    if _could(hardware, own):
        return Judged("warning", f"{read}: {ladder.COST} for each message", verdict.rdma.hint)
    return Judged("ok", read, "", "TCP: this link has no RDMA, or none is wanted")


def _unread(card: Card) -> bool:
    """Something that decides could not be read."""
    return card.carrier is None or any("" in (each.transport, each.state, each.physical) for each in card.ports)


def _could(card: Card, own: Own) -> bool:
    """Nobody has said that it shall not."""
    turned_off = own.config.image.environment.get(ladder.OFF, "0") != "0"
    if card.thunderbolt or turned_off or own.config.fabric.kind in ("ethernet", "thunderbolt"):
        return False
    return bool(card.ports) or card.driver in RDMA_DRIVERS


def payload(hardware: Card | None, own: Own, orders: Orders) -> Judged | None:
    """Only of a port of RoCE that is used: on InfiniBand the fabric says."""
    port = _ladder(hardware, own, orders).rdma.port if hardware else None
    if port is None or port.layer != "Ethernet":
        return None
    read = f"{port.mtu} bytes on {port}"
    if port.mtu >= LARGEST:
        return Judged("ok", read)
    return Judged("warning", read, "the MTU of the link allows no more: fabric.mtu in cluster.toml, 4200 or larger")


def lossless(hardware: Card | None, own: Own, orders: Orders) -> Judged | None:
    """RoCE over a switch needs queues that do not overflow. What the switch has been told cannot be read from here."""
    verdict = _ladder(hardware, own, orders) if hardware else None
    if verdict is None or verdict.rdma.why or verdict.kind != "roce" or len(own.config.nodes) <= _SWITCHED:
        return None
    dscp = own.config.fabric.dscp
    if not dscp:
        mend = "dscp = 26 in [fabric] of cluster.toml, strixd-cli apply, and the switch told accordingly"
        return Judged("warning", "RDMA is sent without a DSCP, so no switch can tell it from the rest", mend)
    wanted = (
        f"on every switch port, and on the ports of the cards: trust DSCP, {dscp} into priority {dscp >> 3}; PFC on "
        f"for priority {dscp >> 3} alone; ETS with a share of the bandwidth for it"
    )
    mend = f"the switch's own commands; of a card: dcb pfc show dev {hardware.interface if hardware else ''}"
    return Judged("unknown", f"RDMA is sent with DSCP {dscp}; the switch is not asked", mend, wanted)


CHECKS = (
    Check(
        "nic-firmware",
        "firmware",
        firmware,
        "firmware that RDMA is known to work with",
        "older ones lose RDMA or reset",
        doubt="ok",
    ),
    Check(
        "pcie",
        "pcie",
        pcie,
        f"the card's full speed on {LANES} lanes or more",
        "what the slot does not carry no cable brings",
        doubt="ok",
    ),
    Check("rdma", "rdma", rdma, "RDMA on this link", "over TCP each message takes fourteen times as long"),
    Check("fabric", "rdma", resource("fabric"), "strixd has a way for the ranks", "without one nothing is served"),
    Check(
        "lossless",
        "rdma",
        lossless,
        "a switch that loses no RDMA packet",
        "each loss stops a queue pair for milliseconds",
        doubt="ok",
    ),
    Check(
        "dscp",
        "rdma",
        resource("dscp"),
        "the DSCP of cluster.toml on all RDMA of this port",
        "what other programs send is in no class of the switch, and lost first",
        doubt="ok",
    ),
    Check(
        "rdma-mtu",
        "addresses",
        payload,
        f"{LARGEST} bytes in an RDMA packet",
        "smaller ones cost bandwidth",
        doubt="ok",
    ),
)
