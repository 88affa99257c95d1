"""Where the socket comes from: a stale one is replaced, a living one never."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from strixd.api.listen import bind, inherited
from strixd.errors import Refused, Unavailable

ROOT = Path(__file__).parents[2]


def test_a_new_socket_is_open_to_all(tmp_path: Path) -> None:
    with bind(str(tmp_path / "s")):
        assert (tmp_path / "s").stat().st_mode & 0o777 == 0o666


def test_a_stale_socket_is_replaced(tmp_path: Path) -> None:
    bind(str(tmp_path / "s")).close()
    with bind(str(tmp_path / "s")), socket.socket(socket.AF_UNIX) as client:
        client.connect(str(tmp_path / "s"))


def test_a_living_socket_stays(tmp_path: Path) -> None:
    with bind(str(tmp_path / "s")) as living:
        with pytest.raises(Refused, match="another process listens there"):
            bind(str(tmp_path / "s"))
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(tmp_path / "s"))
            living.accept()[0].close()


def test_a_file_stays(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("mine")
    with pytest.raises(Refused, match="a file that is no socket is there"):
        bind(str(tmp_path / "s"))
    assert (tmp_path / "s").read_text() == "mine"


@pytest.mark.parametrize("name", ["none/s", "x" * 120])
def test_a_place_that_cannot_be(tmp_path: Path, name: str) -> None:
    with pytest.raises(Unavailable, match=f"Cannot listen on {tmp_path}/{name}: "):
        bind(str(tmp_path / name))


def test_nothing_is_inherited_without_systemd() -> None:
    assert inherited({}) is None
    environ = {"LISTEN_PID": "1", "LISTEN_FDS": "1", "LISTEN_FDNAMES": "x", "HOME": "/"}
    assert inherited(environ) is None  # meant for another process
    assert environ == {"HOME": "/"}


CHILD = """
import os, socket, sys
sys.path.insert(0, sys.argv[1])
from strixd.api.listen import inherited
os.environ["LISTEN_PID"] = str(os.getpid())
listener = inherited()
print(listener.getsockname(), listener.get_inheritable(), sorted(k for k in os.environ if k.startswith("LISTEN_")))
"""


def test_the_socket_of_systemd_is_taken(tmp_path: Path) -> None:
    with bind(str(tmp_path / "s")) as listener:
        done = _passed(listener.fileno(), "1")
    assert done.stdout == f"{tmp_path}/s False []\n"


@pytest.mark.parametrize(("count", "words"), [("2", "systemd passed 2 sockets"), ("1", "no unix stream socket")])
def test_another_socket_of_systemd_is_refused(count: str, words: str) -> None:
    with socket.socket(socket.AF_INET) as other:
        assert words in _passed(other.fileno(), count).stderr


def _passed(fd: int, count: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", f'exec "$0" -c "$1" "$2" 3<&{fd}', sys.executable, CHILD, str(ROOT)],
        env={**os.environ, "LISTEN_FDS": count, "LISTEN_FDNAMES": "strixd"},
        pass_fds=[fd],
        capture_output=True,
        text=True,
        check=False,
    )
