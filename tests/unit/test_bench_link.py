"""Both ends of a measurement as processes, over loopback; and how they end when one of them, or a person, has had
enough. Ray is only in the lab."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from recorded_perftest import IPERF3

from strixd.bench import driver
from strixd.errors import Rejected, Unavailable
from strixd.probe.link import card, programs
from strixd.probe.link.here import Door

ROOT = Path(__file__).parents[2]
HERE = (sys.executable, str(ROOT / "strixd/probe/link/__main__.py"))
STAND_IN = f"""#!{sys.executable}
import socket, sys
words = dict(zip(sys.argv[1::2], sys.argv[2::2]))
if "-s" in sys.argv:
    with socket.create_server((words["-B"], int(words["-p"]))) as listener:
        listener.accept()[0].recv(1)
else:
    socket.create_connection((words["-c"], int(words["-p"])), 5).close()
    print({IPERF3!r})
"""


def job(*measure: str, **more: Any) -> dict[str, Any]:
    peer = {"name": "halo2", "address": "127.0.0.1"}
    amounts = {"rounds": 50, "stream": 0.1, "force": True, "seconds": 30}
    return {"node": "halo1", "address": "127.0.0.1", "peer": peer, "ray": False, "measure": measure, **amounts, **more}


def other_end(command: str) -> subprocess.Popen[bytes]:
    words = [sys.executable, *shlex.split(command)[1:]]
    return subprocess.Popen(words, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE)


@contextmanager
def asked(asked_for: dict[str, Any]) -> Iterator[tuple[str, Iterator[dict[str, Any]]]]:
    """The command for the other end, and what is said after it."""
    said = driver.messages(asked_for, HERE)
    first = next(said)
    assert "by_hand" in first
    yield first["by_hand"], said
    said.close()  # type: ignore[attr-defined]  # it is a generator


def test_latency_and_bandwidth_over_tcp_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    with asked(job("ping", "stream", "ib_write_lat")) as (command, said), other_end(command) as other:
        ping, stream, rdma = said
        assert other.wait(10) == 0
    assert (ping["peer"], ping["what"], len(ping["trips"])) == ("halo2", "ping", 50)
    assert all(trip > 0 for trip in ping["trips"])
    if stream["tool"] == "strixd":  # this machine has no iperf3
        assert stream["bytes"] >= 8 << 20
        assert 0.05 < stream["seconds"] < 10
    assert rdma["lacking"] == "no active RDMA port has the address of the fabric on halo1 and halo2"


def test_a_program_that_both_ends_have_measures_and_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "iperf3").write_text(STAND_IN)
    (tmp_path / "iperf3").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with asked(job("stream")) as (command, said), other_end(command) as other:
        (stream,) = said
        assert other.wait(10) == 0
    assert (stream["tool"], json.loads(stream["output"])) == ("iperf3", json.loads(IPERF3))
    assert running(str(tmp_path)) == []


def test_a_program_that_fails_is_said_and_the_next_one_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "iperf3").write_text("#!/bin/sh\necho unable to do this >&2\nexit 3\n")
    (tmp_path / "iperf3").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with asked(job("stream", "ping")) as (command, said), other_end(command):
        stream, ping = said
    assert "iperf3 does not listen: unable to do this" in stream["failed"]
    assert len(ping["trips"]) == 50


def running(word: str) -> list[str]:
    lines = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line for line in lines if word in line]


def test_when_nobody_wants_it_any_more_both_ends_end() -> None:
    with asked(job("ping", "stream", stream=20.0)) as (command, said):
        other = other_end(command)
        assert next(said)["what"] == "ping"
    assert other.wait(20) == 1
    with pytest.raises(StopIteration):
        next(said)


def test_an_address_that_this_node_has_not_is_named() -> None:
    (said,) = driver.messages(job("ping", address="203.0.113.77"), HERE)
    assert said == {"peer": "halo2", "failed": "cannot listen on 203.0.113.77: Cannot assign requested address"}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_an_other_end_that_goes_is_said(number: signal.Signals) -> None:
    with asked(job("ping", "stream", stream=20.0)) as (command, said):
        other = other_end(command)
        assert next(said)["what"] == "ping"
        other.send_signal(number)
        (last,) = said
        other.wait(10)
    assert last == {"peer": "halo2", "failed": "the other end hung up"}


def test_the_other_end_gives_up_with_its_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        code = f"from strixd.probe.link.there import answer; print(answer('127.0.0.1', {port}, 't', 0.5))"
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=10, check=True
        )
    assert done.stdout.strip() == "the other end says nothing"


@pytest.mark.parametrize(
    "said",
    [
        lambda token: {"token": "0" * 32, "use": "orders"},
        lambda token: {"token": token, "use": "echo"},
        lambda token: {},
        lambda token: [],
    ],
)
def test_only_who_has_the_token_is_let_in(said: Callable[[str], Any]) -> None:
    door = Door("127.0.0.1", time.monotonic() + 10)
    with door, socket.create_connection((door.address, door.port), 5) as stranger:
        stranger.sendall(json.dumps(said(door.token)).encode() + b"\n")
        with pytest.raises(TimeoutError):
            door.accept("orders", 0.5)
        assert stranger.recv(1) == b""


def test_the_door_is_on_its_address_alone() -> None:
    with Door("127.0.0.1", time.monotonic() + 10) as door, pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", door.port), 5)


@pytest.mark.parametrize(
    ("script", "error", "words"),
    [
        ("print('{\"a\": 1', flush=True)", Rejected, "the measuring program says"),
        ("import sys; sys.exit('no Ray here')", None, ""),
        ("import os; os.write(2, b'Traceback: boom'); os._exit(7)", Rejected, "ended with status 7: Traceback: boom"),
        ("import os; os.kill(os.getpid(), 9)", Rejected, "status -9"),
    ],
)
def test_a_measuring_program_that_is_no_good(script: str, error: type[Exception] | None, words: str) -> None:
    command = (sys.executable, "-c", f"input(); {script}")
    if error is None:
        assert list(driver.messages(job(), command)) == []
        return
    with pytest.raises(error) as raised:
        list(driver.messages(job(), command))
    assert words in str(raised.value)


def test_words_of_a_profile_are_no_result() -> None:
    command = (sys.executable, "-c", "print('Welcome to the toolbox!'); print('{\"peer\": \"b\"}')")
    assert list(driver.messages(job(), command)) == [{"peer": "b"}]


def test_what_it_said_counts_when_it_ended_before_the_job_reached_it(monkeypatch: pytest.MonkeyPatch) -> None:
    started = driver._started

    def over(*words: Any) -> subprocess.Popen[bytes]:
        process = started(*words)
        process.wait(30)
        return process

    monkeypatch.setattr(driver, "_started", over)
    assert list(driver.messages(job(), (sys.executable, "-c", 'print(\'{"peer": "b"}\')'))) == [{"peer": "b"}]


def test_one_that_never_ends_is_ended() -> None:
    began = time.monotonic()
    with pytest.raises(Rejected, match="does not come to an end"):
        list(driver.messages(job(seconds=0.5 - driver.ORDERLY), (sys.executable, "-c", "input(); input()")))
    assert time.monotonic() - began < driver.ORDERLY


def test_without_podman_its_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="Cannot run podman") as raised:
        next(driver.messages(job(ray=True)))
    assert raised.value.hint == "dnf install podman"


def test_without_any_rdma_there_is_none(tmp_path: Path) -> None:
    assert card.rdma("192.168.100.1", "enp194s0np0", tmp_path) is None


def test_an_interface_is_found_by_its_address() -> None:
    assert card.interface("127.0.0.1") == "lo"
    assert card.interface("203.0.113.77") == ""


@pytest.mark.parametrize("address", ["192.168.102.1", "192.168.100.2", "192.168.102.9", "10.1.2.3"])
def test_an_interface_is_found_by_whichever_of_its_addresses(address: str) -> None:
    """Others stand before the fabric's, or after it, with a label or without, in its network or not."""
    adds = ("192.168.102.1/24", "192.168.100.2/30", "192.168.102.9/24", "10.1.2.3/32 label lo:other")
    ask = f"from strixd.probe.link import card; print(card.interface('{address}'))"
    script = " && ".join((*(f"ip addr add dev lo {words}" for words in adds), f'{sys.executable} -c "{ask}"'))
    own = ["unshare", "--map-root-user", "--net", "sh", "-c", script]
    assert subprocess.run(own, check=True, capture_output=True, text=True, timeout=30).stdout == "lo\n"
    assert card.driver("lo") == card.driver("") == ""


def test_infiniband_needs_no_gid() -> None:
    rdma = {"device": "mlx5_0", "port": 1, "gid": None}
    words = programs.words("ib_write_lat", "192.168.100.1", 40123, rdma=rdma, peer="192.168.100.2")
    assert words[:7] == ["ib_write_lat", "-d", "mlx5_0", "-i", "1", "-p", "40123"]


@pytest.mark.parametrize("program", programs.AMOUNTS)
def test_perftest_is_told_device_port_and_gid_and_is_bounded(program: str) -> None:
    rdma = {"device": "rocep194s0", "port": 1, "gid": 3}
    words = programs.words(program, "192.168.100.1", 40123, rdma=rdma, peer="192.168.100.2")
    assert " ".join(words).startswith(f"{program} -d rocep194s0 -i 1 -x 3 -p 40123 -F -")
    assert words[-1] == "192.168.100.2"
    assert programs.bounded(words)[:3] == ["timeout", "--kill-after=2", "30"]


@pytest.mark.parametrize(
    ("told", "more"), [("  --bind_source_ip  Source IP", ["--bind_source_ip", "127.0.0.1"]), ("", [])]
)
def test_a_listening_perftest_is_kept_to_its_address_if_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str, more: list[str]
) -> None:
    (tmp_path / "ib_write_lat").write_text(f"#!/bin/sh\necho '{told}'\n")
    (tmp_path / "ib_write_lat").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    words = programs.words("ib_write_lat", "127.0.0.1", 40123, rdma={"device": "rxe0", "port": 1, "gid": 1})
    assert words[words.index("1000") + 1 :] == more
