"""Which network cards this host has, by sysfs: for whoever writes the first cluster.toml, before any daemon runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

KNOWN = ("ice", "mlx5_core", "bnxt_en", "thunderbolt-net")
"""Drivers of links that are fast enough to be meant: E810, ConnectX, Broadcom, Thunderbolt."""


@dataclass(frozen=True, slots=True)
class Card:
    """`speed` in Mb/s, 0 when it is not known; `management`: the default route leaves by it."""

    interface: str
    driver: str
    mac: str
    speed: int = 0
    carrier: bool = False
    management: bool = False

    def __str__(self) -> str:
        speed = f", {self.speed // 1000} Gb/s" if self.speed >= 1000 else ""
        cable = "" if self.carrier else ", no carrier"
        way = ", the way in: its default route" if self.management else ""
        return f"{self.interface} ({self.driver or 'no driver'}, {self.mac}{speed}{cable}{way})"


def cards(root: Path = Path("/")) -> tuple[Card, ...]:
    """Real ones, the likeliest first: those of KNOWN drivers, then those with a carrier, the way in last."""
    away = _default_routes(root)
    found = [_card(folder, away) for folder in sorted((root / "sys/class/net").glob("*")) if _is_real(folder)]
    return tuple(sorted(found, key=lambda card: (card.management, card.driver not in KNOWN, not card.carrier)))


def fitting(found: tuple[Card, ...]) -> Card | None:
    """The one that is certainly meant, if there is one."""
    likely = [card for card in found if card.driver in KNOWN and not card.management]
    with_cable = [card for card in likely if card.carrier]
    return next(iter(only), None) if len(only := with_cable or likely) == 1 else None


def _is_real(folder: Path) -> bool:
    return (folder / "device").exists()


def _card(folder: Path, away: frozenset[str]) -> Card:
    driver = folder / "device/driver"
    return Card(
        interface=folder.name,
        driver=driver.resolve().name if driver.exists() else "",
        mac=_text(folder / "address"),
        speed=_number(folder / "speed"),
        carrier=_text(folder / "carrier") == "1",
        management=folder.name in away,
    )


def _default_routes(root: Path) -> frozenset[str]:
    """/proc/net/route: interface, destination and gateway in hexadecimal, ..."""
    rows = [line.split() for line in _text(root / "proc/net/route").splitlines()[1:]]
    return frozenset(row[0] for row in rows if len(row) > 1 and row[1] == "00000000")


def _number(file: Path) -> int:
    """A card that is down has -1, or an error."""
    words = _text(file)
    return int(words) if words.isdecimal() else 0


def _text(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""
