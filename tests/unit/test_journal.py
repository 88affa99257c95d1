"""Lines for journald and lines from it. The socket here is our own, so that every byte is seen."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from strixd import messages
from strixd.errors import Rejected, Unavailable
from strixd.host import journal, journal_socket
from strixd.host.journal import Journald, JournalHandler, priority
from strixd.host.journal_socket import JournalSocket, datagram


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(str(tmp_path / "socket"))
        server.settimeout(2)
        yield server


def parse(content: bytes) -> dict[str, str]:
    """The native protocol, read independently of how it is written."""
    fields, rest = {}, content
    while rest:
        line, _, after = rest.partition(b"\n")
        name, equals, value = line.partition(b"=")
        if not equals:
            (length,) = struct.unpack("<Q", after[:8])
            value, rest = after[8 : 8 + length], after[8 + length + 1 :]
        else:
            rest = after
        fields[name.decode()] = value.decode()
    return fields


def received(listener: socket.socket) -> dict[str, str]:
    content, files, _, _ = socket.recv_fds(listener, 1 << 20, 1)
    if files:
        content = os.pread(files[0], 1 << 28, 0)
        os.close(files[0])
    return parse(content)


def logger(listener: socket.socket) -> logging.Logger:
    made = logging.Logger("strixd.test", logging.DEBUG)
    made.addHandler(JournalHandler("strixd", listener.getsockname()))
    return made


def test_a_line_with_its_fields(listener: socket.socket) -> None:
    logger(listener).warning("%s is away", "it", extra=messages.fields("BLOCKED", resource="network"))
    fields = received(listener)
    assert fields["MESSAGE"] == "it is away"
    assert fields["PRIORITY"] == "4"
    assert fields["MESSAGE_ID"] == messages.IDS["BLOCKED"]
    assert fields["STRIXD_RESOURCE"] == "network"
    assert (fields["SYSLOG_IDENTIFIER"], fields["LOGGER"]) == ("strixd", "strixd.test")
    assert fields["CODE_FILE"] == __file__


def test_other_extras_are_not_fields(listener: socket.socket) -> None:
    logger(listener).info("x", extra={"secret": "y", "_PID": "1"})
    assert "y" not in received(listener).values()


def test_the_message_is_bare_also_by_basic_config(listener: socket.socket) -> None:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    handler = JournalHandler("strixd", listener.getsockname())
    logging.basicConfig(handlers=[handler], force=True)
    try:
        logging.getLogger("strixd.x").warning("bare")
    finally:
        root.handlers[:], root.level = before
    assert received(listener)["MESSAGE"] == "bare"


def test_several_lines(listener: socket.socket) -> None:
    try:
        raise KeyError("no such\nthing")
    except KeyError:
        logger(listener).exception("first\nsecond=2", extra={"STRIXD_STEP": "a\nb"})
    fields = received(listener)
    assert fields["MESSAGE"].startswith("first\nsecond=2\nTraceback")
    assert fields["STRIXD_STEP"] == "a\nb"


def test_what_is_too_large_for_a_datagram(listener: socket.socket) -> None:
    logger(listener).error("ü" * 20_000_000)
    assert len(received(listener)["MESSAGE"]) == 20_000_000


def test_bytes_that_are_no_text() -> None:
    assert datagram([("MESSAGE", os.fsdecode(b"\xff!"))]) == b"MESSAGE=\\udcff!\n"


def test_a_silent_journal_holds_up_once_and_the_loss_is_told(
    listener: socket.socket, capsys: pytest.CaptureFixture[str]
) -> None:
    sender = JournalSocket(listener.getsockname())
    line = datagram([("MESSAGE", "x" * 100_000)])
    said = ""
    while not said:
        sender.send(line)
        said = capsys.readouterr().err
    sender.send(line)
    assert said + capsys.readouterr().err == "Cannot write to the journal: timed out\n"
    while True:
        try:
            listener.settimeout(0.1)
            listener.recv(1)
        except TimeoutError:
            break
    sender.send(line)
    listener.recv(1)
    assert parse(listener.recv(1000))["MESSAGE"].startswith("2 lines of the log were lost")


def test_no_journal_at_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    JournalSocket(str(tmp_path / "none")).send(b"MESSAGE=x\n")
    assert "Cannot write to the journal: No such file or directory" in capsys.readouterr().err


@pytest.mark.parametrize(("level", "number"), [(10, 7), (5, 7), (20, 6), (25, 4), (30, 4), (40, 3), (50, 2), (60, 2)])
def test_priorities(level: int, number: int) -> None:
    assert priority(level) == number


def test_on_a_terminal_the_log_goes_to_standard_error() -> None:
    code = "import logging; from strixd.host.journal import setup_logging as s; s(debug=True)\n" + (
        "logging.getLogger('strixd.x').debug('seen'); logging.getLogger('asyncio').debug('not')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "DEBUG: seen\n"


def journalctl(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Stands in for the program, found in the same way."""
    program = folder / "journalctl"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def last(count: int = 3) -> tuple[str, ...]:
    return asyncio.run(Journald().last("strixd-vllm.service", "ab12", count))


def entries(*messages: object) -> str:
    """What journalctl -r prints: the newest first."""
    return "\n".join(json.dumps({"MESSAGE": message}) for message in reversed(messages))


def test_the_last_lines_without_noise_and_colours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    event = json.dumps({"MESSAGE": "container died", "PODMAN_EVENT": "died"})
    words = entries("a" * 64, "one\ntwo\n", list(b"\x1b[31mred\x1b[0m\n"), "conmon a09 <nwarn>: x", None, ["p", "q"])
    (tmp_path / "out").write_text(f"{event}\n{words}\n")
    journalctl(tmp_path, monkeypatch, f'echo "$@" >{tmp_path}/asked; cat {tmp_path}/out')
    assert last(9) == ("one", "two", "red", "p", "q")
    assert last(2) == ("p", "q")
    assert "_SYSTEMD_INVOCATION_ID=ab12 _SYSTEMD_UNIT=strixd-vllm.service" in (tmp_path / "asked").read_text()


def test_more_than_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest lines survive, the cut one is left out, and the program is not left behind."""
    (tmp_path / "out").write_text(entries(*[f"{number} " + "x" * 90_000 for number in range(20)]))
    journalctl(tmp_path, monkeypatch, f"cat {tmp_path}/out; exec sleep 100")
    found = last(20)
    assert [line.split()[0] for line in found] == [str(number) for number in range(9, 20)]
    assert all(len(line) == journal.LONGEST + 1 for line in found)


def test_a_run_that_never_was() -> None:
    assert asyncio.run(Journald().last("x.service", "", 5)) == ()


def test_its_own_words_when_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journalctl(tmp_path, monkeypatch, "echo 'No journal files were opened' >&2; exit 1")
    with pytest.raises(Rejected, match=r"Cannot read the journal of strixd-vllm.service: No journal files were opened"):
        last()


def test_no_answer_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journalctl(tmp_path, monkeypatch, "exec sleep 100")
    with pytest.raises(Unavailable, match=r"no answer within 0\.2 s"):
        asyncio.run(Journald(within=0.2).last("x.service", "ab12", 1))


def test_no_journalctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="journalctl: No such file"):
        last()


def test_the_socket_is_journalds() -> None:
    assert journal_socket.SOCKET == "/run/systemd/journal/socket"
