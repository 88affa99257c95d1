"""The contract of ports.Journal."""

from __future__ import annotations

from strixd.ports import Host
from tests.contract.stage import until
from tests.contract.test_units import becomes, unit

ECHO = "ExecStart=/bin/echo "
LINGER = "ExecStart=/bin/sleep 1"  # journald looks up whose line it is when it reads it
THREE = ("Type=oneshot", f"{ECHO}one", f"{ECHO}two", f"{ECHO}three", LINGER)


async def _run(host: Host, name: str) -> str:
    """Starts the unit and gives the invocation of that run once it is over."""
    before = (await host.units.read(name)).invocation

    async def over() -> bool:
        state = await host.units.read(name)
        return state.invocation != before and state.active in ("inactive", "failed")

    await host.units.start(name)
    assert await until(host, over)
    return (await host.units.read(name)).invocation


async def test_the_last_lines_of_a_run_are_given_oldest_first(host: Host) -> None:
    async with unit(host, *THREE) as name:
        invocation = await _run(host, name)

        async def lines() -> tuple[str, ...]:
            last = await host.journal.last(name, invocation, 3)
            return last if "three" in last else ()

        assert [line for line in await until(host, lines) if line in ("one", "two", "three")][-1] == "three"
        many = await host.journal.last(name, invocation, 50)
        assert [line for line in many if line in ("one", "two", "three")] == ["one", "two", "three"]


async def test_no_more_lines_than_asked(host: Host) -> None:
    async with unit(host, *THREE) as name:
        invocation = await _run(host, name)
        await until(host, lambda: host.journal.last(name, invocation, 2))
        assert len(await host.journal.last(name, invocation, 2)) <= 2


async def test_the_lines_of_another_run_are_not_given(host: Host) -> None:
    async with unit(host, "Type=oneshot", f"{ECHO}first", LINGER) as name:
        first = await _run(host, name)
    async with unit(host, "Type=oneshot", f"{ECHO}second", LINGER) as name:
        second = await _run(host, name)

        async def said() -> bool:
            return "second" in await host.journal.last(name, second, 50)

        assert await until(host, said)
        assert "first" not in await host.journal.last(name, second, 50)
        assert "first" in await host.journal.last(name, first, 50)


async def test_an_unknown_run_has_no_lines(host: Host) -> None:
    assert await host.journal.last("strixd-none.service", "0" * 32, 10) == ()
    assert await host.journal.last("strixd-none.service", "", 10) == ()


async def test_a_running_unit_can_be_read(host: Host) -> None:
    async with unit(host, "ExecStart=/bin/sleep 600") as name:
        await host.units.start(name)
        invocation = (await becomes(host, name, "active")).invocation
        assert isinstance(await host.journal.last(name, invocation, 5), tuple)
