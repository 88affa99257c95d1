"""What systemd is told, and that telling it never hurts."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from strixd.host.notify import Notify


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(str(tmp_path / "notify"))
        server.settimeout(1)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        yield server


def test_the_words(systemd: socket.socket) -> None:
    notify = Notify()
    notify.ready()
    notify.watchdog()
    notify.stopping()
    assert [systemd.recv(100) for _ in range(3)] == [b"READY=1", b"WATCHDOG=1", b"STOPPING=1"]


def test_a_status_is_one_line_of_any_characters_and_bounded(systemd: socket.socket) -> None:
    Notify().status("bereit – 你好\nREADY=1 " + "ü" * 5000)
    said = systemd.recv(9000).decode()
    assert said.startswith("STATUS=bereit – 你好 READY=1 ü")
    assert len(said.encode()) < 1010


def test_reloading_says_when(systemd: socket.socket) -> None:
    before = time.monotonic_ns() // 1000
    Notify().reloading()
    first, second = systemd.recv(100).decode().split("\n")
    assert first == "RELOADING=1"
    assert before <= int(second.removeprefix("MONOTONIC_USEC=")) <= time.monotonic_ns() // 1000


def test_nobody_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    Notify().ready()


def test_a_full_socket_is_logged_and_never_waited_for(systemd: socket.socket, caplog: pytest.LogCaptureFixture) -> None:
    notify = Notify()
    with caplog.at_level(logging.WARNING):
        while not caplog.records:
            notify.watchdog()
    assert caplog.messages == ["Cannot tell systemd WATCHDOG=1: Resource temporarily unavailable"]
