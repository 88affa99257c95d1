"""strixd-cli as a process against the real server: what is asked, printed, and returned."""

from __future__ import annotations

import json
import pty
import shlex
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cli_process import cli, command, environment
from recorded_door import MOVE, MTU, NOON, RecordedDoor, Served, change, resource, served, status

from strixd import __version__
from strixd.engine.status import Incident, Moment
from strixd.errors import ConfigError, NotPermitted, Rejected


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "socket", RecordedDoor()) as running:
        yield running


def test_status(server: Served) -> None:
    done = cli("status", socket=server.path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("halo1, head of cluster halo, strixd 0.1.0\nready since ")
    assert "\x1b" not in done.stdout


def test_status_as_json(server: Served) -> None:
    done = cli("status", "--json", socket=server.path)
    assert json.loads(done.stdout)["members"][1]["note"] == "another cluster key"


@pytest.mark.parametrize(
    ("words", "asked", "said"),
    [
        ("stop", ("stop",), "stopped: no model is ordered; what runs is being ended\n"),
        ("pause", ("pause",), "paused: nothing on this host is changed until strixd-cli resume; what runs goes on\n"),
        ("resume", ("resume",), "resumed: strixd has this host in hand again\n"),
        (
            "image update",
            ("update_image",),
            "ordered: the newest image is fetched and taken; strixd-cli watch shows it\n",
        ),
        ("apply", ("apply",), "applied: nothing to change; halo1 is ready\n"),
        (
            "plan",
            ("preview",),
            "network\n  move enp1s0 from zone public to trusted\n    back: move enp1s0 from zone trusted to public\n"
            "image is blocked: no route to docker.io\nnothing to do: ray\n1 step; strixd-cli apply takes them\n",
        ),
        ("plan --rollback", ("preview",), "network\n  move enp1s0 from zone trusted to public\n"),
    ],
)
def test_orders(server: Served, words: str, asked: tuple[str, ...], said: str) -> None:
    done = cli(*words.split(), socket=server.path)
    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")
    assert server.door.asked == [asked]


def test_apply_names_what_is_not_ok(server: Served) -> None:
    server.say(status(resource("ray", "blocked", "1 of 2 members", hint="look at halo2")))
    done = cli("apply", socket=server.path)
    assert done.returncode == 0
    assert done.stdout.splitlines()[1:] == ["  ray is blocked: 1 of 2 members", "    → look at halo2"]


def test_apply_tells_each_step(server: Served) -> None:
    running = change(began=8.0, ended=0.0, outcome="running", taken=0)
    server.door.after_apply = [replace(status(), change=replace(running, taken=taken)) for taken in (0, 1)]
    server.door.after_apply.append(status())
    server.door.changes = [change(began=8.0)]
    done = cli("apply", socket=server.path)
    assert (done.returncode, done.stderr) == (0, "")
    *steps, last = done.stdout.splitlines()
    assert [step[11:] for step in steps] == [f"1 of 2: {MOVE.text}", f"2 of 2: {MTU.text}"]
    assert last == "applied: 2 steps taken; halo1 is ready"


def test_an_apply_that_fails_says_what_was_taken_back_and_what_to_do(server: Served) -> None:
    running = change(began=8.0, ended=0.0, outcome="running", taken=1)
    server.door.after_apply = [replace(status(), change=each) for each in (running, replace(running, taken=0))]
    server.door.after_apply.append(status(resource("network", "held", "no carrier", hint="look at the cable")))
    server.door.changes = [change(began=8.0, outcome="failed", why="no carrier", taken=0)]
    done = cli("apply", socket=server.path)
    assert done.returncode == 1
    *steps, held, hint = done.stdout.splitlines()
    assert [step[11:] for step in steps] == [f"1 of 2: {MOVE.text}", f"taking back 1 of 2: {MOVE.undo}"]
    assert (held, hint) == ("  network is held: no carrier", "    → look at the cable")
    assert done.stderr == (
        "strixd-cli: Cannot apply all of it: firewall, network: no carrier; all of it is taken back\n"
        "  strixd-cli status\n"
    )


def test_history(server: Served) -> None:
    assert cli("history", socket=server.path).stdout == "nothing has been changed yet\n"
    server.door.changes = [change(), change(id="c0", by="drift")]
    assert "uid 1000: apply  done" in cli("history", "1", socket=server.path).stdout
    assert [each["by"] for each in json.loads(cli("history", "--json", socket=server.path).stdout)] == [
        "uid 1000: apply",
        "drift",
    ]
    done = cli("history", "0", socket=server.path)
    assert (done.returncode, done.stderr) == (
        2,
        "strixd-cli: history: N is 1 to 1000, not 0\n  for example: strixd-cli history 20\n",
    )


def test_undo(server: Served) -> None:
    server.door.changes = [change(id="c2", outcome="failed"), change(resources=("network",), steps=(MTU,))]
    done = cli("undo", socket=server.path)
    assert (done.returncode, done.stderr) == (0, "")
    before, step, after = done.stdout.splitlines()
    assert before == "took back c1, 2025-11-29 11:58:57, uid 1000: apply:"
    assert step == "  set the MTU of enp1s0 to 1500"
    assert after.startswith("taken back. Left alone from now on, until strixd-cli apply: network; with the link goes")
    assert after.endswith("systemctl stop strixd-ray")
    again = cli("undo", socket=server.path)
    assert (again.returncode, again.stdout) == (2, "")
    assert again.stderr == "strixd-cli: Cannot undo: nothing that was done is left to take back\n  strixd-cli history\n"


def test_undo_of_all_goes_on_until_nothing_is_left_or_one_cannot_be_taken_back(server: Served) -> None:
    server.door.changes = [change(id="c2"), change(id="c1", outcome="failed"), change(id="c0")]
    done = cli("undo", "--all", socket=server.path)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split(",")[0] for line in done.stdout.splitlines() if line.startswith("took")] == [
        "took back c2",
        "took back c0",
    ]
    assert done.stdout.endswith("\nnothing is left to take back\n")
    assert cli("undo", "--all", socket=server.path).stdout == "nothing is left to take back\n"
    server.door.refusal = Rejected("Cannot undo change c0: firewalld said no")
    assert cli("undo", "--all", socket=server.path).returncode == 1


def test_undo_is_asked_once_although_the_daemon_restarts(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        answering = threading.Thread(target=_drop, args=(listener, 1))
        answering.start()
        done = cli("undo", socket=path)
        answering.join()
    assert done.returncode == 69
    assert done.stderr.startswith("strixd-cli: Cannot tell what became of Undo: strixd hung up before it answered\n")


def test_versions(server: Served) -> None:
    both = f"strixd-cli {__version__}\nstrixd     {__version__}\n"
    assert cli("version", socket=server.path).stdout == both
    assert cli("--version", socket=server.path).stdout == both
    alone = cli("version", socket="/nowhere/socket")
    assert alone.returncode == 0
    assert alone.stdout.endswith("not known: Cannot reach strixd at /nowhere/socket: there is no such socket\n")


def test_errors_of_the_daemon_keep_words_hint_and_status(server: Served) -> None:
    server.door.refusal = Rejected("Cannot start: firewalld said no", hint="look at firewalld")
    done = cli("apply", socket=server.path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "strixd-cli: Cannot start: firewalld said no\n  look at firewalld\n"
    server.door.refusal = NotPermitted("Cannot Stop: no")
    assert cli("stop", socket=server.path).returncode == 77
    server.door.refusal = ConfigError(("c.toml:1: x: wrong", "c.toml:2: y: wrong"))
    done = cli("apply", socket=server.path)
    assert (done.returncode, done.stderr) == (78, "c.toml:1: x: wrong\nc.toml:2: y: wrong\n")


def test_nobody_there(tmp_path: Path) -> None:
    dead = tmp_path / "dead"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(dead))
    hint = "  --socket or STRIXD_SOCKET names the socket; is this the right one?\n"
    for path, words in ((tmp_path / "none", "there is no such socket"), (dead, "nobody listens there")):
        done = cli("status", socket=path)
        assert (done.returncode, done.stdout) == (69, "")
        assert done.stderr == f"strixd-cli: Cannot reach strixd at {path}: {words}\n{hint}"


def test_nobody_at_the_usual_place() -> None:
    done = cli("status", socket="")
    assert done.returncode == 69
    assert done.stderr == (
        "strixd-cli: Cannot reach strixd at /run/strixd/io.strixd: there is no such socket\n"
        "  systemctl status strixd       shows whether it runs, and why not\n"
        "  systemctl start strixd.socket opens the socket\n"
    )


# Serve, wait, watch.


def test_serve_tells_each_stage_once(server: Served) -> None:
    server.door.after_serve = [status(resource("image", "waiting", "pulling, 12 %")), status()]
    done = cli("serve", "tiny", "--", "--seed", "1", socket=server.path)
    assert done.returncode == 0
    assert [line[11:] for line in done.stdout.splitlines()] == [
        "order recorded: tiny",
        "image: fact of image",
        "ray: fact of ray",
        "model loaded: tiny",
        "first completion: http://127.0.0.1:8000 answers, in 0.4 s",
    ]
    assert server.door.asked == [("serve", "tiny", "--seed", "1")]


def test_serve_ends_with_the_failing_layer(server: Served) -> None:
    server.door.after_serve = [status(resource("vllm", "stuck", "unknown flag --foo", hint="take it out"))]
    done = cli("serve", "tiny", socket=server.path)
    assert done.returncode == 3
    assert done.stderr == "strixd-cli: Cannot serve tiny: vllm: unknown flag --foo\n  take it out\n"


def test_drain_tells_when_the_server_has_ended(server: Served) -> None:
    draining = replace(status(resource("vllm", "waiting", "what runs has 50 s more")), drained=True)
    server.door.after_serve = [draining, replace(status(), drained=True, phase="drained")]
    done = cli("drain", socket=server.path)
    assert done.returncode == 0
    assert [line[11:] for line in done.stdout.splitlines()] == ["order recorded: drain", "drained: fact of vllm"]
    assert server.door.asked == [("drain",)]


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("undrain", ("undrain",)),
        ("restart", ("restart", "vllm")),
        ("restart vllm", ("restart", "vllm")),
        ("restart ray", ("restart", "ray")),
    ],
)
def test_undrain_and_restart_wait_for_a_completion(server: Served, words: str, asked: tuple[str, ...]) -> None:
    server.door.after_serve = [status(resource("image", "waiting", "pulling, 12 %")), status()]
    done = cli(*words.split(), socket=server.path)
    assert done.returncode == 0
    assert done.stdout.splitlines()[0][11:] == f"order recorded: {words if words != 'restart' else 'restart vllm'}"
    assert done.stdout.splitlines()[-1][11:] == "first completion: http://127.0.0.1:8000 answers, in 0.4 s"
    assert server.door.asked == [asked]


def test_a_restart_waits_only_for_ray_where_no_model_is_served(server: Served) -> None:
    server.say(replace(status(), model=None))
    server.door.after_serve = [replace(status(resource("vllm", "waiting")), model=None)]
    done = cli("restart", "ray", socket=server.path)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1][11:] == "ray: fact of ray"


def test_incidents(server: Served) -> None:
    moments = (Moment("noticed", NOON), Moment("stopped", NOON + 1.5), Moment("answering", NOON + 31.25))
    over = Incident("a1", "vllm", "killed by signal 9", NOON, NOON + 31.25, moments)
    server.door.past = [Incident("b2", "ray", "halo2 has gone", NOON + 60, 0.0, moments[:1]), over]
    lines = cli("incidents", socket=server.path).stdout.splitlines()
    assert lines[0].split() == ["began", "incident", "no", "answer", "for", "cause"]
    assert "s, open" in lines[2]
    assert lines[2].endswith("ray: halo2 has gone")
    assert "  a1        31.2 s " in lines[5]
    assert lines[6] == "  noticed +0.0 s, stopped +1.5 s, answering +31.2 s"
    assert [each["id"] for each in json.loads(cli("incidents", "1", "--json", socket=server.path).stdout)] == ["b2"]
    assert cli("incidents", "0", socket=server.path).returncode == 2


def test_no_incident(server: Served) -> None:
    assert cli("incidents", socket=server.path).stdout == "no incident is known\n"


def test_ctrl_c_detaches_and_says_so(server: Served) -> None:
    with subprocess.Popen(
        command("serve", "tiny"), env=environment(server.path), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert "order recorded" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert process.returncode == 130
    assert rest == (
        "detached: strixd goes on. strixd-cli status tells how far it is, strixd-cli stop takes the order back\n"
    )


def test_a_terminal_has_a_bar_and_colours(server: Served) -> None:
    server.door.after_serve = [status(resource("image", "waiting", "pulling, 12 %")), status()]
    shown = _on_a_terminal(server, "serve", "tiny")
    assert "[#....] image: pulling, 12 %" in shown
    assert "\x1b[32mready\x1b[0m since" in _on_a_terminal(server, "status")
    assert "\x1b" not in _on_a_terminal(server, "status", NO_COLOR="1")


def _on_a_terminal(server: Served, *words: str, **more: str) -> str:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command(*words), env=environment(server.path, TERM="xterm", **more), stdin=theirs, stdout=theirs
    )
    process.wait(20)
    with open(theirs, "wb"), open(ours, "rb", buffering=0) as screen:  # noqa: PTH123 - descriptors, not paths
        return screen.read(1 << 16).decode()


def test_wait(server: Served) -> None:
    assert cli("wait", "ready", "--timeout", "5", socket=server.path).stdout == "halo1 is ready\n"
    server.say(replace(status(resource("ray", "waiting", "1 of 2 members")), phase="converging"))
    done = cli("wait", "ready", "--timeout", "1", socket=server.path)
    assert done.returncode == 75
    assert "it waits for ray is waiting: 1 of 2 members" in done.stderr


def test_watch_writes_a_line_per_change(server: Served) -> None:
    with subprocess.Popen(command("watch"), env=environment(server.path), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().endswith(" phase: ready\n")
        server.say(replace(status(), phase="degraded"))
        while not (line := process.stdout.readline()).endswith("phase: degraded\n"):
            assert line
        process.send_signal(signal.SIGINT)
    assert process.returncode == 130


def test_a_closed_pipe_is_no_error(server: Served) -> None:
    line = shlex.join(command("status"))
    done = subprocess.run(
        ["bash", "-c", f"{line} | true; echo ${{PIPESTATUS[0]}}"],
        env=environment(server.path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout in ("141\n", "0\n")
    assert done.stderr == ""


# A daemon that restarts: the socket stays, its connections are dropped.


def _drop(listener: socket.socket, times: int) -> None:
    for _ in range(times):
        client, _ = listener.accept()
        client.recv(100)
        client.close()


def test_calls_outlive_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        dropping = threading.Thread(target=_drop, args=(listener, 2))
        dropping.start()
        process = subprocess.Popen(
            command("status"), env=environment(path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        dropping.join()
    time.sleep(0.3)  # nobody listens at all
    with served(path, RecordedDoor()):
        out, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (0, "")
    assert out.startswith("halo1, head of cluster halo")


def test_serve_goes_on_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with served(path, RecordedDoor()):
        process = subprocess.Popen(command("serve", "tiny"), env=environment(path), stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert "order recorded" in process.stdout.readline()
    door = RecordedDoor()
    door.after_serve = [status()]
    with served(path, door):
        out, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "order recorded" not in out
    assert "first completion" in out


def test_what_does_not_speak_varlink_is_named(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        answering = threading.Thread(target=lambda: listener.accept()[0].sendall(b"HTTP/1.1 400\0"))
        answering.start()
        done = cli("status", socket=path)
        answering.join()
    assert done.returncode == 2
    assert done.stderr.startswith("strixd-cli: Cannot read the message: ")
