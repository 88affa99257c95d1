"""What the benchmark of recovery (tests/bench/recovery.py) reckons and writes, on laid times."""

from __future__ import annotations

import pytest

from strixd import messages
from tests.bench import plain
from tests.bench.recovery import WITHIN, Killed, judged, spoken
from tests.bench.strokes import PROCESS_EXIT, SERVER, UNIT_FAILED, UNIT_STARTING, Replaced, stages, told

HEAD, WORKER = "192.168.100.1", "192.168.100.2"


def entry(at: float, kind: str, **fields: str) -> dict[str, str]:
    return {"__REALTIME_TIMESTAMP": str(int(at * 1e6)), "MESSAGE_ID": kind, **fields}


JOURNAL = [
    entry(90.0, PROCESS_EXIT, UNIT=SERVER),
    entry(100.1, PROCESS_EXIT, UNIT="strixd-ray.service"),
    entry(100.5, PROCESS_EXIT, UNIT=SERVER),
    entry(101.5, UNIT_FAILED, UNIT=SERVER),
    entry(101.6, messages.IDS["STEP_TAKEN"], STRIXD_STEP="publish this node's record in Ray"),
    entry(101.75, messages.IDS["STEP_TAKEN"], STRIXD_STEP=f"start {SERVER} (killed by signal 9)"),
    entry(102.0, UNIT_STARTING, UNIT=SERVER),
    entry(150.0, UNIT_FAILED, UNIT=SERVER),
]
SEEN = Replaced(gone=101.0, new=102.5)


def test_stages_follow_one_another_from_the_stroke_to_the_process() -> None:
    assert stages(JOURNAL, 100.0, SEEN) == pytest.approx(
        {
            "until systemd saw the main process end": 0.5,
            "until systemd had ended the unit": 1.0,
            "until strixd said that it starts it": 0.25,
            "until systemd began to start it": 0.25,
            "until the process": 0.5,
        }
    )


def test_a_stage_that_the_journal_does_not_tell_goes_into_the_next_one() -> None:
    whole = stages([JOURNAL[3]], 100.0, SEEN)
    assert whole == pytest.approx({"until systemd had ended the unit": 1.5, "until the process": 1.0})


def test_only_lines_after_the_stroke_count() -> None:
    assert [line["UNIT"] for line in told(JOURNAL, 100.0, PROCESS_EXIT)] == ["strixd-ray.service", SERVER]
    assert told(JOURNAL, 100.6, PROCESS_EXIT) == []


def test_the_drain_of_the_old_run_is_not_counted_and_what_never_came_is_for_ever() -> None:
    killed = Killed(100.0, SEEN, 130.0, {})
    assert (killed.beyond, killed.again) == (1.5, 30.0)
    assert Killed(100.0, SEEN, 0.0, {}).again == float("inf")


def test_a_line_says_what_is_held_against_the_limit(capsys: pytest.CaptureFixture[str]) -> None:
    assert judged("noticed", [3.0, 5.0, 4.0], 5.0, 10.0)
    assert not judged("to a completion", [30.0], 1.06, 1.05, "by hand")
    first, second = capsys.readouterr().out.splitlines()
    assert first.endswith("4.00 s [3.00-5.00]: 5.00 s (at most 10): held")
    assert second.endswith("1.060 of that by hand (at most 1.05): MISSED")


def test_never_is_said_in_words() -> None:
    assert spoken(31.24) == "31.2"
    assert spoken(float("inf")) == f"never within {WITHIN:.0f} s"


def test_the_peer_is_the_guides_commands_restarted_always() -> None:
    head, worker = plain.units(HEAD, HEAD), plain.units(WORKER, HEAD)
    assert list(head) == [plain.RAY, plain.VLLM]
    assert list(worker) == [plain.RAY]
    assert "ray start --head --port=6379" in head[plain.RAY]
    assert f"ray start --address={HEAD}:6379 --node-ip-address={WORKER}" in worker[plain.RAY]
    assert f"--env=VLLM_HOST_IP={WORKER}" in worker[plain.RAY]
    assert "--tensor-parallel-size 2" in head[plain.VLLM]
    assert all("Restart=always\n" in text for text in (*head.values(), *worker.values()))
