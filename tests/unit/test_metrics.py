"""What Prometheus is told, read by the parser of prometheus_client, which is strict."""

from __future__ import annotations

from dataclasses import replace

import pytest
from prometheus_client import Metric
from recorded_door import NOON, resource, status

from strixd.api.exposition import Family, sample, text
from strixd.api.metrics import render
from strixd.engine.status import MemberView, Status
from strixd.engine.tally import Tally
from strixd.ports import Counters
from strixd.resources.image import Report
from tests.exposition import parsed

HOSTILE = 'a"b\\c\nd} 1'


def families(
    seen: Status | None = None, tally: Tally | None = None, counters: Counters | None = None
) -> dict[str, Metric]:
    return parsed(render(seen or status(), tally or Tally(), counters))


def values(family: Metric, label: str) -> dict[str, float]:
    return {sample.labels[label]: sample.value for sample in family.samples}


def test_of_all_states_one_is_1() -> None:
    found = families(replace(status(resource("ray", "blocked")), phase="degraded"))
    phases = values(found["strixd_node_phase"], "phase")
    assert [phase for phase, value in phases.items() if value] == ["degraded"]
    assert "ready" in phases
    now = {(s.labels["resource"], s.labels["condition"]) for s in found["strixd_resource_condition"].samples if s.value}
    assert {("ray", "blocked"), ("vllm", "ok")} <= now
    assert len(now) == len(status().resources)


def test_members_are_named_and_one_that_is_away_brings_no_gpu() -> None:
    away = MemberView("halo2", "worker", "192.168.100.2", joined=False, gpus=1)
    found = families(replace(status(), members=(status().members[0], away)))
    assert values(found["strixd_member_joined"], "member") == {"halo1": 1, "halo2": 0}
    assert values(found["strixd_member_gpus"], "member") == {"halo1": 1, "halo2": 0}


def test_facts_are_labels() -> None:
    tally = Tally()
    tally.image = Report(reference="docker.io/a/b:c", digest="sha256:abc")
    found = families(tally=tally)
    assert found["strixd_build"].samples[0].labels == {"version": "0.1.0"}
    assert found["strixd_image"].samples[0].labels == {"reference": "docker.io/a/b:c", "digest": "sha256:abc"}
    assert found["strixd_model"].samples[0].labels == {"model": "tiny", "over": ""}
    assert found["strixd_model"].samples[0].name == "strixd_model_info"


def test_what_is_not_known_is_not_told() -> None:
    model = status().model
    assert model
    found = families(replace(status(), model=replace(model, answered_at=0.0, seconds=0.0)))
    assert "strixd_model_probe_seconds" not in found
    assert "strixd_model_answered_timestamp_seconds" not in found
    assert "strixd_image" not in found
    assert not [name for name in found if name.startswith("strixd_link")]
    assert not [name for name in families(replace(status(), model=None)) if name.startswith("strixd_model")]


def test_latency_and_time_of_the_last_completion() -> None:
    found = families()
    assert found["strixd_model_probe_seconds"].samples[0].value == 0.4
    assert found["strixd_model_probe_seconds"].unit == "seconds"
    assert found["strixd_model_answered_timestamp_seconds"].samples[0].value == NOON - 10


def test_counters_begin_at_zero_and_with_every_layer() -> None:
    found = families()
    assert values(found["strixd_incidents"], "resource") == dict.fromkeys(
        ("fabric", "firewall", "host", "image", "network", "ray", "vllm"), 0.0
    )
    assert values(found["strixd_workload_starts"], "workload") == {"ray": 0, "vllm": 0}


def test_an_incident_that_is_not_over_is_told_by_its_resource() -> None:
    last = status().incident
    assert last
    assert set(values(families()["strixd_incident_open"], "resource").values()) == {0}
    still = values(families(replace(status(), incident=replace(last, ended=0.0)))["strixd_incident_open"], "resource")
    assert [resource for resource, value in still.items() if value] == ["vllm"]


def test_a_histogram_adds_its_buckets_up() -> None:
    tally = Tally()
    for seconds in (40.0, 50.0, 9000.0):
        tally.recoveries.add(seconds)
    samples = families(tally=tally)["strixd_recovery_seconds"].samples
    buckets = {s.labels["le"]: s.value for s in samples if s.name.endswith("_bucket")}
    assert (buckets["30.0"], buckets["60.0"], buckets["4800.0"], buckets["+Inf"]) == (0, 2, 2, 3)
    assert {s.name: s.value for s in samples if "le" not in s.labels} == {
        "strixd_recovery_seconds_count": 3,
        "strixd_recovery_seconds_sum": 9090.0,
    }


def test_the_link_has_the_kernels_counters() -> None:
    tally = Tally()
    tally.link = "enp1s0"
    found = families(tally=tally, counters=Counters(1, 2, 3, 4, 5, 6, 7))
    told = {name: found[f"strixd_link_{name}"].samples[0] for name in (
        "receive_bytes", "transmit_bytes", "receive_errors", "transmit_errors", "receive_drops", "transmit_drops",
        "carrier_changes")}  # fmt: skip
    assert [sample.value for sample in told.values()] == [1, 2, 3, 4, 5, 6, 7]
    assert told["receive_bytes"].name == "strixd_link_receive_bytes_total"
    assert {sample.labels["device"] for sample in told.values()} == {"enp1s0"}


def test_hostile_words_stay_inside_their_label() -> None:
    found = parsed(text((Family("strixd_x", "gauge", HOSTILE, (sample(2.5, why=HOSTILE),)),)))
    assert found["strixd_x"].samples[0].labels == {"why": HOSTILE}
    assert found["strixd_x"].samples[0].value == 2.5
    assert found["strixd_x"].documentation == HOSTILE


def test_the_parser_would_complain() -> None:
    with pytest.raises(ValueError, match="EOF"):
        parsed("# TYPE strixd_x gauge\nstrixd_x 1\n")
