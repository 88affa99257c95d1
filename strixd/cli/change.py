"""apply, history and undo: the settings of this host as changes that are made, remembered and taken back."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from strixd.cli import client
from strixd.cli.columns import columns, widths
from strixd.cli.parse import Asked
from strixd.cli.screen import View, clock, printable
from strixd.cli.terminal import say
from strixd.cli.waiting import Waiting
from strixd.errors import Refused, Rejected, StrixdError

INTERRUPTED = 130
_MOST = 1000  # changes; the daemon gives no more
_LONGEST_UNDO = 600.0  # seconds
_STAGES = {"step": "", "check": "", "undo": "taking back "}


def apply(asked: Asked) -> int:
    teller = Teller(time.monotonic())
    try:
        for reply in client.stream(asked.socket, "Apply"):
            teller.hear(reply, time.monotonic())
    except KeyboardInterrupt:
        teller.clear()
        say("detached: strixd goes on. strixd-cli watch tells how far it is, strixd-cli undo takes it back")
        return INTERRUPTED
    finally:
        teller.clear()
    return _outcome(teller.end, _status(asked))


class Teller:
    """One line per step that is taken or taken back, and what is being waited for. `end`: the last reply."""

    def __init__(self, began: float) -> None:
        self.end: View = {"done": False, "text": "strixd did not say what came of it"}
        self._doing = "the pass over all resources"
        self._waiting = Waiting(began)
        self.clear = self._waiting.clear

    def hear(self, progress: View | None, now: float) -> None:
        """A reply, or None when a second has gone by. The first has no members: the order is recorded."""
        if progress and progress["stage"] == "end":
            self.end = progress
            return
        if progress:
            self._doing = _STAGES.get(progress["stage"], "") + printable(progress["text"])
            if progress["done"] or progress["stage"] == "undo":
                self._waiting.say(self._doing, now)
        self._waiting.show(self._doing, now)


def _status(asked: Asked) -> View:
    status = client.call(asked.socket, "Status")["status"]
    assert isinstance(status, dict)
    return status


def _outcome(end: View, status: View) -> int:
    """0, or raises Rejected; whatever is not ok is named before, with what to do."""
    good = bool(end["done"])
    head = [f"applied: {printable(end['text'])}; {status['node']} is {status['phase']}"] if good else []
    amiss = [line for each in status["resources"] if each["condition"] != "ok" for line in _amiss(each)]
    for line in (*head, *amiss):
        say(line)
    if not good:
        raise Rejected(f"Cannot apply all of it: {printable(end['text'])}", hint="strixd-cli status")
    return 0


def _amiss(resource: View) -> Iterator[str]:
    yield printable(f"  {resource['name']} is {resource['condition']}: {resource['why']}")
    if resource["hint"]:
        yield printable(f"    → {resource['hint']}")


def history(asked: Asked) -> int:
    count = int(asked.words.get("N", "10"))
    if not 1 <= count <= _MOST:
        raise Refused(f"history: N is 1 to {_MOST}, not {count}", hint="for example: strixd-cli history 20")
    changes = _changes(asked, count)
    if asked.has("--json"):
        say(json.dumps(changes, indent=2))
    else:
        say("\n".join(history_lines(changes, time.time())))
    return 0


def _changes(asked: Asked, count: int) -> list[View]:
    changes = client.call(asked.socket, "History", {"count": count})["changes"]
    assert isinstance(changes, list)
    return changes


def history_lines(changes: list[View], now: float) -> list[str]:
    """When, by whom, outcome and resources in columns, below them the reason and the steps; pure."""
    head = ("when", "change", "by whom", "outcome", "settings")
    table = [tuple(map(printable, row)) for row in (head, *(_row(each, now) for each in changes))]
    sizes = widths(table)
    lines = [columns(table[0], sizes)]
    for row, each in zip(table[1:], changes, strict=True):
        lines += ["", columns(row, sizes), *_told(each)]
    return lines if changes else ["nothing has been changed yet"]


def _row(change: View, now: float) -> tuple[str, ...]:
    settings = ", ".join(change["resources"])
    return clock(change["began"], now), change["id"], change["by"], change["outcome"], settings


def _told(change: View) -> Iterator[str]:
    if change["undoes"]:
        yield printable(f"  takes back {change['undoes']}")
    if change["why"]:
        yield printable(f"  {'undone ' if change['outcome'] == 'undone' else 'why: '}{change['why']}")
    for step in change["steps"]:
        yield f"  - {printable(step['text'])}{' (needs a reboot)' if step['effect'] == 'reboot' else ''}"


def undo(asked: Asked) -> int:
    return _undo_all(asked) if asked.has("--all") else _undo(asked)


def _undo_all(asked: Asked) -> int:
    try:
        while True:
            _undo(asked)
    except StrixdError as error:
        if error.code != "NothingToUndo":
            raise
    say("nothing is left to take back")
    return 0


def _undo(asked: Asked) -> int:
    """The daemon chooses, and refuses when there is nothing."""
    reply = client.call(asked.socket, "Undo", patience=_LONGEST_UNDO, again=False)["change"]
    assert isinstance(reply, dict)
    say("\n".join(undo_lines(reply, time.time())))
    _undone(reply)
    return 0


def undo_lines(change: View, now: float) -> list[str]:
    """What was taken back, in the order in which it was; pure."""
    back = [f"  {printable(step['undo'])}" for step in reversed(change["steps"]) if step["undo"]]
    return [printable(f"took back {change['id']}, {clock(change['began'], now)}, {change['by']}:"), *back]


def _undone(change: View) -> None:
    names = printable(", ".join(change["resources"]))
    if change["outcome"] != "undone":
        text = f"Cannot take all of it back: {names}: {printable(change['why'])}"
        raise Rejected(text, hint="strixd-cli history")
    reboot = any(step["effect"] == "reboot" for step in change["steps"])
    last = "; kernel arguments count from the next boot on" if reboot else ""
    say(f"taken back{last}. Left alone from now on, until strixd-cli apply: {names}{_with_it(change)}")


def _with_it(change: View) -> str:
    """What else a person must know: the link's zone and fence go with it, and Ray does not end by itself."""
    if not {"firewall", "network"} & set(change["resources"]):
        return ""
    return "; with the link goes its firewall. Ray runs on, perhaps without its fence: systemctl stop strixd-ray"
