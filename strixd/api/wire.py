"""The messages of Varlink: JSON objects, each ended by a NUL. For server and client alike.

Pure: bytes in, messages out and back. `Frames` never holds more than one message that is not whole yet and
what was read behind it, so what a peer sends cannot make it grow beyond its limit. Imported at every start of
strixd-cli, so it may import nothing heavy.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from strixd.errors import Refused, StrixdError

INTERFACE = "io.strixd"
SERVICE = "org.varlink.service"
ADDRESS = "/run/strixd/io.strixd"  # unless --socket or STRIXD_SOCKET names another
METRICS = "/run/strixd/metrics.sock"
MOST = 1 << 20  # bytes of one message
Message = dict[str, object]


def metrics_beside(address: str) -> str:
    """Where the metrics of the strixd with this control socket are."""
    return METRICS if address == ADDRESS else f"{address}.metrics"


class Fault(Exception):
    """An error of the protocol itself, one of those that org.varlink.service declares."""

    def __init__(self, name: str, **parameters: str) -> None:
        super().__init__(name, parameters)
        self.name = f"{SERVICE}.{name}"
        self.parameters: Message = dict(parameters)


class Frames:
    """Cuts a stream of bytes into messages."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._bytes = bytearray()
        self._searched = 0  # no NUL before here, so that a message in a thousand pieces is searched once

    def __len__(self) -> int:
        """Bytes held."""
        return len(self._bytes)

    def feed(self, chunk: bytes) -> None:
        self._bytes += chunk

    def take(self) -> Message | None:
        """The next message, or None while there is no whole one. Raises Refused; the stream is then beyond use."""
        end = self._bytes.find(b"\0", self._searched)
        self._searched = len(self._bytes) if end < 0 else 0
        if end > self._most or (end < 0 and len(self._bytes) > self._most):
            raise Refused(f"Cannot read the message: it is larger than {self._most} bytes")
        if end < 0:
            return None
        text = bytes(self._bytes[:end])
        del self._bytes[: end + 1]
        return decode(text)


def decode(text: bytes) -> Message:
    """One message without its NUL."""
    try:
        message = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:  # RecursionError: nested too deeply
        raise Refused(f"Cannot read the message: {error}") from None
    if not isinstance(message, dict):
        raise Refused("Cannot read the message: it is not a JSON object")
    return message


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def encode(message: Mapping[str, object]) -> bytes:
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode() + b"\0"


def reply(parameters: Mapping[str, object], *, continues: bool = False) -> bytes:
    message: Message = {"parameters": parameters}
    if continues:
        message["continues"] = True
    return encode(message)


def failure(error: StrixdError | Fault) -> bytes:
    """The reply that names an error."""
    if isinstance(error, Fault):
        return encode({"error": error.name, "parameters": error.parameters})
    parameters = {"message": str(error), "hint": error.hint, "exitStatus": error.exit_status}
    return encode({"error": f"{INTERFACE}.{error.code}", "parameters": parameters})


class Call:
    """A request, checked."""

    __slots__ = ("method", "more", "oneway", "parameters", "upgrade")

    def __init__(self, message: Message) -> None:
        """Raises Refused when the message is no call; an unknown member of it is none of our business."""
        method, parameters = message.get("method"), message.get("parameters")
        if not isinstance(method, str):
            raise Refused("Cannot read the call: method must be a string")
        if parameters is not None and not isinstance(parameters, dict):
            raise Refused("Cannot read the call: parameters must be an object")
        self.method = method
        self.parameters: Message = parameters or {}
        self.more, self.oneway, self.upgrade = (_truth(message, key) for key in ("more", "oneway", "upgrade"))
        if self.oneway and (self.more or self.upgrade):
            raise Refused("Cannot read the call: a oneway call has no replies, so neither more nor upgrade")


def _truth(message: Message, key: str) -> bool:
    value = message.get(key)
    if value is not None and not isinstance(value, bool):
        raise Refused(f"Cannot read the call: {key} must be true or false")
    return bool(value)
