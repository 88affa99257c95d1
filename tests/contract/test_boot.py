"""The contract of ports.BootLoader. Where nothing can change kernel arguments, that is all there is to test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from strixd.errors import StrixdError
from strixd.ports import Boot, Host

KEY = "strixd.contract"


@asynccontextmanager
async def tool(host: Host) -> AsyncIterator[Boot]:
    """What is written at first; afterwards our key is gone."""
    before = await host.boot.read()
    if not before.tool:
        pytest.skip("no tool for kernel arguments on this host")
    try:
        yield before
    finally:
        left = {word for word in _words(await host.boot.read()) if word.partition("=")[0] == KEY}
        if left:
            await host.boot.change(add=(), remove=tuple(left))


def _words(boot: Boot) -> list[str]:
    texts = [e.options for e in boot.entries if not e.rescue]
    return [word for text in (*texts, boot.kernel_cmdline or "", boot.default_grub or "") for word in text.split()]


def _lists(boot: Boot) -> list[list[str]]:
    """The arguments of all places where they are written, ours only."""
    texts = [e.options for e in boot.entries if not e.rescue]
    texts += [text for text in (boot.kernel_cmdline, boot.default_grub) if text is not None]
    return [[word for word in text.split() if word.startswith(KEY)] for text in texts]


async def test_what_runs_can_be_read(host: Host) -> None:
    assert (await host.boot.read()).running.strip()


async def test_without_a_tool_a_change_is_a_named_failure(host: Host) -> None:
    if (await host.boot.read()).tool:
        pytest.skip("there is a tool here")
    with pytest.raises(StrixdError):
        await host.boot.change(add=(f"{KEY}=1",), remove=())


async def test_an_argument_is_added_everywhere_but_in_rescue_entries(host: Host) -> None:
    async with tool(host) as before:
        await host.boot.change(add=(f"{KEY}=1",), remove=())
        after = await host.boot.read()
        assert all(words == [f"{KEY}=1"] for words in _lists(after))
        assert [e for e in after.entries if e.rescue] == [e for e in before.entries if e.rescue]
        assert after.running == before.running


async def test_a_value_replaces_the_earlier_ones_of_its_key(host: Host) -> None:
    async with tool(host):
        await host.boot.change(add=(f"{KEY}=1",), remove=())
        await host.boot.change(add=(f"{KEY}=2",), remove=())
        assert all(words == [f"{KEY}=2"] for words in _lists(await host.boot.read()))


async def test_only_the_exact_argument_is_removed(host: Host) -> None:
    async with tool(host):
        await host.boot.change(add=(f"{KEY}=1",), remove=())
        await host.boot.change(add=(), remove=(f"{KEY}=2",))
        assert all(words == [f"{KEY}=1"] for words in _lists(await host.boot.read()))
        await host.boot.change(add=(), remove=(f"{KEY}=1",))
        assert all(words == [] for words in _lists(await host.boot.read()))


async def test_a_change_back_leaves_the_other_arguments_as_they_were(host: Host) -> None:
    async with tool(host) as before:
        await host.boot.change(add=(f"{KEY}=1",), remove=())
        await host.boot.change(add=(), remove=(f"{KEY}=1",))
        after = await host.boot.read()
        assert [e.options.split() for e in after.entries] == [e.options.split() for e in before.entries]


async def test_adding_the_same_twice_is_harmless(host: Host) -> None:
    async with tool(host):
        await host.boot.change(add=(f"{KEY}=1",), remove=())
        first = await host.boot.read()
        await host.boot.change(add=(f"{KEY}=1",), remove=())
        assert _lists(await host.boot.read()) == _lists(first)
