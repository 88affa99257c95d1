"""After an installation: what is told until the node is ready, and that it is told only once."""

from __future__ import annotations

import re
import socket
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from recorded_door import RecordedDoor, resource, served, status

from strixd import firstboot
from strixd.api.follow import public
from strixd.engine.status import Status

UNITS = Path(__file__).parents[2] / "units"
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
    thread = threading.Thread(target=firstboot.main, args=(str(path), called, motd, tmp_path / "loading"))
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


def test_what_strixd_itself_waits_for_is_said_before_it_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The socket is open from the start: whoever asks there meanwhile hangs."""
    monkeypatch.setattr(firstboot, "PACE", 0.02)
    path, called, motd, loading = (tmp_path / name for name in ("socket", "install", "motd", "loading"))
    for folder in (called, loading):
        folder.mkdir()
    arguments = (str(path), called, motd, loading)
    thread = threading.Thread(target=firstboot.main, args=arguments, daemon=True)
    with socket.socket(socket.AF_UNIX) as nobody:
        nobody.bind(str(path))
        nobody.listen()
        thread.start()
        _until(motd, "the container image that came with the medium is being loaded")
    path.unlink()
    loading.rmdir()
    with served(path, RecordedDoor()):
        thread.join(10)
    assert not thread.is_alive()
    assert capsys.readouterr().out.splitlines()[-1] == "strixd: halo1 is installed and ready"


def test_no_unit_that_tells_waits_for_what_it_tells_of() -> None:
    """systemd would hold it back until the image is loaded, which takes up to an hour."""
    waits = {file.name: set(_words(file, "After")) for file in UNITS.glob("*.service")}
    for file in UNITS.glob("*.service"):
        for name in set(_words(file, "Before")) & set(waits):
            waits[name].add(file.name)
    seen, next_ = set[str](), {"strixd-firstboot.service"}
    while next_:
        seen |= next_
        next_ = {name for each in next_ for name in waits.get(each, ())} - seen
    assert "strixd-load.service" in waits["strixd.service"]
    assert "strixd-load.service" not in seen
    assert _words(UNITS / "strixd-load.service", "RuntimeDirectory") == [firstboot.LOADING.name]


def _words(file: Path, key: str) -> list[str]:
    return [word for line in re.findall(rf"^{key}=(.*)$", file.read_text(), re.M) for word in line.split()]


def _until(file: Path, words: str) -> None:
    waiting = threading.Event()
    for _ in range(500):
        if file.exists() and words in file.read_text():
            return
        waiting.wait(0.02)
    raise AssertionError(file.read_text() if file.exists() else "nothing was said")
