"""The fabric link, addresses and MTU, and whether the firewall lets the peers in."""

from __future__ import annotations

from collections.abc import Mapping

from strixd.doctor.checks.daemon import resource
from strixd.doctor.facts import Cables, Crossed, Door, Doors, Lowered, Own
from strixd.doctor.finding import Check, Judged
from strixd.fabric import OWN_NETWORK, Pick, overlap
from strixd.host.crossing import Sight
from strixd.ladder import CABLE
from strixd.ports import Card, Link
from strixd.resources import mtu as mtus

SLOW, LANES = 10.0, 40.0
"""Gb/s: below that a link holds every token up; both lanes of a Thunderbolt cable together."""
OFTEN = 20
"""Changes of carrier since boot, and HOURLY in the mean, from which on a link counts as flapping. Setting it up takes
two to six."""
HOURLY = 2.0


def card(pick: Pick) -> Judged:
    if pick.link is None:
        return Judged("fault", pick.why, "ip -br link; then interface, mac or driver of this node in cluster.toml")
    if pick.note and not pick.spare:
        return Judged("warning", pick.note, "write the new name into cluster.toml, or mac instead of interface")
    return Judged("ok", f"{pick.link.name}, driver {pick.link.driver or 'unknown'}")


def carrier(pick: Pick, cables: Cables) -> Judged | None:
    """Of the first link, also while the spare is in its place."""
    first = cables.first.link
    if pick.spare:
        if first is None:
            return Judged("fault", pick.note, "ip -br link; then interface, mac or driver of this node in cluster.toml")
        mend = "strixd-cli apply" if first.carrier else CABLE.format(first.name)
        return Judged("warning" if first.carrier else "fault", pick.note, mend)
    if pick.link is None:
        return None
    if pick.link.carrier:
        return Judged("ok", f"{pick.link.name} has carrier")
    return Judged("fault", f"no carrier on {pick.link.name}", CABLE.format(pick.link.name))


def spare(cables: Cables) -> Judged | None:
    if cables.spare is None:
        return None
    if cables.spare.link is None:
        mend = "ip -br link; then spare-interface, spare-mac or spare-driver of this node in cluster.toml"
        return Judged("warning", f"the spare would not help: {cables.spare.why}", mend)
    name = cables.spare.link.name
    if cables.spare.link.carrier:
        return Judged("ok", f"{name} has carrier")
    return Judged("warning", f"the spare would not help: no carrier on {name}", CABLE.format(name))


def speed(hardware: Card | None) -> Judged | None:
    """Thunderbolt can be negotiated to half its rate."""
    if hardware is None or not hardware.carrier or not (hardware.speed or hardware.thunderbolt):
        return None  # a link without carrier has no rate, and some drivers state none
    if not hardware.speed:
        return Judged(
            "unknown", f"the rate of {hardware.interface} cannot be read", "boltctl list; journalctl -k -g thunderbolt"
        )
    least = LANES if hardware.thunderbolt else SLOW
    read, wanted = f"{hardware.speed:g} Gb/s on {hardware.interface}", f"{least:g} Gb/s or more"
    mend = "another cable or port; is the cable rated for it?"
    return Judged("warning", read, mend, wanted) if hardware.speed < least else Judged("ok", read, "", wanted)


def flaps(hardware: Card | None, uptime: float) -> Judged | None:
    if hardware is None:
        return None
    if hardware.changes is None:
        return Judged("unknown", f"the changes of the carrier of {hardware.interface} cannot be read")
    hours = uptime / 3600
    read = f"the carrier of {hardware.interface} has changed {hardware.changes} times, {hours:.1f} h after boot"
    if hardware.changes > OFTEN and hardware.changes > HOURLY * hours:
        return Judged("warning", read, f"journalctl -k -b -g {hardware.interface}; another cable; is the plug seated?")
    return Judged("ok", read)


def address(pick: Pick, own: Own) -> Judged | None:
    if pick.link is None:
        return None
    read = f"{', '.join(pick.link.addresses) or 'no address'} on {pick.link.name}"
    held = own.node.address in pick.link.addresses
    return Judged("ok" if held else "fault", read, "" if held else "strixd-cli apply", own.node.address)


def overlaps(pick: Pick, own: Own, links: tuple[Link, ...]) -> Judged:
    told = overlap(own.node.address, pick, links)
    if told:
        return Judged("fault", told, OWN_NETWORK)
    return Judged("ok", f"no other link's network overlaps {own.node.address}")


def mtu(pick: Pick, own: Own, lowered: Lowered) -> Judged | None:
    """The largest that the device takes of what the file asks; strixd goes down to 1500 when that does not cross."""
    if pick.link is None:
        return None
    wanted = mtus.largest(mtus.Asked(own.config.fabric.mtu), pick.link)
    read = f"{pick.link.mtu} on {pick.link.name}"
    if pick.link.mtu == wanted:
        return Judged("ok", read, "", str(wanted))
    mend = "strixd-cli apply on all nodes, within half a minute; strixd-cli status then says what crosses"
    return Judged("warning", f"{read}; {lowered.record}" if lowered.record else read, mend, str(wanted))


_SIGHTS: Mapping[Sight, str] = {
    "there": "large packets to {} are lost on the way there",
    "back": "large packets from {} are lost on the way here",
    "silent": "{} does not answer over this link",
    "crosses": "",
}


def crossing(crossed: Crossed | None) -> Judged | None:
    if crossed is None:
        return Judged(
            "unknown", "nothing can cross: no carrier, or not the address of cluster.toml", "strixd-cli apply"
        )
    lost = [_SIGHTS[sight].format(name) for name, sight in crossed.seen.items() if sight != "crosses"]
    wanted = f"{crossed.size} bytes in one piece, both ways"
    if not lost:
        return Judged("ok", f"{crossed.size} bytes cross to {', '.join(crossed.seen)} and back", "", wanted)
    if set(crossed.seen.values()) <= {"crosses", "silent"}:
        mend = "is that node on, and its link up? strixd-cli doctor there"
    else:
        mend = "the same MTU on both ends and on what lies between: ip -br link, here and there"
    return Judged("fault", "; ".join(lost), mend, wanted)


_DOORS: Mapping[Door, str] = {
    "open": "",
    "refused": "{}: port {} is closed: nobody listens, or the fence refuses this address",
    "forbidden": "{}: port {} is rejected on the way (ICMP)",
    "silent": "{}: port {} does not answer",
}


def ports(doors: Doors) -> Judged:
    """A reset proves that packets get there; whether Ray is down or the fence of strixd has sent it cannot be told."""
    shut = [_DOORS[door].format(name, port) for name, port, door in doors.tried if door != "open"]
    if not shut:
        return Judged("ok", f"a connection to {', '.join(f'{name}:{port}' for name, port, _ in doors.tried)} was made")
    if any(door in ("forbidden", "silent") for _, _, door in doors.tried):
        mend = "firewall-cmd --get-active-zones there: the fabric interface belongs to the zone of cluster.toml"
        return Judged("fault", "; ".join(shut), mend)
    return Judged("warning", "; ".join(shut), "strixd-cli status there: does its Ray run?")


CHECKS = (
    Check("card", "link", card, "the card that cluster.toml names", "nothing here guesses another one"),
    Check("carrier", "link", carrier, "a cable with life at both ends", "the nodes have no other way to each other"),
    Check(
        "spare",
        "link",
        spare,
        "a second cable with life at both ends",
        "without it nothing is served while the first one is cut",
    ),
    Check(
        "speed",
        "link",
        speed,
        "the rate that card and cable are made for",
        "every token crosses the link several times for each layer",
        doubt="ok",
    ),
    Check("flaps", "link", flaps, "a link that stays", "each time it goes, all ranks stop", doubt="ok"),
    Check("address", "addresses", address, "the address of cluster.toml", "the nodes find each other by it"),
    Check(
        "overlap",
        "addresses",
        overlaps,
        "a network of its own for the fabric",
        "packets to the peers would leave by the other link",
    ),
    Check("mtu", "addresses", mtu, "the MTU of cluster.toml", "small packets cost throughput"),
    Check(
        "crossing",
        "addresses",
        crossing,
        "large packets cross in one piece, both ways",
        "an MTU that is set and does not cross stops the ranks at the first large message",
    ),
    Check(
        "network",
        "addresses",
        resource("network"),
        "strixd has the link as it should be",
        "what is held or blocked is not mended",
    ),
    Check(
        "firewall",
        "firewall",
        resource("firewall"),
        "the zone and the fence are in force",
        "a wrong zone keeps the peers out, a missing fence lets strangers in",
    ),
    Check(
        "ports",
        "firewall",
        ports,
        "a connection to each peer's Ray can be made",
        "rules that look right may still keep it out",
    ),
)
