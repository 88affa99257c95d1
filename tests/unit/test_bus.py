"""However a connection to the bus ends, or does not begin, it is dialled again: over a stand-in for GLib and pydbus."""

from __future__ import annotations

import asyncio
import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from strixd.errors import Unavailable
from strixd.host.dbus import Remote

SOMEBODY = Remote("org.example", "/", "org.example")


class GLibError(Exception):
    message = "Connection refused"
    domain = "g-io-error-quark"


class Loop:
    def __init__(self) -> None:
        self._over = threading.Event()
        self.run, self.quit = self._over.wait, self._over.set


class Connection:
    """`fate`: "dead" when it is dialled, "dying" while that is told, "short" for one that ends soon, or "good"."""

    def __init__(self, fate: str) -> None:
        self._fate = fate
        self._ends: Callable[[], object] = lambda: None

    def connect(self, _signal: str, ends: Callable[[], object]) -> None:
        self._ends = ends
        if self._fate == "dying":
            ends()

    def is_closed(self) -> bool:
        return self._fate in ("dead", "dying")

    def end(self) -> None:
        if self._fate == "short":
            self._fate = "dead"
            self._ends()

    def call(self, *words: Any) -> None:
        words[-1](self, "pong")

    def call_finish(self, result: str) -> Any:
        return SimpleNamespace(unpack=lambda: (result,))

    def set_exit_on_close(self, _exit: bool) -> None: ...

    def close(self, *_: None) -> None: ...


@pytest.fixture
def dials(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """How the next dials go; the last one repeats."""
    fates: list[str] = []

    def connect(_address: str) -> Any:
        fate = fates.pop(0) if len(fates) > 1 else fates[0]
        if fate == "refused":
            raise GLibError
        return SimpleNamespace(con=Connection(fate), subscribe=lambda **_: SimpleNamespace(unsubscribe=lambda: None))

    gio = SimpleNamespace(
        DBusCallFlags=SimpleNamespace(NO_AUTO_START=0), DBusSignalFlags=SimpleNamespace(NONE=0), Cancellable=object
    )
    glib = SimpleNamespace(
        MainLoop=Loop, Error=GLibError, timeout_add=lambda wait, run: threading.Timer(wait / 1e3, run).start()
    )
    contents: dict[str, dict[str, object]] = {
        "pydbus": {"connect": connect},
        "gi": {},
        "gi.repository": {"Gio": gio, "GLib": glib},
    }
    for name, content in contents.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "strixd.host.bus", raising=False)
    monkeypatch.setattr(importlib.import_module("strixd.host.bus"), "REDIAL_MS", (1, 2))
    yield fates
    del sys.modules["strixd.host.bus"]


@pytest.mark.parametrize(
    ("fates", "reached"),
    [
        (["good"], 1),
        (["refused", "good"], 1),
        (["dead", "good"], 1),
        (["dying", "good"], 1),
        (["dead", "dying", "refused", "dead", "good"], 1),
        (["short", "good"], 2),
        (["short", "dead", "short", "dying", "refused", "good"], 3),
    ],
)
def test_the_bus_is_dialled_until_it_is_there(dials: list[str], fates: list[str], reached: int) -> None:
    dials[:] = fates

    async def scenario() -> None:
        bus: Any = importlib.import_module("strixd.host.bus").Bus("unix:path=/stand-in")
        heard = asyncio.Queue[None]()
        bus.on_connected(lambda: heard.put_nowait(None))
        bus.subscribe(SOMEBODY, "Changed", lambda _: None)
        async with bus:
            for _ in range(reached):
                await asyncio.wait_for(heard.get(), 10)
                bus._link.con.end()
            assert await bus.call(SOMEBODY, "Ping") == ("pong",)
            assert heard.empty()

    asyncio.run(scenario())


@pytest.mark.parametrize("fate", ["refused", "dead", "dying"])
def test_while_there_is_none_that_is_said(dials: list[str], fate: str) -> None:
    dials[:] = [fate]

    async def scenario() -> None:
        async with importlib.import_module("strixd.host.bus").Bus("unix:path=/stand-in") as bus:
            for _ in range(3):
                with pytest.raises(Unavailable, match=r"Cannot call Ping of org.example: no system bus: "):
                    await bus.call(SOMEBODY, "Ping")

    asyncio.run(scenario())
