"""The contract of ports.Files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from strixd.errors import StrixdError
from strixd.ports import Host
from tests.contract.stage import Stage

FOLDER = "/run/strixd-contract"
PATH = f"{FOLDER}/deep/file"


@asynccontextmanager
async def cleaned(host: Host) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await host.files.remove(PATH)


async def test_a_missing_file_is_none(host: Host) -> None:
    assert await host.files.read(f"{FOLDER}/none") is None
    assert await host.files.read("/strixd-none/none") is None


TEXTS = {
    "empty": "",
    "line": "one\n",
    "unicode": "ünïcode → ✓\ttabs\n",
    "crlf": "one\r\ntwo\r\n",
    "long": "x" * 200_000,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
async def test_what_was_written_is_read(host: Host, text: str, stage: Stage) -> None:
    async with cleaned(host):
        await host.files.write(PATH, text)
        assert await host.files.read(PATH) == text


async def test_a_second_write_replaces_the_first(host: Host) -> None:
    async with cleaned(host):
        await host.files.write(PATH, "a long first text\n")
        await host.files.write(PATH, "short\n")
        assert await host.files.read(PATH) == "short\n"


async def test_the_mode_is_as_asked(host: Host, stage: Stage) -> None:
    async with cleaned(host):
        await host.files.write(PATH, "open\n")
        assert stage.mode(PATH) == 0o644
        await host.files.write(PATH, "secret\n", mode=0o600)
        assert stage.mode(PATH) == 0o600


async def test_nothing_else_is_left_in_the_folder(host: Host, stage: Stage) -> None:
    async with cleaned(host):
        await host.files.write(PATH, "one\n")
        await host.files.write(PATH, "two\n")
        assert stage.listing(f"{FOLDER}/deep") == ["file"]


async def test_a_removed_file_is_gone_and_removing_again_is_harmless(host: Host) -> None:
    await host.files.write(PATH, "one\n")
    await host.files.remove(PATH)
    assert await host.files.read(PATH) is None
    await host.files.remove(PATH)
    await host.files.remove("/strixd-none/none")


async def test_present_keeps_the_order(host: Host) -> None:
    async with cleaned(host):
        await host.files.write(PATH, "")
        assert await host.files.present((PATH, "/strixd-none", f"{FOLDER}/deep")) == (PATH, f"{FOLDER}/deep")
        assert await host.files.present(()) == ()


async def test_a_file_cannot_be_written_where_a_folder_is(host: Host) -> None:
    async with cleaned(host):
        await host.files.write(PATH, "one\n")
        with pytest.raises(StrixdError):
            await host.files.write(f"{FOLDER}/deep", "two\n")
        assert await host.files.read(PATH) == "one\n"
