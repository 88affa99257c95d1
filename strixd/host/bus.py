"""The system bus: calls with a timeout, signals, a connection that comes back. The only file that knows pydbus and gi.

One GLib main loop in one thread does the talking; the event loop asks and is told through one Handover. pydbus makes
the connection and the subscriptions, and its proxies are never used: they wait for ever and lose the types of variants.
Nothing here starts a service: whoever is stopped or masked is Unavailable.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any, Self

import pydbus
from gi.repository import Gio, GLib

from strixd.errors import Unavailable
from strixd.host.dbus import Remote, RemoteError, Signal, Variant
from strixd.host.handover import Handover

TIMEOUT = 5.0
"""Seconds that a call may take unless it says otherwise."""
GRACE = 1.0
"""Seconds more before the GLib thread itself counts as hung."""
BACKLOG = 64
"""Signals kept per subscription while the loop is busy; the newest ones win."""
REDIAL_MS = (100, 250, 500, 1000, 2000)
"""Waits between attempts to reach the bus again; the last one repeats."""

_ERROR = "org.freedesktop.DBus.Error."
ABSENT = frozenset(
    _ERROR + name
    for name in ("ServiceUnknown", "NameHasNoOwner", "NoReply", "Timeout", "TimedOut", "Disconnected", "NoServer")
)
"""Error names which mean that nobody answered, not that somebody said no."""


_KEPT: list[Any] = []
"""Connections are never freed, a few KB for each restart of the bus: Gio frees one under a lock which its worker thread
holds while it waits for Python's, in whose hands the freeing is (seen: both stood still for ever)."""

Handler = Callable[[Signal], None]
PROPERTIES = "org.freedesktop.DBus.Properties"
_DAEMON = Remote("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus")


class Subscription:
    """A standing wish for signals; it outlives the connection. `cancel` ends it."""

    def __init__(self, hub: Bus, remote: Remote, member: str, arg0: str, handler: Handler) -> None:
        self._hub, self._remote, self._member, self._arg0, self._handler = hub, remote, member, arg0, handler
        self._signals: deque[Signal] = deque(maxlen=BACKLOG)
        self._held: Any = None

    def attach(self, link: Any) -> None:
        remote = self._remote
        self._held = link.subscribe(
            sender=remote.service or None,
            iface=remote.interface or None,
            signal=self._member or None,
            object=remote.path or None,
            arg0=self._arg0 or None,
            flags=Gio.DBusSignalFlags.NONE,
            signal_fired=self._fired,
        )

    def detach(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.unsubscribe()

    def cancel(self) -> None:
        self.detach()
        self._signals.clear()
        self._hub.forget(self)

    def _fired(self, _sender: str, path: str, _interface: str, member: str, args: tuple[Any, ...]) -> None:
        """In the GLib thread. A burst is one post: `_deliver` takes all that has come by then."""
        self._signals.append(Signal(path, member, args))
        if len(self._signals) == 1:  # asked after the append: `_deliver` may be emptying it now
            self._hub.post(self._deliver)

    def _deliver(self) -> None:
        while self._signals:
            self._handler(self._signals.popleft())


class Bus:
    """A connection to the system bus (or to `address`), for one event loop. Use it as `async with Bus() as bus`."""

    def __init__(self, address: str = "") -> None:
        self._address = address
        self._main = GLib.MainLoop()
        self._thread = threading.Thread(target=self._main.run, name="glib", daemon=True)
        self._subscriptions: list[Subscription] = []
        self._listeners: list[Callable[[], None]] = []
        self._link: Any = None
        self._dialled = 0
        self._why = "not connected yet"

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._handover = Handover(self._loop)
        self._tried = asyncio.Event()
        self._thread.start()
        self._dial()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._handover.close()
        for subscription in self._subscriptions:
            subscription.detach()
        if self._link is not None:
            self._link.con.close(None, None)
        GLib.timeout_add(0, self._main.quit)
        await asyncio.to_thread(self._thread.join, GRACE)

    async def call(
        self,
        remote: Remote,
        method: str,
        signature: str = "",
        *args: object,
        within: float = TIMEOUT,
        doing: str = "",
    ) -> tuple[Any, ...]:
        """The reply, unpacked: variants in it have lost their types. `signature` is that of `args`, "sa{sv}"; what
        goes into a `v` is a Variant. `within`: seconds; `doing`: what is tried, for the error "Cannot DOING: …".

        Raises Unavailable (nobody there, no answer in time) or RemoteError."""
        words = GLib.Variant(f"({signature})", _native(args)) if signature else None
        reply = await self._ask(remote, method, words, within, doing or f"call {method} of {remote.interface}")
        return reply.unpack()  # type: ignore[no-any-return]

    async def _ask(self, remote: Remote, method: str, words: Any, within: float, doing: str) -> Any:
        """The reply as GLib's variant."""
        link = await self._connected(within, doing)
        reply: asyncio.Future[Any] = self._loop.create_future()
        cancel = Gio.Cancellable()
        link.con.call(
            remote.service,
            remote.path,
            remote.interface,
            method,
            words,
            None,
            Gio.DBusCallFlags.NO_AUTO_START,
            int(within * 1000),
            cancel,
            partial(self._answered, reply),
        )
        try:
            return await asyncio.wait_for(reply, within + GRACE)
        except GLib.Error as error:
            raise _failure(doing, error) from None
        except TimeoutError:
            raise Unavailable(f"Cannot {doing}: no answer within {within:g} s") from None
        finally:
            if not reply.done() or reply.cancelled():
                cancel.cancel()

    async def get(self, remote: Remote, name: str, *, doing: str = "") -> Any:
        """One property, unpacked."""
        where = Remote(remote.service, remote.path, PROPERTIES)
        doing = doing or f"read {name} of {remote.interface}"
        return (await self.call(where, "Get", "ss", remote.interface, name, doing=doing))[0]

    async def properties(self, remote: Remote, *names: str, doing: str = "") -> dict[str, Any]:
        """These of the interface, as they were at one moment; a name that it does not have is left out. Only they are
        unpacked: for a unit 1 ms of CPU, where its whole hundred took 3 (measured on a lab host)."""
        where = Remote(remote.service, remote.path, PROPERTIES)
        words = GLib.Variant("(s)", (remote.interface,))
        reply = await self._ask(where, "GetAll", words, TIMEOUT, doing or f"read {remote.interface}")
        found = {name: reply.get_child_value(0).lookup_value(name, None) for name in names}
        return {name: value.unpack() for name, value in found.items() if value is not None}

    def subscribe(self, remote: Remote, member: str, handler: Handler, *, arg0: str = "") -> Subscription:
        """`handler` is called on the loop for every signal that matches, also after the bus was away. Subscribe before
        the first read: what happened while the bus was away is told only by on_connected."""
        subscription = Subscription(self, remote, member, arg0, handler)
        self._subscriptions.append(subscription)
        if self._link is not None:
            subscription.attach(self._link)
        return subscription

    def on_properties(self, remote: Remote, handler: Handler) -> Subscription:
        """PropertiesChanged of this interface; the signal's args are (interface, changed, invalidated)."""
        where = Remote(remote.service, remote.path, PROPERTIES)
        return self.subscribe(where, "PropertiesChanged", handler, arg0=remote.interface)

    def on_owner(self, service: str, handler: Handler) -> Subscription:
        """The service came, went or was replaced: NameOwnerChanged, args (name, old owner, new owner), "" for none."""
        return self.subscribe(_DAEMON, "NameOwnerChanged", handler, arg0=service)

    def on_connected(self, listener: Callable[[], None]) -> None:
        """Called whenever the bus is reached, the first time and after a restart of it: read everything again."""
        self._listeners.append(listener)

    def forget(self, subscription: Subscription) -> None:
        self._subscriptions.remove(subscription)

    def post(self, run: Callable[[], None]) -> None:
        self._handover.post(run)

    async def _connected(self, within: float, doing: str) -> Any:
        """Only the very first connection is waited for; later absence is said at once."""
        if not self._tried.is_set():
            try:
                await asyncio.wait_for(self._tried.wait(), within)
            except TimeoutError:
                raise Unavailable(f"Cannot {doing}: the system bus does not answer") from None
        if self._link is None:
            raise Unavailable(f"Cannot {doing}: no system bus: {self._why}")
        return self._link

    def _dial(self) -> None:
        """The first attempt at once, the next ones with growing waits."""
        wait = REDIAL_MS[min(self._dialled, len(REDIAL_MS)) - 1] if self._dialled else 0
        self._dialled += 1
        GLib.timeout_add(wait, self._connect)

    def _connect(self) -> bool:
        """In the GLib thread, because it blocks."""
        try:
            address = self._address or Gio.dbus_address_get_for_bus_sync(Gio.BusType.SYSTEM, None)
            link = pydbus.connect(address)
            _KEPT.append(link.con)
            link.con.set_exit_on_close(False)
            link.con.connect("closed", lambda *_: self._handover.post(partial(self._lost, link, "it closed")))
            self._handover.post(partial(self._reached, link))
        except GLib.Error as error:
            self._handover.post(partial(self._lost, None, str(error.message)))
        return False  # once

    def _reached(self, link: Any) -> None:
        self._link = link  # also one that is closed by now: losing it is what dials again
        if link.con.is_closed():
            self._lost(link, "it closed")
            return
        self._dialled = 1
        for subscription in self._subscriptions:
            subscription.attach(link)
        self._tried.set()
        for listener in self._listeners:
            listener()

    def _lost(self, link: Any, why: str) -> None:
        if link is not self._link:
            return  # an older connection, told late
        self._link, self._why = None, why
        for subscription in self._subscriptions:
            subscription.detach()
        self._tried.set()
        self._dial()

    def _answered(self, reply: asyncio.Future[Any], connection: Any, result: Any, *_: object) -> None:
        """In the GLib thread."""
        try:
            answer = connection.call_finish(result)
        except GLib.Error as error:
            self._handover.post(partial(_settle, reply, None, error))
        else:
            self._handover.post(partial(_settle, reply, answer, None))


def _settle(reply: asyncio.Future[Any], answer: Any, error: BaseException | None) -> None:
    if reply.done():
        return  # nobody waits any more
    if error is not None:
        reply.set_exception(error)
    else:
        reply.set_result(answer)


def _native(value: object) -> Any:
    """The same, with GLib's variants for ours."""
    if isinstance(value, Variant):
        return GLib.Variant(value.signature, _native(value.value))
    if isinstance(value, dict):
        return {key: _native(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_native(item) for item in value)
    return value


def _failure(doing: str, error: GLib.Error) -> Exception:
    """What a GLib error means; one that is neither the bus nor a service is a bug and stays what it is."""
    name = Gio.dbus_error_get_remote_error(error) or ""
    words = error.message.removeprefix(f"GDBus.Error:{name}: ").strip()
    if name in ABSENT or (not name and error.domain == GLib.quark_to_string(Gio.io_error_quark())):
        return Unavailable(f"Cannot {doing}: {words}")
    if name:
        return RemoteError(doing, name=name, words=words)
    return error  # type: ignore[no-any-return]
