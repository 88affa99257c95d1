"""What the measuring programs wrote, as numbers; and those as rows of one table. Pure.

TCP's latency is a round trip, as ping's. perftest's is half of one; its typical value is the median.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

_COLUMN = re.compile(r"#\w+|t_\w+\[usec\]|[\d.]+% percentile\[usec\]|BW \w+\[[^\]]+\]|MsgRate\[\w+\]|tps average")
WORDS = {"ping": "TCP latency", "stream": "TCP bandwidth"}
"""What is measured, as people say it; programs by their own names."""


@dataclass(frozen=True, slots=True)
class Row:
    """One way to one peer. Latencies in µs, bandwidth in Gb/s; None: not measured. `…_by`: the tool that measured."""

    peer: str
    rung: str
    latency: float | None = None
    p99: float | None = None
    latency_by: str = ""
    bandwidth: float | None = None
    bandwidth_by: str = ""


@dataclass(frozen=True, slots=True)
class Readings:
    """`lacking`: what could not be measured since something is not there; `failed`: what went wrong."""

    rows: tuple[Row, ...] = ()
    lacking: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


def gather(messages: Iterable[Mapping[str, Any]], tcp: str) -> Readings:
    """`tcp`: what TCP over this link is called."""
    rows: dict[tuple[str, str], Row] = {}
    lacking: dict[tuple[str, str], list[str]] = {}
    failed = []
    for message in messages:
        peer, what = str(message["peer"]), str(message.get("what", ""))
        if "lacking" in message:
            lacking.setdefault((peer, str(message["lacking"])), []).append(what)
        elif why := _taken(rows, message, tcp):
            failed.append(": ".join(filter(None, (peer, WORDS.get(what, what), why))))
    told = (f"{peer}: {', '.join(whats)}: {why}" for (peer, why), whats in lacking.items())
    return Readings(tuple(rows.values()), tuple(told), tuple(failed))


def _taken(rows: dict[tuple[str, str], Row], message: Mapping[str, Any], tcp: str) -> str:
    """Why it brought no number, "" when it did; that is in its row then."""
    if "failed" in message:
        return str(message["failed"])
    try:
        key = (str(message["peer"]), _rung(str(message["what"]), tcp))
        rows[key] = _filled(rows.get(key, Row(*key)), message)
    except (ValueError, LookupError, TypeError, ArithmeticError) as error:
        return f"cannot read what it wrote: {error}"
    return ""


def _rung(what: str, tcp: str) -> str:
    return tcp if what in WORDS else f"rdma {what.split('_')[1]}"


def _filled(row: Row, message: Mapping[str, Any]) -> Row:
    what, tool = str(message["what"]), str(message["tool"])
    if what == "stream" or what.endswith("_bw"):
        return replace(row, bandwidth=_more_than_none(_bandwidth(message)), bandwidth_by=tool)
    if what == "ping":
        trips = message["trips"]
        return replace(row, latency=percentile(trips, 50), p99=percentile(trips, 99), latency_by=tool)
    numbers = perftest(message["output"])
    p99 = numbers.get("99% percentile[usec]")  # not told by the oldest
    return replace(row, latency=numbers["t_typical[usec]"], p99=p99, latency_by=tool)


def _more_than_none(bandwidth: float) -> float:
    if bandwidth <= 0:
        raise ValueError("nothing went through")
    return bandwidth


def _bandwidth(message: Mapping[str, Any]) -> float:
    if "output" not in message:
        return float(message["bytes"]) * 8 / float(message["seconds"]) / 1e9
    if message["tool"] == "iperf3":
        return iperf3(message["output"])
    return perftest(message["output"])["BW average[Gb/sec]"]


def percentile(numbers: Sequence[float], percent: float) -> float:
    """The smallest of them that so many percent do not exceed. ValueError: there are none."""
    if not numbers:
        raise ValueError("no number came")
    return float(sorted(numbers)[max(0, math.ceil(len(numbers) * percent / 100) - 1)])


def iperf3(text: str) -> float:
    """Gb/s at the end that receives, over all streams. ValueError or LookupError: it tells none."""
    told = json.loads(text)
    if "error" in told:
        raise ValueError(str(told["error"]))
    return float(told["end"]["sum_received"]["bits_per_second"]) / 1e9


def perftest(text: str) -> dict[str, float]:
    """The last row by its columns. Other lines come between, also between head and row ("Conflicting CPU frequency
    values detected"). ValueError: there is no row."""
    columns: list[str] = []
    found: dict[str, float] = {}
    for line in text.splitlines():
        if line.lstrip().startswith("#"):
            columns = _COLUMN.findall(line)
        elif columns and len(cells := line.split()) == len(columns) and _numbers(cells):
            found = dict(zip(columns, map(float, cells), strict=True))
    if not found:
        raise ValueError("no result in it")
    return found


def _numbers(cells: list[str]) -> bool:
    return all(re.fullmatch(r"\d+(\.\d+)?", cell) for cell in cells)
