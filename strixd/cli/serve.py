"""serve: order a model, and tell how far it is until the first completion."""

from __future__ import annotations

import time

from strixd.api import wire
from strixd.cli import client
from strixd.cli.parse import Asked
from strixd.cli.screen import View, printable
from strixd.cli.terminal import say
from strixd.cli.waiting import Waiting

INTERRUPTED = 130
_WORDS = {
    "order": "order recorded",
    "image": "image",
    "ray": "ray",
    "load": "model loaded",
    "completion": "first completion",
}


def serve(asked: Asked) -> int:
    parameters: wire.Message = {"model": asked.words["MODEL"], "arguments": list(asked.rest)}
    teller = Teller(time.monotonic())
    try:
        for reply in client.stream(asked.socket, "Serve", parameters):
            teller.hear(reply, time.monotonic())
    except KeyboardInterrupt:
        teller.clear()
        say("detached: strixd goes on. strixd-cli status tells how far it is, strixd-cli stop takes the order back")
        return INTERRUPTED
    finally:
        teller.clear()
    return 0


class Teller:
    """One line per stage that is done, and what is being waited for."""

    def __init__(self, began: float) -> None:
        self._done: list[str] = []
        self._doing = ""
        self._waiting = Waiting(began)
        self.clear = self._waiting.clear

    def hear(self, progress: View | None, now: float) -> None:
        """A reply, or None when a second has gone by."""
        if progress is not None and not progress["done"]:
            self._doing = printable(progress["text"])
        elif progress is not None and progress["stage"] not in self._done:  # after a reconnection all come again
            self._done.append(progress["stage"])
            self._doing = ""
            self._waiting.say(line(progress), now)
        if len(self._done) < len(_WORDS):
            self._waiting.show(self._doing, now, bar=bar(len(self._done)))


def line(progress: View) -> str:
    words = _WORDS.get(progress["stage"], progress["stage"])
    return f"{words}{': ' if progress['text'] else ''}{printable(progress['text'])}"


def bar(done: int) -> str:
    return f"[{'#' * done}{'.' * (len(_WORDS) - done)}] "
