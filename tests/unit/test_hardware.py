"""The real adapter of the card: what one reading cannot tell, what hangs, and what ethtool and devlink say."""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import json
import os
import signal
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from strixd.errors import Unavailable
from strixd.host import firmware, hardware, rdma
from strixd.host.firmware import Versions, driver_version, told_by_devlink
from strixd.host.hardware import History, SysfsCards
from strixd.ports import Card, Firmware, RdmaPort
from strixd.ports.hardware import WINDOW
from strixd.resources.fabric import hardware as in_words
from tests.laid_tree import lay

LINK = "class/net/eth1/carrier: 1\nclass/net/eth1/carrier_changes: 4\n"
PORT = "class/infiniband/irdma0/ports/1/state: 4: ACTIVE\n"


async def _silent(interface: str, driver: str, address: str) -> Firmware:
    return Firmware()


@pytest.mark.parametrize(
    ("readings", "lost", "since"),
    [
        ([(0, 4), (10, 4), (20, 4)], 0, 0),
        ([(0, 4), (10, 6), (20, 6)], 1, 10),
        ([(0, 4), (10, 5)], 1, 10),  # it has gone, and is not back
        ([(0, 4), (10, 6), (20, 8), (30, 10)], 3, 30),
        ([(0, 4), (10, 6), (20, 8), (WINDOW + 15, 8)], 1, 20),
        ([(0, 4), (10, 2), (20, 2)], 0, 10),  # another interface of this name: the kernel counts anew
        ([(20, 4), (10, 4)], 0, 10),  # the clock was set back
        ([(0, None), (10, None)], 0, 0),
    ],
)
def test_losses_are_counted_and_the_age_of_what_is_known(
    readings: list[tuple[float, int | None]], lost: int, since: float
) -> None:
    history = History()
    for at, changes in readings:
        known = history.known(Card("eth1", carrier=True, changes=changes), at)
    assert (known.lost, known.since) == (lost, since)


def test_an_rdma_port_that_goes_under_its_carrier_is_a_loss() -> None:
    up = Card("eth1", carrier=True, changes=4, ports=(RdmaPort("irdma0", 1, "RoCE", "ACTIVE"),))
    gone, history = replace(up, ports=()), History()
    for at, card in enumerate((up, gone, gone, up, replace(up, ports=(replace(up.ports[0], state="DOWN"),)), up)):
        known = history.known(card, at)
    assert known.lost == 2
    unplugged = replace(gone, carrier=False, changes=5)
    assert history.known(unplugged, 10).lost == 3  # once, and not for its port again


def test_firmware_that_is_told_late_makes_a_card_no_younger() -> None:
    history = History()
    history.known(Card("eth1"), 0)
    assert history.known(replace(Card("eth1"), firmware=Firmware("4.91")), 10).since == 0


def test_a_file_that_hangs_is_bounded_and_holds_one_thread_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A FIFO without a writer: whoever opens it waits."""
    monkeypatch.setattr(hardware, "ANSWER", 0.05)
    lay(tmp_path, LINK)
    fifo = tmp_path / "class/net/eth1/speed"
    os.mkfifo(fifo)

    async def scenario() -> None:
        cards = SysfsCards(tmp_path, _silent)
        before = threading.active_count()
        for _ in range(3):
            with pytest.raises(Unavailable, match="Cannot read the hardware of eth1: the kernel does not answer"):
                await cards.card("eth1")
        assert threading.active_count() == before + 1
        fifo.write_text("1000\n")
        await asyncio.sleep(0.05)
        fifo.unlink()
        card = await _in_the_end(cards)
        assert card
        assert card.changes == 4

    asyncio.run(scenario())


async def _in_the_end(cards: SysfsCards) -> Card | None:
    """A busy machine may be late, too."""
    async with asyncio.timeout(30):
        while True:
            with suppress(Unavailable):
                return await cards.card("eth1")


def test_a_port_that_changes_by_itself_is_a_reason_to_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "LOOK", 0.01)
    lay(tmp_path, LINK + PORT)

    async def scenario() -> list[str]:
        reasons: list[str] = []
        watching = asyncio.create_task(SysfsCards(tmp_path, _silent).watch(reasons.append))
        await asyncio.sleep(0.1)
        assert reasons == []
        lay(tmp_path, PORT.replace("4: ACTIVE", "1: DOWN"))
        for _ in range(200):
            await asyncio.sleep(0.01)
            if reasons:
                break
        watching.cancel()
        return reasons

    assert asyncio.run(scenario()) == ["an RDMA port changed"]


@pytest.mark.parametrize(
    ("mtu", "most"), [(9000, 4096), (4200, 4096), (2148, 2048), (1500, 1024), (1280, 1024), (300, 0), (0, 0)]
)
def test_the_rdma_mtu_is_what_fits_into_the_links(mtu: int, most: int) -> None:
    assert rdma.payload(mtu) == most


RUNNING = {"fw.mgmt": "7.9.5", "fw.undi": "1.3909.0", "fw.app.name": "ICE OS Default Package", "fw.app": "1.3.41.0"}


def devlink(**versions: str | None) -> str:
    running = {key: text for key, text in {**RUNNING, **versions}.items() if text is not None}
    return json.dumps({"info": {"pci/0000:c2:00.0": {"driver": "ice", "versions": {"running": running}}}})


@pytest.mark.parametrize(
    ("said", "firmware"),
    [
        (devlink(), Firmware("4.91", "ICE OS Default Package 1.3.41.0", False)),
        (devlink(**{"fw.app.name": None, "fw.app": "0.0.0.0"}), Firmware("4.91", "", True)),
        ("", Firmware("4.91")),
        ("{}", Firmware("4.91")),
        ("[]", Firmware("4.91")),
        ('{"info": {"pci/1": 7}}', Firmware("4.91")),
        ("kernel answers: Operation not supported", Firmware("4.91")),
    ],
)
def test_devlink_tells_the_package_or_safe_mode_or_nothing(said: str, firmware: Firmware) -> None:
    assert told_by_devlink(said, "4.91") == firmware


def _answers(version: bytes) -> Callable[..., int]:
    """The kernel, which writes struct ethtool_drvinfo where the request points to."""

    def ioctl(_line: object, _number: int, request: bytes) -> int:
        name, address = struct.unpack("16sP", request)
        assert name.rstrip(b"\0") == b"eth1"
        ctypes.memmove(address + firmware.VERSION.start, version, len(version))
        return 0

    return ioctl


@pytest.mark.parametrize(
    ("version", "said"),
    [(b"4.91 0x8001fa1c 1.3909.0\0", "4.91 0x8001fa1c 1.3909.0"), (b"N/A\0", ""), (b"\0", "")],
)
def test_the_firmware_is_where_the_kernel_writes_it(version: bytes, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "ioctl", _answers(version))
    assert driver_version("eth1") == said


def test_an_interface_that_is_not_there_has_no_firmware() -> None:
    assert driver_version("strixd-none") == ""


@pytest.mark.parametrize("program", ["#!/bin/sh\nexec sleep 60\n", "#!/bin/sh\nexit 1\n", None])
def test_devlink_that_says_nothing_makes_nobody_wait(
    program: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(firmware, "ANSWER", 0.1)
    tool = tmp_path / "devlink"
    if program:
        tool.write_text(program)
        tool.chmod(0o755)
    assert asyncio.run(Versions(str(tool)).of("strixd-none", "ice", "0000:c2:00.0")) == Firmware()


def test_a_driver_that_hangs_holds_one_thread_and_one_devlink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked again and again: threads that hang are all that the other adapters have, too."""
    monkeypatch.setattr(firmware, "ANSWER", 0.05)
    monkeypatch.setattr(firmware, "KILL", 0.05)
    monkeypatch.setattr(firmware, "AGAIN", 0.0)
    monkeypatch.setattr(asyncio.subprocess.Process, "kill", lambda _: None)  # in the kernel nobody can be
    go = threading.Event()
    monkeypatch.setattr(fcntl, "ioctl", lambda *_: go.wait(60))
    tool = tmp_path / "devlink"
    tool.write_text("#!/bin/sh\nexec sleep 60\n")
    tool.chmod(0o755)
    begin, begun = asyncio.create_subprocess_exec, list[asyncio.subprocess.Process]()

    async def begins(*words: str, **how: Any) -> asyncio.subprocess.Process:
        begun.append(await begin(*words, **how))
        return begun[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", begins)

    async def scenario() -> None:
        versions, before = Versions(str(tool)), threading.active_count()
        for _ in range(10):
            assert await versions.of("eth1", "ice", "0000:c2:00.0") == Firmware()
        assert threading.active_count() <= before + 2  # ours, and that with which asyncio waits for a process
        go.set()
        (devlink,) = begun
        os.kill(devlink.pid, signal.SIGKILL)
        await devlink.wait()

    asyncio.run(scenario())


def test_devlink_is_asked_once(tmp_path: Path) -> None:
    tool = tmp_path / "devlink"
    tool.write_text(f"#!/bin/sh\necho x >>{tmp_path}/asked\necho '{devlink()}'\n")
    tool.chmod(0o755)

    async def scenario() -> Firmware:
        versions = Versions(str(tool))
        await versions.of("strixd-none", "ice", "0000:c2:00.0")
        return await versions.of("strixd-none", "ice", "0000:c2:00.0")

    assert asyncio.run(scenario()) == Firmware("", "ICE OS Default Package 1.3.41.0", False)
    assert (tmp_path / "asked").read_text() == "x\n"


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("4.91 0x8001fa1c", ", firmware 4.91 0x8001fa1c, "),
        ("", "firmware unknown"),
        ("nonsense", ", firmware nonsense, "),
    ],
)
def test_firmware_in_words(version: str, words: str) -> None:
    (line,) = in_words(Card("eth1", driver="ice", firmware=Firmware(version)))
    assert words in line
