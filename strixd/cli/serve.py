"""serve, drain, undrain and restart: an order, and how far it is until it is done."""

from __future__ import annotations

import time
from collections.abc import Iterator

from strixd.api import wire
from strixd.cli import client
from strixd.cli.parse import Asked
from strixd.cli.screen import View, printable
from strixd.cli.terminal import say
from strixd.cli.waiting import Waiting

INTERRUPTED = 130
_WORDS = {
    "order": "order recorded",
    "drain": "drained",
    "image": "image",
    "ray": "ray",
    "load": "model loaded",
    "completion": "first completion",
}
_SERVE = 5  # stages: the order, image, ray, load and completion


def serve(asked: Asked) -> int:
    parameters: wire.Message = {"model": asked.words["MODEL"], "arguments": list(asked.rest)}
    replies = client.stream(asked.socket, "Serve", parameters)
    return _follow(replies, _SERVE, "strixd-cli stop takes the order back")


def drain(asked: Asked) -> int:
    return _follow(client.stream(asked.socket, "Drain"), 2, "strixd-cli undrain takes the order back")


def undrain(asked: Asked) -> int:
    return _follow(client.stream(asked.socket, "Undrain"), _SERVE, "strixd-cli drain takes the order back")


def restart(asked: Asked) -> int:
    """Asked twice it would restart twice."""
    parameters: wire.Message = {"workload": asked.words.get("WHAT", "vllm")}
    replies = client.replies(asked.socket, "Restart", lambda: parameters, more=True, again=False)
    return _follow(replies, _SERVE, "strixd-cli watch shows it")


def _follow(replies: Iterator[View | None], stages: int, back: str) -> int:
    teller = Teller(time.monotonic(), stages)
    try:
        for reply in replies:
            teller.hear(reply, time.monotonic())
    except KeyboardInterrupt:
        teller.clear()
        say(f"detached: strixd goes on. strixd-cli status tells how far it is, {back}")
        return INTERRUPTED
    finally:
        teller.clear()
    return 0


class Teller:
    """One line per stage that is done, and what is being waited for."""

    def __init__(self, began: float, stages: int = _SERVE) -> None:
        self._stages = stages
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
        if len(self._done) < self._stages:
            self._waiting.show(self._doing, now, bar=bar(len(self._done), self._stages))


def line(progress: View) -> str:
    words = _WORDS.get(progress["stage"], progress["stage"])
    return f"{words}{': ' if progress['text'] else ''}{printable(progress['text'])}"


def bar(done: int, stages: int = _SERVE) -> str:
    return f"[{'#' * done}{'.' * (stages - done)}] "
