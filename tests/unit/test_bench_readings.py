"""What the measuring programs write, as numbers and rows."""

from __future__ import annotations

from typing import Any

import pytest
from recorded_perftest import BANDWIDTH, IPERF3, IPERF3_REFUSED, LATENCY, OLDEST, REFUSED, WARNED

from strixd.bench.readings import Row, gather, iperf3, percentile, perftest

PING = {"peer": "halo2", "what": "ping", "tool": "strixd", "trips": [70.0, 68.0, 66.0, 90.0]}


@pytest.mark.parametrize(
    ("text", "typical", "p99"), [(LATENCY, 5.04, 7.38), (WARNED, 7.04, 7.38), (OLDEST, 1.79, None)]
)
def test_perftest_latency(text: str, typical: float, p99: float | None) -> None:
    found = perftest(text)
    assert found["t_typical[usec]"] == typical
    assert found.get("99% percentile[usec]") == p99


def test_perftest_bandwidth() -> None:
    assert perftest(BANDWIDTH)["BW average[Gb/sec]"] == 50.64


@pytest.mark.parametrize("text", ["", REFUSED, LATENCY.partition(" 2 ")[0], "2 5000 1 2 3"])
def test_perftest_without_a_row_is_no_result(text: str) -> None:
    with pytest.raises(ValueError, match="no result"):
        perftest(text)


def test_iperf3_counts_what_was_received() -> None:
    assert iperf3(IPERF3) == pytest.approx(8.517, abs=0.001)
    with pytest.raises(ValueError, match="Connection refused"):
        iperf3(IPERF3_REFUSED)


@pytest.mark.parametrize(
    ("numbers", "percent", "expected"),
    [([5.0], 50, 5), ([5.0], 99, 5), ([3.0, 1.0, 2.0], 50, 2), ([1.0, 2.0], 50, 1), (list(range(1, 101)), 99, 99)],
)
def test_percentile(numbers: list[float], percent: float, expected: float) -> None:
    assert percentile(numbers, percent) == expected


def test_tcp_is_one_row_named_after_its_link() -> None:
    stream = {"peer": "halo2", "what": "stream", "tool": "iperf3", "output": IPERF3}
    found = gather([PING, stream], "thunderbolt")
    row = Row("halo2", "thunderbolt", 68.0, 90.0, "strixd", iperf3(IPERF3), "iperf3")
    assert (found.rows, found.lacking, found.failed) == ((row,), (), ())


def test_bandwidth_by_python_alone_is_what_arrived_in_its_time() -> None:
    found = gather([{"peer": "b", "what": "stream", "tool": "strixd", "bytes": 5e9, "seconds": 4.0}], "tcp")
    assert found.rows == (Row("b", "tcp", bandwidth=10.0, bandwidth_by="strixd"),)


def test_rdma_is_a_row_for_each_verb() -> None:
    outputs = {"ib_write_lat": LATENCY, "ib_send_lat": WARNED, "ib_write_bw": BANDWIDTH}
    found = gather([{"peer": "b", "what": what, "tool": what, "output": text} for what, text in outputs.items()], "tcp")
    write = Row("b", "rdma write", 5.04, 7.38, "ib_write_lat", 50.64, "ib_write_bw")
    assert found.rows == (write, Row("b", "rdma send", 7.04, 7.38, "ib_send_lat"))


@pytest.mark.parametrize(
    ("message", "lacking", "failed"),
    [
        ({"what": "ib_write_bw", "lacking": "no port"}, ("b: ib_write_bw: no port",), ()),
        ({"what": "ping", "failed": "timed out"}, (), ("b: TCP latency: timed out",)),
        ({"failed": "Ray has no living node"}, (), ("b: Ray has no living node",)),
        (
            {"what": "ping", "tool": "strixd", "trips": []},
            (),
            ("b: TCP latency: cannot read what it wrote: no number",),
        ),
        (
            {"what": "stream", "tool": "strixd", "bytes": 0, "seconds": 5.0},
            (),
            ("b: TCP bandwidth: cannot read what it wrote: nothing went through",),
        ),
        ({"what": "ib_send_lat", "tool": "ib_send_lat", "output": REFUSED}, (), ("b: ib_send_lat: cannot read",)),
    ],
)
def test_what_brought_no_number_is_said(
    message: dict[str, Any], lacking: tuple[str, ...], failed: tuple[str, ...]
) -> None:
    found = gather([{"peer": "b", **message}], "tcp")
    assert (found.rows, found.lacking) == ((), lacking)
    assert len(found.failed) == len(failed)
    assert all(map(str.startswith, found.failed, failed))


def test_one_reason_is_said_once() -> None:
    found = gather(
        [{"peer": "b", "what": what, "lacking": "no port"} for what in ("ib_write_lat", "ib_write_bw")], "tcp"
    )
    assert found.lacking == ("b: ib_write_lat, ib_write_bw: no port",)
