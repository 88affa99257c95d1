"""Readers beside readers that hang or fail; what is asked of a real kernel; and how an examination is shown."""

from __future__ import annotations

import json
import os
import socket
import stat
import struct
import subprocess
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from cli_process import ROOT, cli
from doctor_host import Around, Laid
from recorded_door import RecordedDoor, served

from strixd.doctor import surroundings
from strixd.doctor.examine import Examination, examine
from strixd.doctor.facts import Inside
from strixd.doctor.finding import Finding, Unread
from strixd.doctor.gather import Reader, Scene, gather
from strixd.doctor.known import known, older, same
from strixd.doctor.read.container import LOOK, read_look
from strixd.doctor.read.programs import said
from strixd.doctor.screen import screen
from strixd.errors import ConfigError, Rejected, Unavailable


def alone(**readers: Reader) -> dict[str, object]:
    return gather(readers, Scene(Path("/"), Around()))


def raising(error: Exception) -> Callable[[], object]:
    def read() -> object:
        raise error

    return read


def test_what_hangs_costs_its_own_fact_and_those_that_need_it() -> None:
    hangs = threading.Event()

    def waits(slow: object) -> object:
        return slow

    facts = alone(slow=Reader(lambda: hangs.wait(30), 0.05), needs=Reader(waits, 0.1), quick=Reader(lambda: 7))
    hangs.set()
    assert facts == {"slow": Unread("not read within 0.05 s"), "needs": Unread("not read within 0.1 s"), "quick": 7}


@pytest.mark.parametrize(
    ("error", "unread"),
    [
        (Unavailable("Cannot: no", hint="do"), Unread("Cannot: no", "do")),
        (ValueError("what is that"), Unread("what is that")),
        (FileNotFoundError(2, "No such file or directory", "/x"), Unread("[Errno 2] No such file or directory: '/x'")),
        (ModuleNotFoundError("No module named 'x'", name="x"), Unread("No module named 'x'", "dnf install python3-x")),
    ],
)
def test_what_fails_is_not_known_and_neither_is_what_needs_it(error: Exception, unread: Unread) -> None:
    def needs(bad: object) -> object:
        return bad

    facts = alone(bad=Reader(raising(error)), needs=Reader(needs))
    assert facts["needs"] == facts["bad"]
    assert isinstance(facts["bad"], Unread)
    assert facts["bad"].why == unread.why
    if os.geteuid() == 0 or unread.mend:
        assert facts["bad"] == unread


def test_a_bug_is_no_fact() -> None:
    with pytest.raises(ZeroDivisionError):
        alone(bad=Reader(lambda: 1 // 0))


# What is not a file


def test_doors_open_closed_and_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        assert surroundings.knock("127.0.0.1", port) == "open"
    assert surroundings.knock("127.0.0.1", port) == "refused"


@pytest.mark.skipif(os.geteuid() != 0, reason="ICMP timestamps are for root")
def test_this_hosts_own_clock_agrees_with_itself() -> None:
    try:
        off = surroundings.clock("127.0.0.1")
    except PermissionError:
        pytest.skip("no raw sockets here")
    assert off is None or abs(off) < 1


def reply(kind: int, number: int, received: int) -> bytes:
    return bytes([0x45]) + bytes(19) + struct.pack("!BBHHHIII", kind, 0, 0, number, 1, 5, received, received)


@pytest.mark.parametrize(
    ("packet", "told"),
    [
        (reply(14, 7, 1234), 1234),
        (reply(14, 8, 1234), None),  # another process's
        (reply(13, 7, 1234), None),  # our own question, on the loopback interface
        (reply(14, 7, 1 << 31 | 5), None),  # not in milliseconds since midnight
        (b"", None),
        (bytes([0x45]) + bytes(25), None),
    ],
)
def test_timestamps(packet: bytes, told: int | None) -> None:
    assert surroundings.read_timestamp(packet, 7) == told


@pytest.mark.parametrize(
    ("status", "body", "trouble"),
    [
        (200, b'{"choices": [{"text": "1"}]}', ""),
        (200, b"{}", "an answer without a completion"),
        (500, b"", "HTTP Error 500: Internal Server Error"),
        (200, b"not JSON", "Expecting value: line 1 column 1 (char 0)"),
    ],
)
def test_one_completion(status: int, body: bytes, trouble: str) -> None:
    asked: list[tuple[str, object, str]] = []

    class Server(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append((self.path, said["model"], self.headers["Authorization"]))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.handle_request).start()
        url = f"http://127.0.0.1:{server.server_port}"
        assert surroundings.complete(url, "tiny", "key") == trouble
    assert asked == [("/v1/completions", "tiny", "Bearer key")]


# In the container


def look(*devices: Path | str) -> Inside:
    """As podman runs it in the container, here."""
    command = ["bash", "-c", LOOK, "bash", *map(str, devices)]
    return read_look(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_devices_are_opened_and_none_is_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    found = look("/dev/null", tmp_path / "none", tmp_path / "file", tmp_path)
    none = "it is not in the container"
    assert found.devices == {"/dev/null": "", str(tmp_path / "none"): none, str(tmp_path / "file"): none}
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "kept"
    assert 0 < found.shm_free <= found.shm


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a device")
def test_a_device_that_may_not_be_opened_says_why(tmp_path: Path) -> None:
    """A device number that no driver has: whoever opens it is told so, root too."""
    device = tmp_path / "device"
    try:
        os.mknod(device, 0o600 | stat.S_IFCHR, os.makedev(0, 4711))
    except PermissionError:
        pytest.skip("no devices can be made here")
    assert look(device).devices[str(device)] in ("No such device or address", "Permission denied", "No such device")


@pytest.mark.parametrize("text", ["", "memlock\nshm 1 2\n", "memlock many\nshm 1 2\n", "shm 1 2\n"])
def test_what_the_container_does_not_say_is_not_known(text: str) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        read_look(text)


def test_a_program_that_hangs_is_named_and_not_what_it_was_told() -> None:
    with pytest.raises(Unavailable, match=r"^sleep has not answered within 0.05 s$"):
        said("sleep", "60", within=0.05)


# Versions


@pytest.mark.parametrize(
    ("version", "least", "is_older"),
    [
        ("6.18.3-300.fc43", "6.18.4", True),
        ("6.18.4-200.fc43", "6.18.4", False),
        ("6.9.12", "6.18.4", True),
        ("7.0", "6.18.4", False),
        ("20251125", "20260410", True),
    ],
)
def test_versions_by_their_numbers(version: str, least: str, is_older: bool) -> None:
    assert older(version, least) == is_older
    assert same(version, version.partition("-")[0])


def test_the_administrators_table_replaces_single_keys() -> None:
    shipped = known(None)
    mended = known("[mes]\nleast = 0x90\n")
    assert (mended.mes.least, mended.mes.bad) == (0x90, shipped.mes.bad)
    assert (mended.kernel, shipped.mes.least, shipped.kernel.least) == (shipped.kernel, 0x86, "6.18.4")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[mes]\nleast = 'x'\n", "mes.least"),
        ("[mess]\n", "did you mean mes?"),
        ("[mes", "not valid TOML"),
        ("mes = 1\n", "must be a table"),
    ],
)
def test_a_mistake_in_it_is_named(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=f"(?s)/etc/strixd/known.toml:0: .*{words.replace('?', '.')}"):
        known(text)


# How it is shown


@pytest.fixture
def laid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Laid:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return Laid(tmp_path / "root", tmp_path / "bin")


def test_what_is_well_is_only_counted(laid: Laid) -> None:
    (line,) = screen(examine(laid.scene()))
    assert line.startswith("0 faults, 0 warnings, 0 not known, ")
    assert " ok; looked for " in line


def test_a_cause_comes_with_its_mend_and_what_follows_without(laid: Laid) -> None:
    laid.linked(carrier=False)
    laid.around.door = "silent"
    lines = screen(Examination(laid.findings(), 1.0))
    text = " ".join(" ".join(lines).split())
    assert "link fault carrier: no carrier on enp194s0np0 (the cause of what follows from it) wanted: a cable" in text
    assert "→ check the cable and whether the other end is on; ethtool enp194s0np0" in text
    assert "fault ports: halo2: port 23000 does not answer follows from carrier: mend that first" in text
    assert "not known crossing: nothing can cross" in text
    assert lines[-1].startswith("begin with carrier (link): check the cable")
    assert all(len(line) <= 80 for line in lines[:-2])


def test_what_is_shown_cannot_command_a_terminal() -> None:
    nasty = Finding("x", "kernel", "fault", "\x1b[2J", "", "", "\x07")
    assert "\x1b" not in "".join(screen(Examination((nasty,), 0.0)))


# As a program


def test_the_cli_runs_it_and_hands_its_exit_status_on() -> None:
    """Whatever is wrong with the machine that runs this, it has no strixd at that socket."""
    done = cli("doctor", "--json", PYTHONPATH=str(ROOT))
    told = json.loads(done.stdout)
    assert done.returncode == told["exitStatus"] == 2
    (daemon,) = [each for each in told["findings"] if each["name"] == "daemon"]
    assert "Cannot reach strixd at /nonexistent" in daemon["read"]
    assert told["seconds"] < 10


def test_fix_asks_strixd_for_an_apply_and_looks_again(tmp_path: Path) -> None:
    with served(tmp_path / "socket", RecordedDoor()) as server:
        done = cli("doctor", "--fix", socket=server.path, PYTHONPATH=str(ROOT))
        asked = [name for name, *_ in server.door.asked]
    assert "apply" in asked
    assert done.stdout.startswith("applied: nothing to change; halo1 is ready\n")
    assert " ok; looked for " in done.stdout


def test_a_fix_that_fails_is_told_beside_the_json(tmp_path: Path) -> None:
    door = RecordedDoor()
    door.refusal = Rejected("Cannot set the MTU", hint="strixd-cli history")
    with served(tmp_path / "socket", door) as server:
        done = cli("doctor", "--fix", "--json", socket=server.path, PYTHONPATH=str(ROOT))
    assert done.stderr == "strixd-cli: Cannot set the MTU\n  strixd-cli history\n"
    assert json.loads(done.stdout)["findings"]


def test_fix_without_a_daemon_says_how_to_start_it_and_looks_all_the_same() -> None:
    done = cli("doctor", "--fix", "--json", PYTHONPATH=str(ROOT))
    assert done.stderr == (
        "strixd-cli: nothing is fixed: Cannot reach strixd at /nonexistent: there is no such socket\n"
        "  systemctl enable --now strixd.socket strixd.service, then strixd-cli doctor --fix\n"
    )
    assert json.loads(done.stdout)["findings"]
