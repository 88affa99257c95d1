"""The daemon as a process, over a simulated node: what it says when it cannot start, and with which status it ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cli_process import ROOT

from strixd import config
from strixd import daemon as composed
from strixd.engine import memory
from strixd.engine.wish import Wish
from strixd.errors import ConfigError, StrixdError, Unavailable
from strixd.sim import World, clock, simulated_host

NODE = '[[node]]\nname = "{0}"\nrole = "{1}"\naddress = "192.168.100.{2}/30"\ninterface = "enp1s0"\n'


def daemon(*words: str) -> subprocess.CompletedProcess[str]:
    """Only such as ends by itself."""
    line = [sys.executable, "-m", "strixd", "--simulate", *words]
    return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("missing/s", 69, "No such file or directory"),
        ("file/s", 69, "Not a directory"),
        ("a" * 120, 69, "AF_UNIX path too long"),
        ("file", 2, "a file that is no socket is there"),
    ],
)
def test_a_place_where_no_socket_can_be_is_named(tmp_path: Path, path: str, status: int, words: str) -> None:
    (tmp_path / "file").touch()
    done = daemon("--socket", str(tmp_path / path))
    assert done.returncode == status
    assert done.stderr.startswith(f"ERROR: Cannot listen on {tmp_path / path}")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


CARD, THERE = "b4:96:91:00:00:01", "50:7c:6f:00:00:01"


def cluster(*names: str, mac: str = "") -> str:
    """`mac`: of the card of the first node."""
    by_card = NODE.replace('interface = "enp1s0"', f'mac = "{mac}"') if mac else NODE
    return f'[cluster]\nname = "halo"\n{by_card.format(names[0], "head", 1)}{NODE.format(names[1], "worker", 2)}'


@pytest.mark.parametrize(
    ("text", "status", "words"),
    [
        (cluster("a", "b"), 78, "0: node: cannot find"),
        (cluster("halo1.a", "halo1.b"), 78, "0: node: cannot tell"),
        (cluster("a", "halo1", mac=THERE), 78, "0: node: cannot tell"),
        (cluster("a", "b", mac=CARD), 69, "0: node: cannot find"),
        ("nonsense", 78, "1: "),
    ],
)
def test_the_file_in_which_this_host_is_not_one_node_is_named(
    tmp_path: Path, text: str, status: int, words: str
) -> None:
    """systemd starts a daemon that ended with 69 again, and not one that ended with 78."""
    file = tmp_path / "cluster.toml"
    file.write_text(text)
    done = daemon("--socket", str(tmp_path / "s"), "--config", str(file))
    assert done.returncode == status
    assert done.stderr.startswith(f"ERROR: {file}:{words}")
    assert (f"none is {CARD}" in done.stderr) == ("ERROR: Its card may come later" in done.stderr) == (status == 69)


def started(world: World, text: str) -> Wish:
    host = simulated_host(world)
    return clock.run(composed._wish(lambda: composed._file(config.parse(text, "cluster.toml"), host.identity), host))


def refused(text: str, good: str | None) -> StrixdError:
    """What a start says with this cluster.toml, and this last good one."""
    world = World()
    if good is not None:
        world.disk.files[memory.LAST_GOOD] = good
    with pytest.raises(StrixdError) as failure:
        started(world, text)
    return failure.value


NOBODY, AWAY, BROKEN = cluster("a", "b"), cluster("a", "b", mac=CARD), "nonsense"


@pytest.mark.parametrize("text", [NOBODY, AWAY, BROKEN])
@pytest.mark.parametrize("good", [None, NOBODY, AWAY, BROKEN])
def test_when_both_files_fail_that_which_can_be_mended_is_told(text: str, good: str | None) -> None:
    """Started again as long as a card that comes later may make either of them usable."""
    said = refused(text, good)
    assert str(said).startswith("cluster.toml:")
    assert memory.LAST_GOOD not in str(said)
    assert type(said) is (Unavailable if AWAY in (text, good) else ConfigError)


@pytest.mark.parametrize("text", [NOBODY, AWAY, BROKEN])
def test_a_last_good_file_is_kept_true(text: str) -> None:
    world = World()
    world.disk.files[memory.LAST_GOOD] = cluster("halo1", "halo2")
    wish = started(world, text)
    assert wish.file.node.name == "halo1"
    assert wish.problem.startswith("cluster.toml:")
