"""What came of it, as lines of text and as JSON. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from strixd.bench import history, link, model
from strixd.bench.readings import Row
from strixd.cli.columns import columns, widths
from strixd.cli.screen import clock, printable

GUIDE = (
    Row("guide", "LAN, TCP", 74.0, bandwidth=0.94),
    Row("guide", "RoCE card, TCP", 68.0, bandwidth=55.70),
    Row("guide", "RoCE card, RDMA", 5.23, bandwidth=50.64),
)
"""What the guide measured, with ping, iperf3 and perftest."""
_LINK = ("peer", "rung", "latency µs", "99 % µs", "Gb/s", "measured by")
_NOTES = (
    "TCP: there and back, the median; RDMA: one way. A PCIe x4 slot gives about 50 Gb/s: no fault.",
    f"Differences of less than a factor of {history.NOISE:g} are taken for noise.",
)
_MODEL = ("streams", "requests", "first token ms", "95 % ms", "tokens/s")


def link_lines(outcome: link.Outcome) -> list[str]:
    readings = outcome.readings
    lines = _table([_LINK, *map(_link_row, (*readings.rows, *GUIDE))])
    lines += ["", *_NOTES]
    lines += _listed("not measured", readings.lacking) + _listed("failed", readings.failed)
    return lines + _worse(outcome.worse, outcome.at)


def model_lines(outcome: model.Outcome) -> list[str]:
    rows = [
        (str(each.streams), str(each.requests), f"{each.first:.0f}", f"{each.first_p95:.0f}", f"{each.rate:.1f}")
        for each in outcome.levels
    ]
    about = f"{outcome.model}, image {outcome.digest[:19] or 'unknown'}"
    return [about, "", *_table([_MODEL, *rows]), "", _NOTES[1], *_worse(outcome.worse, outcome.at)]


def link_json(outcome: link.Outcome) -> dict[str, Any]:
    told = asdict(outcome.readings)
    return {"at": outcome.at, **told, "worse": _plain(outcome.worse), "guide": _plain(GUIDE), "noise": history.NOISE}


def model_json(outcome: model.Outcome) -> dict[str, Any]:
    return {**asdict(outcome), "noise": history.NOISE}


def _plain(values: Iterable[Any]) -> list[dict[str, Any]]:
    return [asdict(each) for each in values]


def _link_row(row: Row) -> tuple[str, ...]:
    tools = ", ".join(dict.fromkeys(filter(None, (row.latency_by, row.bandwidth_by))))
    return (row.peer, row.rung, _number(row.latency), _number(row.p99), _number(row.bandwidth), tools)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    told = [tuple(map(printable, row)) for row in rows]
    return [columns(row, widths(told)) for row in told]


def _listed(word: str, texts: Sequence[str]) -> list[str]:
    return [printable(f"{word}: {text}") for text in texts]


def _worse(found: Sequence[history.Worse], now: float) -> list[str]:
    return [
        f"worse: {each.name.rpartition(', ')[0]}: by a factor of {each.factor:.1f} since {clock(each.at, now)}: "
        f"{each.before:.2f} then, {each.now:.2f} {each.name.rpartition(', ')[2]} now"
        for each in found
    ]
