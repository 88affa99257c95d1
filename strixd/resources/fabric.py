"""The link as hardware: what kind it is, and which rungs of the ladder can be taken. Only looked at: no step here mends
a card. What follows for the containers is in rung.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strixd import collectives, ladder
from strixd.fabric import LINKS, Fabric, Pick, pick
from strixd.ladder import Rung, Verdict, Wanted, judge
from strixd.plan import Plan, unguarded
from strixd.ports import Card, Host, Pci, RdmaPort
from strixd.resources import image

USB4 = 40.0
"""Gb/s of two lanes; a passive cable that is too long gets half of it."""


@dataclass(frozen=True, slots=True)
class Desired:
    fabric: Fabric
    management: tuple[str, ...]
    wanted: Wanted


@dataclass(frozen=True, slots=True)
class Observed:
    """`sets`: what the image itself says of the link ("NCCL_IB_DISABLE=1")."""

    pick: Pick
    card: Card | None
    now: float
    sets: str = ""


async def card(host: Host, found: Pick) -> Card | None:
    """The hardware of the fabric link."""
    return await host.hardware.card(found.link.name) if found.link else None


class FabricLink:
    name: ClassVar[str] = "fabric"
    settle: ClassVar[float] = 0.0
    supervised: ClassVar[bool] = True
    guard = staticmethod(unguarded)

    def needs(self, desired: Desired) -> tuple[str, ...]:
        return ()

    async def observe(self, host: Host, desired: Desired) -> Observed:
        found = pick(desired.fabric, await host.links.read(), management=desired.management)
        report = image.report(await host.files.read(image.REPORT))
        return Observed(found, await card(host, found), host.now(), report.sets)

    def plan(self, desired: Desired, observed: Observed) -> Plan:
        if observed.card is None:
            why = observed.pick.why or f"{observed.pick.link.name if observed.pick.link else 'the link'} has just gone"
            return Plan(self.name, (), "blocked", why, LINKS)
        verdict = judge(desired.wanted, observed.card, observed.now)
        facts = _facts(desired.wanted, observed, verdict)
        again = ladder.GRACE if verdict.condition == "waiting" else 0.0
        return Plan(self.name, (), verdict.condition, verdict.why, verdict.hint, facts, again=again)


def _facts(wanted: Wanted, observed: Observed, verdict: Verdict) -> tuple[str, ...]:
    assert observed.card
    best = collectives.told(verdict.best, wanted.dscp)
    overridden = f"the image sets {observed.sets}; strixd's own counts" if observed.sets else ""
    return tuple(
        filter(
            None,
            (
                f"{verdict.kind}: {_rung(verdict.rdma)}; {_rung(verdict.tcp)}",
                *hardware(observed.card),
                overridden,
                *collectives.contradictions(wanted.person, best),
            ),
        )
    )


def _rung(rung: Rung) -> str:
    if not rung.why:
        return str(rung)
    mend = f" (mend: {rung.hint})" if rung.hint else ""
    return f"no {'RDMA' if rung.name == 'rdma' else 'TCP'}: {rung.why}{mend}"


def hardware(card: Card) -> tuple[str, ...]:
    """The card in words: where it sits, what it runs, what its ports do."""
    driver = f"{card.interface}: driver {card.driver or 'unknown'}"
    place = f"{driver}, {_place(card.pci)}" if card.pci else driver
    changes = "unknown" if card.changes is None else str(card.changes)
    slow = card.thunderbolt and 0 < card.speed < USB4
    half = f"{card.speed:g} Gb/s of the {USB4:g} that USB4 can: another cable, or another port, may give the rest"
    told = (f"{place}{_firmware(card)}, {changes} changes of the carrier", *map(_port, card.ports))
    return (*told, half) if slow else told


def _place(pci: Pci) -> str:
    def of(speed: float, width: int) -> str:
        return f"{speed:g} GT/s x{width}" if speed and width else "unknown"

    return f"PCIe {of(pci.speed, pci.width)} (the card can {of(pci.max_speed, pci.max_width)}) at {pci.address}"


def _firmware(card: Card) -> str:
    """Whether it is too old is the doctor's to say, by a table that can be overridden (strixd/doctor/known.toml)."""
    version, package = card.firmware.version or "unknown", card.firmware.package
    return f", firmware {version}" + (f", package {package}" if package else "")


def _port(port: RdmaPort) -> str:
    state = f"{port.state or 'state unknown'}, {port.physical or 'physically unknown'}"
    rate = f", {port.rate:g} Gb/s" if port.rate else ""
    payload = f", RDMA MTU {port.mtu}" if port.mtu else ""
    return f"{port}: {port.transport or 'protocol unknown'}, {state}{rate}{payload}"
