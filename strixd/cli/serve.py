"""serve: order a model, and tell how far it is until the first completion."""

from __future__ import annotations

import time

from strixd.api import wire
from strixd.cli import client, terminal
from strixd.cli.parse import Asked
from strixd.cli.screen import View, printable
from strixd.cli.terminal import say

INTERRUPTED = 130
_WORDS = {
    "order": "order recorded",
    "image": "image",
    "ray": "ray",
    "load": "model loaded",
    "completion": "first completion",
}
_BACK = "\r\x1b[K"  # to the beginning of the line, and nothing on it


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
    """One line per stage that is done, and on a terminal a last line that lives."""

    def __init__(self, began: float) -> None:
        self._began = began
        self._done: list[str] = []
        self._doing = ""
        self._live = terminal.is_terminal()
        self._columns = terminal.columns()

    def hear(self, progress: View | None, now: float) -> None:
        """A reply, or None when a second has gone by."""
        if progress is not None and not progress["done"]:
            self._doing = printable(progress["text"])
        elif progress is not None and progress["stage"] not in self._done:  # after a reconnection all come again
            self._done.append(progress["stage"])
            self._doing = ""
            self.clear()
            say(line(progress, now - self._began))
        if self._live and len(self._done) < len(_WORDS):
            self._write(bar(len(self._done), self._doing, now - self._began)[: self._columns - 1])

    def clear(self) -> None:
        if self._live:
            self._write("")

    def _write(self, text: str) -> None:
        terminal.put(_BACK + text)


def line(progress: View, elapsed: float) -> str:
    words = _WORDS.get(progress["stage"], progress["stage"])
    return f"{elapsed:7.1f} s  {words}{': ' if progress['text'] else ''}{printable(progress['text'])}"


def bar(done: int, doing: str, elapsed: float) -> str:
    return f"{elapsed:7.1f} s  [{'#' * done}{'.' * (len(_WORDS) - done)}] {doing}"
