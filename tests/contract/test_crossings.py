"""The contract of ports.Crossings: large packets to another host on the cable and back. Whoever watches asks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from strixd.ports import Crossing, Host, Way
from tests.contract.stage import Stage, until, watching
from tests.contract.test_network import UUID, cleaned

OWN = "192.168.213.1"
NOBODY = "192.168.213.99"
JUMBO = 9000


@asynccontextmanager
async def linked(host: Host, stage: Stage) -> AsyncIterator[Way]:
    """The fabric link with an address beside the other host's, and large packets allowed; somebody watches."""
    async with cleaned(host, stage) as profile:
        await host.network.save(replace(profile, mtu=JUMBO))
        await host.network.activate(UUID, stage.interface)
        async with watching(host):
            yield Way(stage.interface, OWN, (stage.taken.partition("/")[0],), JUMBO)
            await host.crossings.look(None)


async def _seen(host: Host, way: Way, state: str, *, seconds: float = 10) -> Crossing:
    async def look() -> Crossing | None:
        (found,) = await host.crossings.look(way)
        return found if found.state == state else None

    found = await until(host, look, seconds=seconds)
    assert found, await host.crossings.look(way)
    return found


async def test_nobody_is_asked_without_a_way(host: Host) -> None:
    assert await host.crossings.look(None) == ()


async def test_the_first_look_knows_nothing_yet(host: Host) -> None:
    (found,) = await host.crossings.look(Way("strixd-none0", OWN, (NOBODY,), JUMBO))
    assert (found.peer, found.state, found.at) == (NOBODY, "unproven", 0.0)
    assert found.why
    await host.crossings.look(None)


async def test_large_packets_cross(host: Host, stage: Stage) -> None:
    async with linked(host, stage) as way:
        before = host.now()
        found = await _seen(host, way, "crosses")
        assert before <= found.at <= host.now()
        assert (found.direction, found.why) == ("", "")


async def test_what_was_seen_before_somebody_asked_again_is_no_proof(host: Host, stage: Stage) -> None:
    async with linked(host, stage) as way:
        await _seen(host, way, "crosses")
        (found,) = await host.crossings.look(replace(way, asked=host.now()))
        assert found.state == "unproven"


async def test_a_peer_that_does_not_answer_proves_nothing(host: Host, stage: Stage) -> None:
    async with linked(host, stage) as way:
        both = replace(way, peers=(*way.peers, NOBODY))

        async def look() -> bool:
            first, second = await host.crossings.look(both)
            return first.state == "crosses" and second.why == "does not answer yet"

        assert await until(host, look, seconds=10), await host.crossings.look(both)
        assert [one.peer for one in await host.crossings.look(both)] == list(both.peers)


async def test_a_link_that_is_not_there_proves_nothing(host: Host, stage: Stage) -> None:
    async with watching(host):
        way = Way("strixd-none0", OWN, (NOBODY,), JUMBO)

        async def look() -> bool:
            return (await host.crossings.look(way))[0].why == "does not answer yet"

        assert await until(host, look, seconds=10), await host.crossings.look(way)
        await host.crossings.look(None)


async def test_large_packets_that_are_lost_on_their_way_back(host: Host, stage: Stage) -> None:
    async with linked(host, stage) as way:
        with stage.losing(1500):
            begun = host.now()
            found = await _seen(host, way, "failed", seconds=50)
            assert host.now() - begun >= 29, "a failure counts only when it lasts"
            assert found.direction == "back"
            assert begun < found.at <= host.now()
