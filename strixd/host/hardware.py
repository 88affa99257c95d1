"""A card as sysfs shows it (ABI/testing/sysfs-class-net, sysfs-bus-pci, sysfs-bus-thunderbolt). Only reads.

A file of sysfs asks the driver, which may hang: all is read on a thread, for a bounded time, and no second thread is
begun while one hangs. A port that goes down has no event of its own, so its state is looked at every few seconds.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from strixd.errors import Unavailable
from strixd.host import rdma
from strixd.host.firmware import E810, Versions
from strixd.host.one_thread import OneThread
from strixd.host.rdma import number, text
from strixd.host.recent import Recent
from strixd.ports import Wake
from strixd.ports.hardware import WINDOW, Card, Firmware, Pci

ANSWER = 5.0
"""Seconds for all files of a card; they take a few milliseconds."""
FRESH = 0.2
"""Seconds for which a reading counts; several resources ask within one pass."""
LOOK = 3.0
"""Seconds between looks at the states of RDMA ports."""
HINT = "journalctl -k -n 50: a driver hangs"
_PCI = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
Told = Callable[[str, str, str], Awaitable[Firmware]]


class SysfsCards:
    """Implements ports.Hardware. `sys`: where sysfs is; `firmware`: as Versions.of."""

    def __init__(self, sys: Path = Path("/sys"), firmware: Told | None = None) -> None:
        self._sys = sys
        self._firmware = firmware or Versions().of
        self._thread = OneThread("the kernel", ANSWER, HINT)
        self._recent = Recent(FRESH)
        self.forget = self._recent.forget
        self._history = History()

    async def card(self, interface: str) -> Card | None:
        return await self._recent.read(interface, lambda: self._card(interface))

    async def _card(self, interface: str) -> Card | None:
        found = await self._thread.run(lambda: card(self._sys, interface), f"read the hardware of {interface}")
        if found:
            said = await self._firmware(interface, found.driver, found.pci.address if found.pci else "")
            found = self._history.known(replace(found, firmware=_judged(self._sys, found, said)), time.time())
        return found

    async def watch(self, wake: Wake) -> None:
        seen: tuple[str, ...] | None = None
        while True:
            try:
                now = await self._thread.run(lambda: rdma.states(self._sys), "read the RDMA ports")
            except Unavailable:
                now = seen or ()
            if seen is not None and now != seen:
                self.forget()
                wake("an RDMA port changed")
            seen = now
            await asyncio.sleep(LOOK)


class History:
    """What one reading cannot tell: since when all is as it is, and how often the link was lost lately."""

    def __init__(self) -> None:
        self._last: dict[str, Card] = {}
        self._losses: dict[str, tuple[tuple[float, int], ...]] = {}

    def known(self, card: Card, now: float) -> Card:
        """`now`: seconds since the epoch."""
        before = self._last.get(card.interface)
        if before and (changes := _changes(before, card)):
            self._losses[card.interface] = (*self._losses.get(card.interface, ()), (now, changes))
        lately = tuple(each for each in self._losses.get(card.interface, ()) if 0 <= now - each[0] <= WINDOW)
        since = before.since if before and _same(before, card) and before.since <= now else now
        changes = sum(count for _, count in lately)
        self._losses[card.interface] = lately
        self._last[card.interface] = replace(card, lost=(changes + 1) // 2, since=since)  # it went, and came
        return self._last[card.interface]


def _changes(before: Card, now: Card) -> int:
    """How often the carrier has changed since; an RDMA port that went under a carrier that stayed counts for two."""
    counted = (now.changes or 0) - before.changes if before.changes is not None else 0
    if counted > 0 or not (before.carrier and now.carrier):
        return max(counted, 0)
    return 2 * bool(_active(before) - _active(now))


def _active(card: Card) -> set[str]:
    return {str(port) for port in card.ports if port.state == "ACTIVE"}


def _same(one: Card, other: Card) -> bool:
    """In all that decides."""

    def deciding(card: Card) -> object:
        return card.driver, card.carrier, card.changes, card.ports

    return deciding(one) == deciding(other)


def card(sys: Path, interface: str) -> Card | None:
    """From the files alone."""
    folder = sys / "class/net" / interface
    if not interface or not folder.exists():
        return None
    driver, device = folder / "device/driver", folder / "device"
    speed, lanes = number(folder / "speed"), _thunderbolt(device)
    carrier = number(folder / "carrier")  # cannot be read while the interface is down: then there is none
    return Card(
        interface,
        driver=driver.resolve().name if driver.exists() else "",
        carrier=bool(carrier) if carrier is not None else False if text(folder / "operstate") == "down" else None,
        speed=lanes or (speed / 1000 if speed and speed > 0 else 0.0),
        mtu=number(folder / "mtu") or 0,
        changes=number(folder / "carrier_changes"),
        pci=_pci(device),
        thunderbolt=driver.exists() and driver.resolve().name == "thunderbolt-net",
        ports=rdma.ports(sys, interface),
    )


def _pci(device: Path) -> Pci | None:
    """Where the interface itself is a function of a PCI device; the bus on which a Thunderbolt host sits is none."""
    place = device.resolve()
    if not _PCI.fullmatch(place.name):
        return None
    return Pci(
        place.name,
        rdma.leading(text(place / "current_link_speed")),
        number(place / "current_link_width") or 0,
        rdma.leading(text(place / "max_link_speed")),
        number(place / "max_link_width") or 0,
    )


def _thunderbolt(device: Path) -> float:
    """Gb/s of all lanes towards the other host; the device is a service of it ("0-1.0", in "0-1"). The file tells the
    speed of one lane. 0 when unknown."""
    peer = device.resolve().parent
    rates = [rdma.leading(text(peer / f"{way}_speed")) * (number(peer / f"{way}_lanes") or 0) for way in ("rx", "tx")]
    return min(rates)


def _judged(sys: Path, card: Card, said: Firmware) -> Firmware:
    """An E810 in safe mode has one queue of each kind, which sysfs shows where devlink cannot be asked."""
    if card.driver != E810 or said.safe_mode is not None:
        return said
    queues = list((sys / "class/net" / card.interface / "queues").glob("rx-*"))
    return replace(said, safe_mode=True) if len(queues) == 1 else said
