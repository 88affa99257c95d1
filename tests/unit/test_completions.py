"""The completions, in a real bash on a terminal: what is on the line when all that fits has been put there."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from strixd.cli.words import COMMANDS, PHASES

ROOT = Path(__file__).parents[2]
ALL = b"\x1b*"  # readline's insert-completions
PROGRAMS = ("strixd-cli", "strixd-media")
# Stands for the program, and tells what it was called with.
PROGRAM = "{0}() {{ printf '%s\\n' \"$@\" end >>said; }}; . {1}/{0}\n"

Complete = Callable[[str], list[str]]


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generated")
    environment = os.environ | {"PYTHONPATH": str(ROOT), "SOURCE_DATE_EPOCH": "0"}
    subprocess.run([sys.executable, ROOT / "packaging/generate.py", folder], env=environment, check=True, timeout=60)
    return folder


@pytest.fixture(scope="module")
def complete(generated: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Complete]:
    """A line goes in, the words of the completed line come out; the folder it is in has a file and a folder."""
    folder = tmp_path_factory.mktemp("bash")
    (folder / "here.toml").touch()
    (folder / "sub").mkdir()
    os.mkfifo(folder / "said")
    said = os.open(folder / "said", os.O_RDWR)  # also writing, so that it never ends
    ours, its = pty.openpty()
    (folder / "rc").write_text("PS1=\n" + "".join(PROGRAM.format(name, generated) for name in PROGRAMS))
    command = ["bash", "--noprofile", "--rcfile", str(folder / "rc"), "-i"]
    nobody = subprocess.DEVNULL
    bash = subprocess.Popen(command, stdin=its, stdout=nobody, stderr=nobody, cwd=folder, start_new_session=True)
    yield lambda line: _asked(ours, said, line)
    bash.kill()
    bash.wait()
    for opened in (ours, its, said):
        os.close(opened)


def _asked(terminal: int, said: int, line: str) -> list[str]:
    os.write(terminal, line.encode() + ALL + b"\n")
    answer = b""
    while not answer.endswith(b"end\n"):
        assert select.select([said], [], [], 20)[0], f"bash says nothing more than {answer!r}"
        answer += os.read(said, 65536)
    return answer.decode().splitlines()[:-1]


FIRST = sorted({command.name.split()[0] for command in COMMANDS})
LINES = {
    "strixd-cli ": FIRST,
    "strixd-cli st": ["status", "stop"],
    "strixd-cli --socket /x inc": ["--socket", "/x", "incidents"],
    "strixd-cli config ": ["config", "check", "show"],
    "strixd-cli wait ": ["wait", *sorted(PHASES)],
    "strixd-cli wait --timeout 5 re": ["wait", "--timeout", "5", "ready"],
    "strixd-cli logs --f": ["logs", "--follow"],
    "strixd-cli logs ray -": ["logs", "ray", "--follow", "--help", "--lines", "--socket", "-f", "-h", "-n"],
    "strixd-cli bench --rung t": ["bench", "--rung", "tcp", "thunderbolt"],
    "strixd-cli bench --rung=t": ["bench", "--rung=tcp", "thunderbolt"],
    "strixd-cli config check h": ["config", "check", "here.toml"],
    "strixd-cli key new --file s": ["key", "new", "--file", "said", "sub"],
    "strixd-cli --vers": ["--version"],
    "strixd-cli help und": ["help", "undo", "undrain"],
    "strixd-media ": ["build", "explain", "kickstart"],
    "strixd-media --": ["--help", "--version"],
    "strixd-media kickstart --": ["kickstart", "--all", "--cluster", "--help", "--node"],
    "strixd-media build --cluster h": ["build", "--cluster", "here.toml"],
    "strixd-media build --cluster here.toml --m": ["build", "--cluster", "here.toml", "--model"],
    # Nothing fits: the line stays as it is.
    "strixd-cli status x": ["status", "x"],
    "strixd-cli logs ray v": ["logs", "ray", "v"],
    "strixd-cli serve tiny -- --m": ["serve", "tiny", "--", "--m"],
}


@pytest.mark.parametrize("line", LINES)
def test_bash_completes(complete: Complete, line: str) -> None:
    assert complete(line) == LINES[line]


@pytest.mark.parametrize("name", PROGRAMS)
def test_bash_has_no_complaint(generated: Path, name: str) -> None:
    shellcheck = Path(sys.executable).parent / "shellcheck"
    done = subprocess.run([shellcheck, "-s", "bash", generated / name], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_manual_has_every_command_with_its_options(generated: Path) -> None:
    text = (generated / "strixd-cli.1").read_text()
    for command in COMMANDS:
        part = text.partition(f".Ss {command.name}\n")[2].partition(".Ss ")[0]
        assert all(f"Fl {option.name[1:]}" in part for option in command.options), command.name
        assert all(f".It Ar {word.name}\n" in part for word in command.words), command.name


def test_the_manual_of_strixd_media_is_written_by_hand_and_has_every_option(generated: Path) -> None:
    text = (ROOT / "packaging/strixd-media.1").read_text()
    names = set(re.findall("^complete .* -l ([a-z-]+)", (generated / "strixd-media.fish").read_text(), re.M)) - {
        "help",
        "version",
    }
    assert names == set(re.findall(r"^\.It Fl -([a-z-]+)", text, re.M))
