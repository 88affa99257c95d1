"""The contract of ports.Links."""

from __future__ import annotations

import re

from strixd.ports import Host, Link
from tests.contract.stage import Stage


async def fabric(host: Host, stage: Stage) -> Link:
    """Where nobody watches, the port may give what it read a moment ago."""
    await host.sleep(0.25)
    return next(link for link in await host.links.read() if link.name == stage.interface)


async def test_the_fabric_link_is_listed_with_its_card(host: Host, stage: Stage) -> None:
    link = await fabric(host, stage)
    assert re.fullmatch(r"([0-9a-f]{2}:){5}[0-9a-f]{2}", link.mac)
    assert link.carrier
    assert link.mtu >= 1280
    assert not link.default_route


async def test_each_link_is_listed_once(host: Host) -> None:
    names = [link.name for link in await host.links.read()]
    assert len(names) == len(set(names))


async def test_addresses_are_ipv4_with_prefix(host: Host) -> None:
    for link in await host.links.read():
        for address in link.addresses:
            assert re.fullmatch(r"(\d+\.){3}\d+/\d+", address)


async def test_counters_are_those_of_the_interface(host: Host, stage: Stage) -> None:
    first = await host.links.counters(stage.interface)
    again = await host.links.counters(stage.interface)
    assert first
    assert again
    assert again.rx_bytes >= first.rx_bytes >= 0
    assert again.carrier_changes == first.carrier_changes
    assert await host.links.counters("strixd-none") is None


async def test_reading_changes_nothing(host: Host, stage: Stage) -> None:
    assert await fabric(host, stage) == await fabric(host, stage)


async def test_ssh_is_at_port_22_unless_its_files_say_otherwise(host: Host) -> None:
    assert await host.links.ssh_ports() == (22,)
