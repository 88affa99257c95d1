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


LOADING = "the image that came with the medium is being loaded (3.0 GiB)"


@pytest.mark.parametrize(
    ("archive", "state", "told"),
    [
        (True, "echo activating", LOADING),
        (True, "echo failed", SAID),
        (True, "echo inactive", SAID),
        (True, "exit 1", SAID),
        (False, "echo activating", SAID),
    ],
    ids=["loads", "failed", "not-asked-for", "unknown", "no-image"],
)
def test_while_the_image_is_loaded_nothing_else_is_awaited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, archive: bool, state: str, told: str
) -> None:
    """strixd starts after that; it may take an hour."""
    monkeypatch.setattr(firstboot, "PACE", 0.02)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    (tmp_path / "systemctl").write_text(f'#!/bin/sh\n[ "$4" = strixd-load.service ] && {state}\n')
    (tmp_path / "systemctl").chmod(0o755)
    called, motd, door = tmp_path / "install", tmp_path / "motd", RecordedDoor()
    called.mkdir()
    if archive:
        with (called / "image.tar").open("wb") as file:
            file.truncate(3 << 30)
    door.now = WAITS
    with served(tmp_path / "socket", door):
        thread = threading.Thread(target=firstboot.main, args=(str(tmp_path / "socket"), called, motd))
        thread.start()
        _until(motd, told)
        (called / "image.tar").unlink(missing_ok=True)
        _until(motd, SAID)
        door.now = status()
        thread.join(10)
    assert not thread.is_alive()


def test_its_unit_does_not_wait_for_what_it_tells() -> None:
    """Only for what is there at once; the daemon starts after the image was loaded."""
    unit = (Path(__file__).parents[2] / "units/strixd-firstboot.service").read_text()
    ordered = {word for line in unit.splitlines() if line.startswith("After=") for word in line[6:].split()}
    assert not ordered & {"strixd.service", "strixd-load.service", "multi-user.target"}
    load = (Path(__file__).parents[2] / f"units/{firstboot.LOAD}").read_text()
    assert f"ConditionPathExists={firstboot.CALLED}/image.tar\n" in load


def _until(file: Path, words: str) -> None:
    waiting = threading.Event()
    for _ in range(500):
        if file.exists() and words in file.read_text():
            return
        waiting.wait(0.02)
    raise AssertionError(file.read_text() if file.exists() else "nothing was said")
