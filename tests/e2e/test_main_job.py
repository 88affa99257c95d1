"""From nothing to tokens on two real hosts, and tokens again after any order of starts: nobody gives a command."""

from __future__ import annotations

import json
import time

import pytest

from strixd import fence
from strixd.config.loading import parse
from tests.e2e.cluster import Cluster, pieces
from tests.lab import registry
from tests.lab.cluster import FILE, KEY
from tests.lab.host import Host, wait_for
from tests.lab.judge import GOING_DOWN, Judge

pytestmark = pytest.mark.lab


def test_serve_ends_with_a_first_completion(serving: Cluster) -> None:
    status = serving.status()
    assert status["phase"] == "ready"
    assert [member["joined"] for member in status["members"]] == [True, True]
    assert status["model"]["answeredAt"] > 0


def test_completion_streams_from_tensor_parallel_two(serving: Cluster) -> None:
    parts = pieces(serving.head.run(*serving.stream(8), timeout=120).stdout)
    assert len(parts) >= 8
    said = serving.head.sh("journalctl -u strixd-vllm -o cat --no-pager")
    assert "tensor_parallel_size=2" in said
    for host in serving.hosts:
        assert "RayWorker" in host.sh("ps -eo args"), f"no rank runs on {host.name}"


def test_all_that_ray_and_the_ranks_listen_on_is_behind_the_fence(serving: Cluster) -> None:
    """But for loopback, ssh and the resolver of these hosts, nothing else listens there."""
    fenced = fence.fenced(parse(serving.head.read(FILE), FILE).config)
    ranges = [range(int(first), int(last or first) + 1) for first, _, last in (each.partition("-") for each in fenced)]
    for host in serving.hosts:
        listed = [line.split()[3].rpartition(":") for line in host.sh("ss -Hltn").splitlines()]
        ports = {int(port) for address, _, port in listed if "127.0.0." not in address} - {22, 5355}
        assert len(ports) > 3, "Ray listens"
        assert {port for port in ports if not any(port in each for each in ranges)} == set(), host.name


def test_without_memory_the_kernel_would_take_ranks_first_then_the_rest_of_the_model(serving: Cluster) -> None:
    """Whom it takes is for a machine with memory limits (tests/vm); here what the real processes bring with them."""
    slice_ = "/sys/fs/cgroup/strixd.slice/strixd-workload.slice"
    processes = f"cat $(find {slice_} -path '*/libpod-payload-*' -name cgroup.procs)"
    look = "score=$(cat /proc/$one/oom_score_adj 2>&-) && echo $score $(cat /proc/$one/comm 2>&-)"
    for host in serving.hosts:
        told = [
            line.split(" ", 1) for line in host.sh(f"for one in $({processes}); do {look}; done; true").splitlines()
        ]
        assert {score for score, _ in told} == {"900", "1000"}, told
        assert {score for score, name in told if name.startswith("ray::RayWorker")} == {"1000"}, told


def test_status_alone_tells_what_runs_where(serving: Cluster) -> None:
    head, worker = (serving.cli("status", host=host).check().stdout for host in serving.hosts)
    for words in ("halo1", "ready", "tiny", "halo2", "192.168.100.2", "enp1s0", "http://127.0.0.1:8000"):
        assert words in head
    assert "halo2" in worker
    assert "worker" in worker


def test_serve_on_a_worker_is_refused_with_name_and_address_of_the_head(serving: Cluster) -> None:
    refused = serving.cli("serve", "tiny", host=serving.workers[0])
    assert refused.rc == 2
    assert "halo1 (192.168.100.1)" in refused.stderr


def test_restart_of_strixd_interrupts_no_stream_and_refuses_no_call(serving: Cluster) -> None:
    reading = serving.head.stream(*serving.stream(400))
    assert reading.stdout
    begun = reading.stdout.readline()
    restarting = serving.head.stream("systemctl", "restart", "strixd")
    calls = [serving.cli("status") for _ in range(8)]
    rest, _ = reading.communicate(timeout=120)
    assert restarting.wait(30) == 0
    assert len(pieces(begun + rest)) > 100
    assert [call.rc for call in calls] == [0] * 8


def test_sigterm_ends_strixd_in_time_and_leaves_the_workloads(serving: Cluster) -> None:
    began = time.monotonic()
    serving.head.run("systemctl", "stop", "strixd.service", "strixd.socket")
    assert time.monotonic() - began < 5
    assert serving.complete()
    serving.head.run("systemctl", "start", "strixd.socket", "strixd.service")


def test_drain_lets_a_request_finish_and_undrain_serves_again(serving: Cluster, judge: Judge) -> None:
    judge.expect(*GOING_DOWN)
    before = serving.status()["incident"]
    reading = serving.head.stream(*serving.stream(300))
    assert reading.stdout
    begun = reading.stdout.readline()
    drained = serving.cli("drain").check().stdout
    rest, _ = reading.communicate(timeout=120)
    assert len(pieces(begun + rest)) > 100
    assert "cut off" not in drained
    assert serving.status()["phase"] == "drained"
    assert "not served until strixd-cli undrain" in serving.cli("status").check().stdout
    measured = json.loads(serving.cli("bench", "link", "--json").check().stdout)
    assert [row["rung"] for row in measured["rows"]] == ["tcp"], "without --force, since nothing is served"
    assert not serving.head.sh("ss -Hltn sport = :8000")
    refused = serving.cli("serve", "tiny")
    assert (refused.rc, "strixd-cli undrain" in refused.stderr) == (2, True)
    assert "first completion" in serving.cli("undrain").check().stdout
    assert serving.complete()
    assert serving.status()["incident"] == before


def test_restart_by_order_waits_for_tokens_and_is_no_incident(serving: Cluster, judge: Judge) -> None:
    judge.expect(*GOING_DOWN)
    before, server = serving.status()["incident"], serving.server_pid()
    assert "first completion" in serving.cli("restart").check().stdout
    assert serving.server_pid() != server
    assert serving.status()["incident"] == before


def test_stop_leaves_nothing_of_the_model(serving: Cluster) -> None:
    serving.cli("stop").check()
    wait_for("the model is gone", lambda: serving.status()["model"] is None, 60, pause=0.5)
    wait_for("the port is free", lambda: not serving.head.sh("ss -Hltn sport = :8000"), 60, pause=0.5)
    for host in serving.hosts:
        wait_for("no rank is left", lambda host=host: "RayWorker" not in host.sh("ps -eo args"), 30)  # type: ignore[misc]


def test_a_node_with_another_cluster_key_is_refused_and_says_so(serving: Cluster, judge: Judge) -> None:
    judge.expect(*GOING_DOWN)
    worker, key = serving.workers[0], serving.head.read(KEY)
    worker.write(KEY, "0" * 64 + "\n", 0o600)
    serving.cli("apply", host=worker).check()
    wait_for("the worker says why", lambda: "another cluster key" in why(serving, worker), 60, pause=1.0)
    assert key.strip() not in worker.sh("journalctl -b -o cat --no-pager; cat /run/containers/systemd/*; ps -eo args")
    worker.write(KEY, key, 0o600)
    serving.cli("apply", host=worker).check()
    wait_for("it has joined", lambda: serving.status()["phase"] == "ready", 90, pause=1.0)


def test_the_image_moves_only_when_asked_and_two_images_are_one_too_many(serving: Cluster, judge: Judge) -> None:
    judge.expect(*GOING_DOWN)
    worker = serving.workers[0]
    registry.move_tag("second")
    try:
        serving.cli("apply").check()
        assert registry.digest("first")[:19] in serving.cli("status").check().stdout
        serving.cli("image", "update").check()
        wait_for("the other image is named", lambda: "halo2" in why(serving, serving.head, "runs image"), 90, pause=1.0)
        serving.cli("image", "update", host=worker).check()
        wait_for("both run the new one", lambda: serving.status()["phase"] == "ready", 90, pause=1.0)
        assert registry.digest("second")[:19] in serving.cli("status").check().stdout
    finally:
        registry.move_tag("first")


def why(cluster: Cluster, host: Host, words: str = "") -> str:
    """Why Ray is not ok there, if that has these words."""
    said = next(each["why"] for each in cluster.status(host)["resources"] if each["name"] == "ray")
    return str(said) if words in said else ""
