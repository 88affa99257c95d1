"""What is measured and refused, what is worse than before, and how it is told."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from strixd.bench import link, load, model, table
from strixd.bench.history import KEPT, NOISE, Run, Worse, keep, worse
from strixd.bench.history import load as load_history
from strixd.bench.plan import RDMA, TCP, Peer, Scene, Wanted, jobs
from strixd.bench.readings import Readings, Row
from strixd.bench.scene import of_config, of_status
from strixd.config.loading import parse
from strixd.errors import Refused
from tests.cluster_file import cluster_file

SCENE = Scene("halo1", "192.168.100.1", (Peer("halo2", "192.168.100.2", True), Peer("halo3", "192.168.100.3", False)))
SERVING = replace(SCENE, model="tiny")
CABLE = replace(SCENE, driver="thunderbolt-net")
STATUS: dict[str, Any] = {
    "node": "halo1",
    "role": "head",
    "head": "halo1",
    "headAddress": "198.51.100.1",
    "drained": False,
    "model": {"name": "tiny", "url": "http://127.0.0.1:8000", "answeredAt": 5.0},
    "members": [
        {"name": "halo1", "address": "198.51.100.1", "joined": True},
        {"name": "halo2", "address": "198.51.100.2", "joined": False},
    ],
}


@pytest.mark.parametrize(
    ("scene", "rung", "measure"),
    [
        (SCENE, "", [*TCP, *RDMA]),
        (SCENE, "tcp", list(TCP)),
        (SCENE, "rdma", list(RDMA)),
        (CABLE, "thunderbolt", list(TCP)),
    ],
)
def test_each_peer_is_measured_by_the_wanted_rungs(scene: Scene, rung: str, measure: list[str]) -> None:
    made = list(jobs(scene, Wanted(rung)))
    assert [(job["peer"]["name"], job["ray"]) for job in made] == [("halo2", True), ("halo3", False)]
    assert [job["measure"] for job in made] == [measure, measure]


@pytest.mark.parametrize(
    ("scene", "wanted", "why"),
    [
        (SERVING, Wanted(), "while tiny is served"),
        (SERVING, Wanted("rdma"), "while tiny is served"),
        (SCENE, Wanted("thunderbolt"), "192.168.100.1 is on another link (no driver known)"),
        (replace(SCENE, driver="ice"), Wanted("thunderbolt", force=True), "(driver ice)"),
        (replace(SCENE, peers=()), Wanted(force=True), "no other node"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_touched(scene: Scene, wanted: Wanted, why: str) -> None:
    with pytest.raises(Refused) as refused:
        list(jobs(scene, wanted))
    assert why in str(refused.value)


def test_a_served_model_gives_way_to_force() -> None:
    assert all(job["force"] for job in jobs(SERVING, Wanted(force=True)))


@pytest.mark.parametrize(
    ("change", "served"), [({}, "tiny"), ({"drained": True}, ""), ({"model": None}, ""), ({"role": "worker"}, "tiny")]
)
def test_the_scene_by_status(change: dict[str, Any], served: str) -> None:
    seen = of_status(STATUS | change)
    assert seen == Scene("halo1", "198.51.100.1", (Peer("halo2", "198.51.100.2", False),), served)


def test_the_scene_by_the_file_knows_no_members() -> None:
    config = parse(cluster_file().replace("192.168.100", "198.51.100"), "cluster.toml").config
    assert of_config(config, config.nodes[1]) == Scene("halo2", "198.51.100.2", (Peer("halo1", "198.51.100.1", False),))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"role": "worker"}, "the head serves it, halo1 (198.51.100.1)"),
        ({"model": None}, "none is ordered"),
        ({"drained": True}, "does not answer"),
        ({"model": {**STATUS["model"], "answeredAt": 0.0}}, "does not answer"),
    ],
)
def test_a_model_that_does_not_answer_here_is_not_measured(change: dict[str, Any], why: str) -> None:
    with pytest.raises(Refused) as refused:
        model.target(STATUS | change, "")
    assert why in str(refused.value)


LATENCY, RATE = "halo2 tcp latency (strixd), µs", "halo2 tcp bandwidth (iperf3), Gb/s"
BEFORE = Run(100.0, "link", {LATENCY: 68.0, RATE: 50.0})


@pytest.mark.parametrize(
    ("now", "found"),
    [
        ({LATENCY: 68.0 * NOISE, RATE: 50.0 / NOISE}, ()),
        ({LATENCY: 136.0, RATE: 55.0}, (Worse(LATENCY, 2.0, 68.0, 136.0, 100.0),)),
        ({LATENCY: 5.0, RATE: 25.0}, (Worse(RATE, 2.0, 50.0, 25.0, 100.0),)),
        ({"halo2 tcp bandwidth (strixd), Gb/s": 1.0, "halo3 tcp latency (strixd), µs": 900.0}, ()),
    ],
)
def test_worse_is_what_differs_by_more_than_noise_from_the_last_of_its_name(
    now: dict[str, float], found: tuple[Worse, ...]
) -> None:
    best = Run(50.0, "link", {LATENCY: 1.0, RATE: 999.0})
    other = Run(150.0, "model tiny sha256:1", {LATENCY: 1.0})
    assert worse(Run(200.0, "link", now), (best, BEFORE, other)) == found


def test_a_value_that_the_last_run_lacks_is_compared_with_an_earlier_one() -> None:
    between = Run(150.0, "link", {RATE: 50.0})
    assert worse(Run(200.0, "link", {LATENCY: 136.0}), (BEFORE, between))[0].at == 100.0


def test_history_is_kept_bounded_and_survives_what_is_not_ours(tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    assert load_history(str(path)) == ()
    keep(Run(1.0, "link", {}), (), str(path))
    assert not path.exists(), "a run that measured nothing would hide the one before"
    runs = tuple(Run(float(number), "link", {LATENCY: 1.0}) for number in range(KEPT))
    keep(BEFORE, runs, str(path))
    assert load_history(str(path)) == (*runs[1:], BEFORE)
    path.write_text(json.dumps([3, {"at": 1}, {"at": 1, "key": "link", "values": {"x, ms": "2", "y, ms": 0}}]))
    assert load_history(str(path)) == (Run(1.0, "link", {"x, ms": 2.0}),)
    for text in ("", "{", "{}", "[" * 100_000):
        path.write_text(text)
        assert load_history(str(path)) == ()


ROWS = (Row("halo2", "tcp", 71.0, 90.5, "strixd", 41.2, "iperf3"), Row("halo2", "rdma send", 5.4, None, "ib_send_lat"))
OUTCOME = link.Outcome(300.0, Readings(ROWS, ("halo2: ib_write_bw: none",), ("halo3: timed out",)), worse(
    Run(300.0, "link", {LATENCY: 136.0}), (BEFORE,)
))  # fmt: skip


def test_one_table_with_the_guides_figures_beside() -> None:
    lines = table.link_lines(OUTCOME)
    cells = [line.split() for line in lines]
    assert ["halo2", "tcp", "71.00", "90.50", "41.20", "strixd,", "iperf3"] in cells
    assert ["halo2", "rdma", "send", "5.40", "-", "-", "ib_send_lat"] in cells
    for figures in (["74.00", "-", "0.94"], ["68.00", "-", "55.70"], ["5.23", "-", "50.64"]):
        assert any(each[-3:] == figures and each[0] == "guide" for each in cells)
    text = "\n".join(lines)
    assert "about 50 Gb/s: no fault" in text
    assert f"factor of {NOISE:g}" in text
    assert "not measured: halo2: ib_write_bw: none\nfailed: halo3: timed out\n" in text
    assert "worse: halo2 tcp latency (strixd): by a factor of 2.0 since" in text
    assert "68.00 then, 136.00 µs now" in text


def test_json_has_the_same() -> None:
    told = json.loads(json.dumps(table.link_json(OUTCOME)))
    assert [row["rung"] for row in told["rows"]] == ["tcp", "rdma send"]
    assert told["worse"][0]["factor"] == 2.0
    assert [row["bandwidth"] for row in told["guide"]] == [0.94, 55.70, 50.64]


def test_values_are_named_by_peer_rung_and_tool() -> None:
    assert link.values(ROWS) == {LATENCY: 71.0, RATE: 41.2, "halo2 rdma send latency (ib_send_lat), µs": 5.4}


def test_the_load_is_always_the_same_and_no_prompt_comes_twice() -> None:
    drawn = {streams: load.prompts(streams) for streams in load.ROUNDS}
    assert drawn == {streams: load.prompts(streams) for streams in load.ROUNDS}
    assert {streams: (len(each), len(each[0])) for streams, each in drawn.items()} == {
        1: (1, 4),
        4: (4, 3),
        16: (16, 2),
    }
    every = [prompt for each in drawn.values() for stream in each for prompt in stream]
    assert len(set(every)) == len(every)
    assert load.request("tiny", every[0], "one") != load.request("tiny", every[0], "two")


def test_a_level_of_load() -> None:
    taken = [load.Taken(first / 10, 2.0, 64) for first in range(1, 21)]
    found = load.level(4, taken, 16.0)
    assert found == load.Level(4, 20, 1000.0, 1900.0, 80.0)
    outcome = model.Outcome(1.0, "tiny", "sha256:0123456789abcdef", (found,), ())
    assert ["4", "20", "1000", "1900", "80.0"] in [line.split() for line in table.model_lines(outcome)]
    assert json.loads(json.dumps(table.model_json(outcome)))["levels"][0]["rate"] == 80.0


def test_models_images_and_rungs_are_not_compared_with_each_other() -> None:
    others = [("tiny", "sha256:2", "rdma"), ("other", "sha256:1", "rdma"), ("tiny", "sha256:1", "tcp")]
    assert model.key("tiny", "sha256:1", "rdma") not in [model.key(*each) for each in others]


@pytest.mark.parametrize(
    ("told", "rung"),
    [
        ({}, ""),
        ({"over": ""}, ""),
        ({"over": "RDMA (RoCE v2, irdma0 port 1, GID 3)"}, "rdma"),
        ({"over": "TCP over enp1s0"}, "tcp"),
    ],
)
def test_the_rung_of_a_model_is_that_of_status(told: dict[str, str], rung: str) -> None:
    assert model.over(told) == rung
