"""After an installation: what is told until the node is ready, and that it is told only once."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from recorded_door import RecordedDoor, resource, served, status

from strixd import firstboot
from strixd.api.follow import public
from strixd.engine.status import Status

NO_KEY = "no /etc/strixd/cluster.key: without it Ray would obey anybody on the link"
WAITS = replace(status(resource("ray", "blocked", NO_KEY, hint="strixd-cli key import")), phase="degraded")
SAID = f"halo1 is installed; ray is blocked: {NO_KEY}; strixd-cli key import"


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (status(), "halo1 is installed and ready"),
        (WAITS, SAID),
        (replace(WAITS, resources=(resource("cmdline", "reboot", "due"), *WAITS.resources)), SAID),
        (
            replace(WAITS, resources=(resource("network", "waiting", "no carrier"), *WAITS.resources)),
            "network is waiting: no",
        ),
        (replace(WAITS, problem="cluster.toml:3: x: wrong\nmore"), "cannot be used: cluster.toml:3: x: wrong"),
        (replace(status(), phase="starting"), "halo1 is installed, and starting"),
        (replace(WAITS, resources=(resource("ray", "stuck", "a\x1bb\nc"),)), "ray is stuck: a b c"),
    ],
    ids=["ready", "no-key", "reboot", "lowest", "file", "starting", "unprintable"],
)
def test_what_is_said(seen: Status, words: str) -> None:
    said = firstboot.said(public(seen))
    assert words in said
    assert said.isprintable()


def test_it_ends_when_the_node_is_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(firstboot, "PACE", 0.02)
    door, path, called, motd = RecordedDoor(), tmp_path / "socket", tmp_path / "install", tmp_path / "motd"
    door.now = WAITS
    (called / "in").mkdir(parents=True)
    thread = threading.Thread(target=firstboot.main, args=(str(path), called, motd))
    thread.start()
    _until(motd, "strixd does not answer yet")
    with served(path, door):
        _until(motd, SAID)
        door.now = status()
        thread.join(10)
    assert not thread.is_alive()
    assert not called.exists()
    assert not motd.exists()
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == [f"strixd: {SAID}", "strixd: halo1 is installed and ready"]
    assert len(lines) == len(set(lines))


def _until(file: Path, words: str) -> None:
    waiting = threading.Event()
    for _ in range(500):
        if file.exists() and words in file.read_text():
            return
        waiting.wait(0.02)
    raise AssertionError(file.read_text() if file.exists() else "nothing was said")
