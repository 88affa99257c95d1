"""What the kernel's dumps and sysfs mean, and that a burst of its events is one wake."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from strixd.errors import Unavailable
from strixd.host import link
from strixd.host.link import KernelLinks, drained, drivers, links
from strixd.ports import Counters, Link


def _message(index: int, name: str, **more: Any) -> dict[str, Any]:
    return {"index": index, "name": name, "mac": "", "carrier": False, "mtu": 1500, "max_mtu": 0} | more


def test_links_are_put_together_by_index_and_sorted_by_name() -> None:
    found = links(
        [_message(1, "lo"), _message(3, "thunderbolt0", carrier=True, max_mtu=65522), _message(2, "enp1s0")],
        {3: ("192.168.100.1/29",)},
        frozenset({2}),
        {"thunderbolt0": "thunderbolt-net"},
    )
    assert [(link.name, link.driver, link.addresses, link.default_route) for link in found] == [
        ("enp1s0", "", (), True),
        ("thunderbolt0", "thunderbolt-net", ("192.168.100.1/29",), False),
    ]
    assert (found[1].carrier, found[1].max_mtu) == (True, 65522)


def test_the_driver_is_read_from_sysfs(tmp_path: Path) -> None:
    driver = tmp_path / "bus/pci/drivers/ice"
    driver.mkdir(parents=True)
    device = tmp_path / "class/net/enp194s0np0/device"
    device.mkdir(parents=True)
    (device / "driver").symlink_to(driver)
    (tmp_path / "class/net/veth0").mkdir()
    assert drivers(tmp_path) == {"enp194s0np0": "ice"}


def test_counters_are_read_from_sysfs_each_in_its_place(tmp_path: Path) -> None:
    folder = tmp_path / "class/net/enp1s0"
    (folder / "statistics").mkdir(parents=True)
    (folder / "carrier_changes").write_text("7\n")
    names = ("rx_bytes", "tx_bytes", "rx_errors", "tx_errors", "rx_dropped", "tx_dropped")
    for number, name in enumerate(names):
        (folder / "statistics" / name).write_text(f"{number}\n")
    found = asyncio.run(KernelLinks(tmp_path).counters("enp1s0"))
    assert found == Counters(
        rx_bytes=0, tx_bytes=1, rx_errors=2, tx_errors=3, rx_dropped=4, tx_dropped=5, carrier_changes=7
    )
    assert asyncio.run(KernelLinks(tmp_path).counters("enp2s0")) is None
    (folder / "carrier_changes").write_text("?")
    with pytest.raises(Unavailable, match="Cannot read the counters of enp1s0"):
        asyncio.run(KernelLinks(tmp_path).counters("enp1s0"))


def test_a_burst_of_events_is_one_reason_to_look() -> None:
    assert drained(_receiver([b"event"] * 200, BlockingIOError())) == "a network link changed"


def test_an_endless_flood_leaves_the_loop_its_turn() -> None:
    assert drained(lambda size: b"event") == "a network link changed"


def test_lost_events_are_a_reason_too() -> None:
    words = drained(_receiver([b"event"], OSError(errno.ENOBUFS, "No buffer space available")))
    assert words == "the kernel's network events overflowed"


@pytest.mark.parametrize("ask", [KernelLinks.read, KernelLinks.sessions])
def test_a_kernel_that_hangs_holds_one_thread(
    ask: Callable[[KernelLinks], Awaitable[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under the lock of a driver. Every other thread is left to whoever else needs one."""
    monkeypatch.setattr(link, "ANSWER", 0.05)
    monkeypatch.setattr(link, "_load", lambda: None)
    go = threading.Event()
    for name in ("_read", "_sessions"):
        monkeypatch.setattr(KernelLinks, name, lambda _: go.wait(60) and ())

    async def scenario() -> None:
        ports = KernelLinks()
        for _ in range(40):
            with pytest.raises(Unavailable, match=r"Cannot read the .*: the kernel does not answer") as failure:
                await ask(ports)
            assert "journalctl -k" in failure.value.hint
        assert await asyncio.wait_for(asyncio.to_thread(lambda: 7), 10) == 7
        go.set()
        async with asyncio.timeout(30):
            while await _or_none(ask(ports)) != ():
                continue

    asyncio.run(scenario())


async def _or_none(asked: Awaitable[object]) -> object:
    """A busy machine may be late, too."""
    with suppress(Unavailable):
        return await asked
    return None


def _receiver(messages: list[bytes], end: OSError) -> Callable[[int], bytes]:
    def receive(_size: int) -> bytes:
        if messages:
            return messages.pop()
        raise end

    return receive


class Counted(KernelLinks):
    """Counts how often the kernel is asked; a read that fails is not remembered."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    async def _found_now(self) -> tuple[Link, ...]:
        self.asked += 1
        if self.asked == 3:
            raise Unavailable("Cannot read the network links: test")
        return (Link(f"eth{self.asked}", "02:00:00:00:00:01"),)


def test_one_pass_asks_the_kernel_once_and_a_change_is_seen_at_once() -> None:
    async def scenario() -> None:
        ports = Counted()
        assert await ports.read() == await ports.read()
        ports.forget()
        assert [link.name for link in await ports.read()] == ["eth2"]
        ports.forget()
        with pytest.raises(Unavailable):
            await ports.read()
        assert [link.name for link in await ports.read()] == ["eth4"]

    asyncio.run(scenario())
