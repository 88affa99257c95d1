"""incidents: when the model did not answer, for how long, and why, and where the evidence is."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path

from strixd.cli import client
from strixd.cli.columns import columns, widths
from strixd.cli.parse import Asked
from strixd.cli.screen import View, clock, printable
from strixd.cli.terminal import say
from strixd.errors import Refused

EVIDENCE = Path("/var/lib/strixd/evidence")  # strixd/evidence/bundle.py
_MOST = 1000  # incidents; the daemon gives no more


def incidents(asked: Asked) -> int:
    count = int(asked.words.get("N", "10"))
    if not 1 <= count <= _MOST:
        raise Refused(f"incidents: N is 1 to {_MOST}, not {count}", hint="for example: strixd-cli incidents 20")
    found = client.call(asked.socket, "Incidents", {"count": count})["incidents"]
    assert isinstance(found, list)
    say(json.dumps(found, indent=2) if asked.has("--json") else "\n".join(lines(found, time.time(), _saved())))
    return 0


def _saved() -> list[str]:
    """Names of the folders; only root can look."""
    with suppress(OSError):
        return sorted(folder.name for folder in EVIDENCE.iterdir())
    return []


def lines(found: list[View], now: float, saved: list[str]) -> list[str]:
    """When, id and how long in columns, with the cause; below it each moment in seconds from the beginning, and the
    evidence `saved` meanwhile, which is named by its time; pure."""
    if not found:
        return ["no incident is known"]
    head = ("began", "incident", "no answer for", "cause")
    table = [tuple(map(printable, row)) for row in (head, *(_row(each, now) for each in found))]
    sizes = widths(table)
    told = [columns(table[0], sizes)]
    for row, each in zip(table[1:], found, strict=True):
        told += ["", columns(row, sizes), f"  {_moments(each)}"]
        told += [f"  evidence: {EVIDENCE / name}" for name in saved if _between(each, name)]
    return told


def _row(incident: View, now: float) -> tuple[str, ...]:
    began, ended = incident["began"], incident["ended"]
    lasted = f"{max(0.0, ended - began):.1f} s" if ended else f"{max(0.0, now - began):.0f} s, open"
    return clock(began, now), incident["id"], lasted, f"{incident['resource']}: {incident['cause']}"


def _moments(incident: View) -> str:
    began = incident["began"]
    return ", ".join(f"{printable(each['name'])} +{max(0.0, each['at'] - began):.1f} s" for each in incident["moments"])


def _between(incident: View, name: str) -> bool:
    first, last = (time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(incident[at] or 1e11)) for at in ("began", "ended"))
    return first <= name <= last + "~"
