"""What is found on the disk at a start: an order is never lost silently, and history never stands in the way."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import asdict, replace
from typing import Any

import pytest

from strixd.engine import memory, record
from strixd.engine.status import Incident, Moment
from strixd.errors import Refused
from strixd.orders import Orders
from strixd.resources import cmdline
from strixd.resources.cmdline import SetArguments
from strixd.sim import World, simulated_host
from strixd.sim.clock import Clock

BROKEN = ("", "{", "[]", "null", "3", '{"colour": 1}', '[{"id": "a"}]', '{"arguments": 3}', "\ufffd", "[" * 9999)


def world(path: str, text: str) -> World:
    made = World(clock=Clock())
    made.disk.put(path, text)
    return made


@pytest.mark.parametrize("text", BROKEN, ids=lambda text: text[:15])
def test_orders_that_cannot_be_read_are_named(text: str) -> None:
    async def main() -> None:
        with pytest.raises(Refused, match=memory.ORDERS) as refused:
            await memory.load_orders(simulated_host(world(memory.ORDERS, text)).files)
        assert "strixd-cli serve MODEL" in refused.value.hint

    asyncio.run(main())


def test_orders_are_read_as_they_were_saved() -> None:
    async def main() -> None:
        files = simulated_host(World(clock=Clock())).files
        orders = Orders(model="tiny", arguments=("--seed", "1"), at=3.5)
        assert await memory.load_orders(files) == Orders()
        await memory.save_orders(files, orders)
        assert await memory.load_orders(files) == orders

    asyncio.run(main())


def test_orders_of_an_earlier_strixd_are_read() -> None:
    text = '{"model": "tiny", "arguments": [], "paused": false, "at": 3.5, "update_after": 0.0}'

    async def main() -> None:
        read = await memory.load_orders(simulated_host(world(memory.ORDERS, text)).files)
        assert read == Orders(model="tiny", at=3.5)
        assert (read.served, read.drained, read.restart_vllm, read.restart_ray) == ("tiny", False, "", "")

    asyncio.run(main())


@pytest.mark.parametrize("text", BROKEN, ids=lambda text: text[:15])
def test_a_history_that_cannot_be_read_begins_anew(text: str, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        with caplog.at_level(logging.WARNING):
            assert await memory.load_book(simulated_host(world(memory.INCIDENTS, text)).files) == memory.Book()
        assert (memory.INCIDENTS in caplog.text) == bool(text.strip("[]") or len(text) > 2)

    asyncio.run(main())


WRONG = (None, 5, "x", [1], {"a": 1}, float("nan"), float("inf"), 10**400)
"""One of them is of the right type for most fields: it is left out there."""


def otherwise(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The record with one word or number of it that is of another type, or no number, each in its turn."""
    plain = {key: value for key, value in record.items() if not isinstance(value, list | dict)}
    right = {key: (int, float) if isinstance(value, float) else type(value) for key, value in plain.items()}
    return [
        {**record, key: wrong}
        for key in plain
        for wrong in WRONG
        if not (isinstance(wrong, right[key]) and wrong not in WRONG[-2:] and wrong == wrong)
    ]


def test_orders_with_a_word_of_another_type_are_named() -> None:
    async def main() -> None:
        good = asdict(Orders(model="tiny", at=3.5))
        values: tuple[Any, ...] = ("--x", None, [1], {})
        lists = [{**good, name: value} for name in ("arguments", "released") for value in values]
        for wrong in (*otherwise(good), *lists):
            with pytest.raises(Refused, match=memory.ORDERS):
                await memory.load_orders(simulated_host(world(memory.ORDERS, json.dumps(wrong))).files)

    asyncio.run(main())


def test_a_history_with_a_word_of_another_type_begins_anew() -> None:
    async def main() -> None:
        over = asdict(Incident("a", "ray", "it ended", 1.0, 9.0, (Moment("noticed", 1.0),), 1))
        moments = [{**over, "moments": [wrong]} for wrong in otherwise({"name": "noticed", "at": 1.0})]
        books = [{"past": [wrong]} for wrong in (*otherwise(over), *moments)]
        for wrong in (*books, *({"now": each["past"][0]} for each in books)):
            made = world(memory.INCIDENTS, json.dumps(wrong))
            assert await memory.load_book(simulated_host(made).files) == memory.Book(), wrong

    asyncio.run(main())


def later(value: Any) -> Any:
    """What is on the disk, as a later version may have written it: with more in every record. Not in steps: one that
    is not wholly known must not be taken back."""
    if isinstance(value, dict):
        whole = {key: item if key in ("loads", "step") else later(item) for key, item in value.items()}
        return whole | {"later": 1}
    return [later(item) for item in value] if isinstance(value, list) else value


def test_what_a_later_version_wrote_is_read_after_going_back() -> None:
    over = Incident("a", "ray", "it ended", 1.0, 9.0, (Moment("noticed", 1.0),), 1)
    book = memory.Book(memory.Answered("b", "c", "d"), replace(over, ended=0.0), (over,))
    orders = Orders(model="tiny", arguments=("--seed", "1"), at=3.5)
    step = SetArguments((cmdline.Change("/etc/kernel/cmdline", "ro", "ro iommu=pt"),))
    change = record.Change("c1", 1.0, "uid 0: apply", "basis", "enp1s0", (record.part("cmdline", step),))

    async def main() -> None:
        made = World(clock=Clock())
        files = simulated_host(made).files
        await memory.save_orders(files, orders)
        await memory.save_book(files, book)
        await record.save_history(files, (change,))
        for path in (memory.ORDERS, memory.INCIDENTS, record.HISTORY):
            made.disk.put(path, json.dumps(later(json.loads(made.disk.files[path]))))
        assert await memory.load_orders(files) == orders
        assert await memory.load_book(files) == book
        assert await record.load_history(files) == (change,)

    asyncio.run(main())


def test_an_account_is_read_as_it_was_saved() -> None:
    async def main() -> None:
        files = simulated_host(World(clock=Clock())).files
        over = Incident("a", "ray", "it ended", 1.0, 9.0, (Moment("noticed", 1.0),), 1)
        book = memory.Book(memory.Answered("b", "c", "d"), replace(over, ended=0.0), (over,), {"tiny sha256:0": (3.5,)})
        await memory.save_book(files, book)
        assert await memory.load_book(files) == book

    asyncio.run(main())


def test_a_history_of_an_earlier_version_is_kept() -> None:
    async def main() -> None:
        moments = '[{"name": "noticed", "at": 1}]'
        old = f'[{{"id": "a", "resource": "ray", "cause": "x", "began": 1, "ended": 2, "moments": {moments}}}]'
        files = simulated_host(world(memory.INCIDENTS, old)).files
        assert [incident.id for incident in (await memory.load_book(files)).past] == ["a"]

    asyncio.run(main())
