"""The other end: does what it is told, over the connection that it made itself."""

from __future__ import annotations

import contextlib
import time
from typing import Any

from strixd.probe.link.card import interface, rdma
from strixd.probe.link.line import Line, greet
from strixd.probe.link.programs import ANY_ERROR, KNOWN, listening, present
from strixd.probe.link.streams import drain, echo

MOST = 16  # connections at once


class Answering:
    """One measurement after another. `address`: that of the end that asks."""

    def __init__(self, address: str, port: int, token: str, seconds: float) -> None:
        self._where = (address, port)
        self._token = token
        self._end = time.monotonic() + seconds
        self._open = contextlib.ExitStack()  # the program that listens

    def run(self) -> None:
        """Until it is said to be enough. Raises OSError when the connection breaks or time is over."""
        line = self._call("orders")
        own = line.connection.getsockname()[0]
        with line.connection, self._open:
            line.say({"programs": present(), "rdma": rdma(own, interface(own))})
            while (order := line.hear())["do"] != "end":
                line.say({"order": order["order"], **self._obeyed(order, own)})

    def _obeyed(self, order: dict[str, Any], own: str) -> dict[str, Any]:
        try:
            return self._obey(order, own)
        except ANY_ERROR as error:
            return {"failed": str(error)}

    def _obey(self, order: dict[str, Any], own: str) -> dict[str, Any]:
        self._open.close()
        if order["do"] == "echo":
            with self._call("echo").connection as connection:
                echo(connection)
        elif order["do"] == "drain":
            return self._drain(min(int(order["streams"]), MOST))
        elif order["do"] == "listen" and order["program"] in KNOWN:
            return {"port": self._open.enter_context(listening(order["program"], own, rdma(own, interface(own))))}
        return {}

    def _drain(self, streams: int) -> dict[str, Any]:
        with contextlib.ExitStack() as stack:
            lines = [stack.enter_context(self._call("drain").connection) for _ in range(streams)]
            total, seconds = drain(lines)
        return {"bytes": total, "seconds": seconds}

    def _call(self, use: str) -> Line:
        return greet(*self._where, token=self._token, use=use, end=self._end)


def answer(address: str, port: int, token: str, seconds: float) -> str:
    """Why it ended before it was told to, "" when it was."""
    try:
        Answering(address, port, token, seconds).run()
    except (OSError, LookupError) as error:
        return str(error) or type(error).__name__
    return ""
