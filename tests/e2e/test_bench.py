"""bench on the cluster that serves: the link through Ray and by hand, the model under load; nothing stays behind."""

from __future__ import annotations

import json
import shlex
from functools import partial
from typing import Any

import pytest

from tests.e2e.cluster import Cluster
from tests.lab.host import Host, wait_for

pytestmark = pytest.mark.lab

HISTORY = "/var/lib/strixd/bench.json"


def measured(serving: Cluster, *words: str, host: Host | None = None) -> dict[str, Any]:
    done = serving.cli("bench", *words, "--json", host=host).check()
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def nothing_is_left(serving: Cluster) -> None:
    for host in serving.hosts:
        wait_for(f"nothing of it is left on {host.name}", partial(is_clear, host), 45, pause=0.5)


def is_clear(host: Host) -> bool:
    ours = ("probe/link", "probe.link", "ray::answer", "iperf3", "ib_write")
    return not any(word in host.sh("ps -eo args") for word in ours)


def test_the_link_is_not_measured_while_a_model_is_served(serving: Cluster) -> None:
    refused = serving.cli("bench", "link")
    assert refused.rc == 2
    assert "while tiny is served" in refused.stderr
    assert "--force" in refused.stderr


def test_a_worker_sees_the_model_by_its_ranks(serving: Cluster) -> None:
    worker = serving.workers[0]
    done = serving.cli("bench", "link", "--json", host=worker)
    assert done.rc == 1
    assert json.loads(done.stdout)["rows"] == []
    assert "processes of a model run on this node" in json.loads(done.stdout)["failed"][0]


@pytest.mark.parametrize("number", [0, 1], ids=["head", "worker"])
def test_tcp_to_the_peer_through_ray(serving: Cluster, number: int) -> None:
    host, peer = serving.hosts[number], serving.hosts[1 - number]
    told = measured(serving, "link", "--force", host=host)
    (row,) = told["rows"]
    assert (row["peer"], row["rung"], row["latency_by"]) == (peer.name, "tcp", "strixd")
    assert 0 < row["latency"] <= row["p99"]
    assert row["bandwidth"] > 0
    assert told["failed"] == []
    assert "no active RDMA port" in told["lacking"][0]
    nothing_is_left(serving)
    assert serving.complete()


def test_the_table_and_the_history(serving: Cluster) -> None:
    text = serving.cli("bench", "--force", "--rung", "tcp").check().stdout
    assert "halo2" in text
    assert "50.64" in text
    runs = json.loads(serving.head.read(HISTORY))
    assert [run["key"] for run in runs] == ["link", "link"]
    runs[-1]["values"] = {name: value / 100 for name, value in runs[-1]["values"].items() if "latency" in name}
    serving.head.write(HISTORY, json.dumps(runs))
    assert "worse: halo2 tcp latency (strixd): by a factor of" in serving.cli("bench", "--force").check().stdout


def test_interrupted_it_leaves_no_process_on_either_node(serving: Cluster) -> None:
    done = serving.head.attempt("timeout", "-s", "INT", "5", "strixd-cli", "bench", "link", "--force", timeout=60)
    assert done.rc == 124
    nothing_is_left(serving)


def test_killed_it_leaves_no_process_on_either_node(serving: Cluster) -> None:
    serving.head.attempt("timeout", "-s", "KILL", "5", "strixd-cli", "bench", "link", "--force", timeout=60)
    nothing_is_left(serving)


def test_by_hand_where_no_strixd_answers(serving: Cluster) -> None:
    words = ("bench", "link", "--force", "--rung", "tcp", "--json", "--socket", "/nonexistent")
    reading = serving.head.stream("strixd-cli", *words)
    assert reading.stdout
    told = ""
    while "--answer" not in told:
        line = reading.stdout.readline()
        assert line, told
        told += line
    command = told.partition(" s:  ")[2].strip()
    answer = serving.workers[0].attempt(*shlex.split(command), timeout=60)
    rest, _ = reading.communicate(timeout=60)
    assert (answer.rc, answer.stderr) == (0, "")
    (row,) = json.loads(rest[rest.index("{") :])["rows"]
    assert (row["peer"], row["rung"]) == ("halo2", "tcp")
    assert row["bandwidth"] > 0


def test_the_model_under_load(serving: Cluster) -> None:
    told = measured(serving, "model")
    assert told["model"] == "tiny"
    assert told["digest"].startswith("sha256:")
    assert [(level["streams"], level["requests"]) for level in told["levels"]] == [(1, 4), (4, 12), (16, 32)]
    assert all(level["rate"] > 0 and 0 < level["first"] <= level["first_p95"] for level in told["levels"])
    again = serving.cli("bench", "model").check().stdout
    assert "tokens/s" in again
    keys = [run["key"] for run in json.loads(serving.head.read(HISTORY))]
    assert keys[-1] == keys[-2]
    assert keys[-1].startswith(f"model tiny {told['digest']}")


def test_the_model_is_measured_on_the_head(serving: Cluster) -> None:
    refused = serving.cli("bench", "model", host=serving.workers[0])
    assert refused.rc == 2
    assert "halo1 (192.168.100.1)" in refused.stderr
