"""The contract of ports.Hardware."""

from __future__ import annotations

from strixd.ports import Card, Host
from tests.contract.stage import Stage


async def fabric(host: Host, stage: Stage) -> Card:
    """Where nobody watches, the port may give what it read a moment ago."""
    await host.sleep(0.25)
    card = await host.hardware.card(stage.interface)
    assert card
    return card


async def test_the_card_is_that_of_the_interface(host: Host, stage: Stage) -> None:
    card = await fabric(host, stage)
    link = next(link for link in await host.links.read() if link.name == stage.interface)
    assert (card.interface, card.driver, card.carrier, card.mtu) == (link.name, link.driver, link.carrier, link.mtu)


async def test_there_is_none_of_an_interface_that_is_not_there(host: Host) -> None:
    assert await host.hardware.card("strixd-none") is None
    assert await host.hardware.card("") is None


async def test_ports_are_bound_to_this_very_interface(host: Host, stage: Stage) -> None:
    for port in (await fabric(host, stage)).ports:
        assert {gid.interface for gid in port.gids} <= {stage.interface, ""}


async def test_a_reading_that_says_the_same_is_as_old_as_the_first(host: Host, stage: Stage) -> None:
    begun = host.now()
    first = await fabric(host, stage)
    assert begun <= first.since <= host.now()
    assert await fabric(host, stage) == first
