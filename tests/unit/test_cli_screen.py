"""The screen of status, the lines of watch and plan, and the live bar: all pure."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from recorded_door import MOVE, MTU, NOON, change, resource, status

from strixd.api.follow import public
from strixd.cli import terminal
from strixd.cli.change import history_lines, undo_lines
from strixd.cli.follow import changes
from strixd.cli.incidents import lines as incident_lines
from strixd.cli.look import plan_lines, rollback_lines
from strixd.cli.screen import ago, clock, screen
from strixd.cli.serve import Teller, bar, line
from strixd.cli.terminal import in_colour
from strixd.cli.waiting import stamped
from strixd.engine.status import Incident, Moment, PlanView, ResourceView, Status, StepView


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def shown(status: Status) -> str:
    return "\n".join(screen(public(status), NOON))


def held(name: str) -> ResourceView:
    facts = ("exited with status 1 after 12 s", "the port is free")
    view = resource(name, "held", "max_model_len is larger than the model allows", *facts, hint="take it lower")
    return replace(view, next_try=NOON + 90, steps=(StepView("start strixd-vllm.service", "", "now"),))


GOLDEN = """\
halo1, head of cluster halo, strixd 0.1.0
degraded since 11:56:40 (3 m ago); last looked at 11:59:59 (1 s ago)
problem   cluster.toml:3: x: wrong
          cluster.toml:4: y: wrong

model     tiny, tensor parallel 2 over halo1, halo2
          answers at http://127.0.0.1:8000 since 11:56:50 (3 m ago)
          last completion 11:59:50 (10 s ago), in 0.4 s

members   1 of 2
          halo1  head    192.168.100.1  joined, 1 GPU
          halo2  worker  192.168.100.2  not joined: another cluster key

vllm      held     for 3 m, seen 1 s ago
          max_model_len is larger than the model allows
          → take it lower
          next try 12:01:30 (in 1 m)
          to do: start strixd-vllm.service
          exited with status 1 after 12 s; the port is free

incident  vllm: killed by signal 9
          11:45:00 (15 m ago), over after 40 s
          noticed +0.2 s

next      strixd-cli logs vllm"""


def test_the_screen() -> None:
    problem = "cluster.toml:3: x: wrong\ncluster.toml:4: y: wrong"
    assert shown(replace(status(), phase="degraded", problem=problem, resources=(held("vllm"),))) == GOLDEN


def test_an_incident_that_waits_for_answers_to_last_says_so() -> None:
    served = (Moment("noticed", NOON - 40), Moment("serving", NOON - 10))
    text = shown(replace(status(), incident=Incident("a1", "network", "no carrier", NOON - 40, 0.0, served)))
    assert "for 40 s now; answers again, over when that lasts\n" in text


BLOCKED = replace(resource("ray", "blocked", "port 6379 is taken"), hint="systemctl status stranger.service")


def test_an_idle_head_says_what_to_do() -> None:
    text = shown(replace(status(), phase="drained", model=None, incident=None))
    assert "model     none is ordered\n" in text
    assert text.endswith("next      strixd-cli serve MODEL")


@pytest.mark.parametrize(
    ("change", "last"),
    [
        ({}, "curl http://127.0.0.1:8000/v1/models"),
        ({"phase": "paused"}, "strixd-cli resume"),
        ({"phase": "converging"}, "strixd-cli watch"),
        ({"released": ("network",)}, "strixd-cli apply (takes up again what undo has let go)"),
        ({"resources": (resource("network", "stuck", "no card"),)}, "strixd-cli logs daemon"),
        ({"resources": (BLOCKED, resource("vllm", "waiting"))}, "systemctl status stranger.service"),
        ({"resources": (resource("vllm", "held", "died"), BLOCKED)}, "systemctl status stranger.service"),
    ],
)
def test_the_next_step(change: dict[str, str], last: str) -> None:
    assert shown(replace(status(), **change)).endswith(f"next      {last}")  # type: ignore[arg-type]


def test_a_worker_names_its_head() -> None:
    assert shown(replace(status(), role="worker", node="halo2")).startswith(
        "halo2, worker of cluster halo (head: halo1, 192.168.100.1), strixd 0.1.0\n"
    )


def test_a_file_that_cannot_be_used_is_what_comes_next() -> None:
    wrong = replace(status(), phase="degraded", problem="cluster.toml:3: x: wrong")
    assert shown(wrong).endswith("next      sudoedit /etc/strixd/cluster.toml && strixd-cli apply")


def test_the_live_bar_keeps_to_its_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(terminal, "is_terminal", lambda: True)
    monkeypatch.setattr(terminal, "columns", lambda: 40)
    Teller(0.0).hear({"stage": "image", "done": False, "text": "pulling " * 20}, 1.0)
    assert len(capsys.readouterr().out.rpartition("\x1b[K")[2]) == 39


def test_eighty_columns_hold_and_nothing_gets_through_that_does_not_print() -> None:
    nasty = resource("ray", "stuck", "\x1b]0;owned\a" + "many words " * 30, "x" * 100, "a\nb")
    lines = screen(public(status(nasty)), NOON, paint=in_colour)
    assert all(len(each) <= 80 for each in lines if "\x1b" not in each and "xxx" not in each)
    text = "\n".join(lines)
    assert "\x1b]" not in text
    assert "\a" not in text
    assert "\x1b[31mstuck\x1b[0m    for 3 m" in text


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-5, "0 s"), (59.9, "59 s"), (60, "1 m"), (7800, "2 h 10 m"), (90_000, "1 d 1 h"), (1e6, "11 d")],
)
def test_ago(seconds: float, words: str) -> None:
    assert ago(seconds) == words


def test_clock_has_the_date_when_it_is_not_today() -> None:
    assert clock(NOON - 60, NOON) == "11:59:00"
    assert clock(NOON - 86_400, NOON) == "2025-11-28 12:00:00"


def test_changes_are_told_and_nothing_else() -> None:
    before = public(status(resource("ray", "waiting", "1 of 2 members")))
    after = public(replace(status(), phase="degraded"))
    assert list(changes(before, after)) == ["phase: degraded", "ray: ok"]
    assert list(changes(after, after)) == []
    first = list(changes(None, before))
    assert first[0] == "phase: ready"
    assert first[-1] == "halo2: not joined: another cluster key"


def test_a_change_under_way_is_the_first_thing_to_know() -> None:
    running = change(outcome="running", ended=0.0, taken=1)
    text = shown(replace(status(), change=running, released=("cmdline",)))
    assert (
        "\n\nchanging  step 2 of 2: set the MTU of enp1s0 to 9000\n"
        "          since 11:58:57 (1 m ago), by uid 1000: apply\n"
        "released  cmdline: left alone since undo; strixd-cli apply takes it up again\n\nmodel"
    ) in text
    assert "all 2 steps are taken; looking whether it holds" in shown(
        replace(status(), change=replace(running, taken=2))
    )


def test_changes_of_settings_are_told() -> None:
    calm = public(status())
    running = public(replace(status(), change=change(outcome="running", taken=0)))
    undone = public(replace(status(), released=("firewall", "network")))
    assert list(changes(calm, running)) == [f"changing: step 1 of 2: {MOVE.text}"]
    assert list(changes(running, undone)) == [
        "released: firewall, network: left alone since undo; strixd-cli apply takes it up again"
    ]
    assert list(changes(undone, calm)) == ["released: nothing any more"]


def test_history_for_a_tired_person() -> None:
    back = StepView(MTU.undo, MTU.text, "now")
    reboot = StepView("set iommu=pt in 2 boot entries", "as before", "reboot")
    past = (
        change(outcome="left over", why="no space left on device", taken=1),
        change(by="drift", began=NOON - 90_000, resources=("network",), steps=(MTU,), taken=1),
        change(id="c9", by="uid 0: undo", resources=("cmdline",), steps=(back,), undoes="c0"),
        change(
            id="c0",
            by="start",
            outcome="undone",
            why="by uid 0: undo in change c9",
            resources=("cmdline",),
            steps=(reboot,),
            taken=0,
        ),
    )
    assert history_lines(public(past), NOON) == [
        "when                 change  by whom          outcome    settings",
        "",
        "11:58:57             c1      uid 1000: apply  left over  firewall, network",
        "  why: no space left on device",
        "  - move enp1s0 from zone public to trusted",
        "  - set the MTU of enp1s0 to 9000",
        "",
        "2025-11-28 11:00:00  c1      drift            done       network",
        "  - set the MTU of enp1s0 to 9000",
        "",
        "11:58:57             c9      uid 0: undo      done       cmdline",
        "  takes back c0",
        "  - set the MTU of enp1s0 to 1500",
        "",
        "11:58:57             c0      start            undone     cmdline",
        "  undone by uid 0: undo in change c9",
        "  - set iommu=pt in 2 boot entries (needs a reboot)",
    ]
    assert history_lines([], NOON) == ["nothing has been changed yet"]


@pytest.mark.parametrize(
    ("ended", "shown"),
    [
        (NOON + 60, ["120030Z-strixd-vllm.service", "120100Z-strixd-ray.service.2"]),
        (0.0, ["120030Z", "120100Z", "1202"]),
    ],
)
def test_an_incident_names_the_evidence_that_was_saved_meanwhile(ended: float, shown: list[str]) -> None:
    stamp = time.strftime("%Y%m%dT", time.gmtime(NOON))
    names = [
        "115959Z-node",
        "120030Z-strixd-vllm.service",
        "120100Z-strixd-ray.service.2",
        "120200Z-strixd-vllm.service",
    ]
    incident = {"id": "a1", "resource": "vllm", "cause": "hung", "began": NOON, "ended": ended, "moments": []}
    told = incident_lines([incident], NOON + 300, [stamp + name for name in names])
    found = [line.rpartition("/")[2] for line in told if line.startswith("  evidence: /var/lib/strixd/evidence/")]
    assert len(found) == len(shown)
    assert all(line.startswith(stamp + start) for line, start in zip(found, shown, strict=True))


def test_undo_names_the_steps_back_in_their_order() -> None:
    assert undo_lines(public(change()), NOON) == [
        "took back c1, 11:58:57, uid 1000: apply:",
        "  set the MTU of enp1s0 to 1500",
        "  move enp1s0 from zone trusted to public",
    ]


MOVES = (StepView("do a", "undo a", "now"), StepView("do b", "", "now"), StepView("do c", "undo c", "reboot"))


def test_plan_and_its_way_back() -> None:
    plans = public(
        (
            PlanView("network", MOVES[:1], "ok", ""),
            PlanView("cmdline", MOVES[1:], "reboot", "arguments are missing"),
            PlanView("ray", (), "ok", ""),
        )
    )
    assert plan_lines(plans) == [
        "network",
        "  do a",
        "    back: undo a",
        "cmdline is reboot: arguments are missing",
        "  do b",
        "  do c (needs a reboot)",
        "    back: undo c",
        "nothing to do: ray",
        "3 steps, and a reboot after that; strixd-cli apply takes them",
    ]
    assert rollback_lines(plans) == ["cmdline", "  undo c", "network", "  undo a"]
    assert rollback_lines([]) == ["nothing to take back"]


def test_a_line_and_a_bar() -> None:
    assert line({"stage": "load", "done": True, "text": "tiny"}) == "model loaded: tiny"
    assert stamped(f"{bar(2)}ray: 1 of 2", 61.25) == "   61.2 s  [##...] ray: 1 of 2"


def test_a_long_wait_is_not_silent_where_no_terminal_is(capsys: pytest.CaptureFixture[str]) -> None:
    teller = Teller(0.0)
    teller.hear({"stage": "order", "done": True, "text": "tiny"}, 0.0)
    teller.hear({"stage": "image", "done": False, "text": "image: pulling, 12 %"}, 1.0)
    for second in range(2, 75):
        teller.hear(None, float(second))
    assert capsys.readouterr().out.splitlines() == [
        "    0.0 s  order recorded: tiny",
        "   30.0 s  waiting for image: pulling, 12 %",
        "   60.0 s  waiting for image: pulling, 12 %",
    ]


def test_a_ready_node_says_what_is_still_to_do() -> None:
    reboot = resource("cmdline", "reboot", "configured, not yet running: iommu=pt", hint="systemctl reboot")
    text = shown(status(reboot))
    assert "ready, but look at cmdline: since" in text
    assert "next      systemctl reboot" in text
    stuck = shown(status(reboot, resource("vllm", "stuck", "no such model", hint="serve another")))
    assert "next      serve another" in stuck, "a reboot mends nothing of it"
    blocked = shown(status(resource("cmdline", "blocked", "no grubby on this host")))
    assert "next      curl http://127.0.0.1:8000/v1/models" in blocked
