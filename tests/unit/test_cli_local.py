"""Commands that need no daemon: config, key, token, logs and shell."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli_process import cli, command, environment

from strixd.cli import main
from tests.cluster_file import cluster_file

GOOD = cluster_file()
TOKEN = "hf_" + "aB3" * 10


def test_config_check(tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text(GOOD)
    done = cli("config", "check", str(file))
    assert (done.returncode, done.stdout) == (0, f"{file} is good: cluster halo, 2 nodes, head halo1\n")
    file.write_text(GOOD.replace('role = "head"', 'rle = "head"'))
    done = cli("config", "check", str(file))
    assert (done.returncode, done.stdout) == (78, "")
    assert f"{file}:6: node[1].rle: unknown key; did you mean role?\n" in done.stderr


def test_config_show(tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text(GOOD)
    done = cli("config", "show", str(file))
    assert done.returncode == 0
    assert re.search(r'^name = "halo" +# cluster.toml:2$', done.stdout, re.MULTILINE)
    assert re.search(r"^port = 8000 +# default$", done.stdout, re.MULTILINE)


def test_key_new_writes_once_and_never_shows(tmp_path: Path) -> None:
    file = tmp_path / "etc" / "cluster.key"
    done = cli("key", "new", "--file", str(file))
    key = file.read_text()
    assert done.returncode == 0
    assert re.fullmatch("[0-9a-f]{64}\n", key)
    assert file.stat().st_mode & 0o777 == 0o600
    assert key.strip() not in done.stdout + done.stderr
    assert "copy it to the same place on every other node" in done.stdout
    again = cli("key", "new", "--file", str(file))
    assert again.returncode == 2
    assert again.stderr == (
        f"strixd-cli: {file} is there already, and the nodes may be using it\n"
        "  strixd-cli key new --replace makes another; every node then needs the new one\n"
    )
    assert file.read_text() == key
    assert cli("key", "new", "--replace", "--file", str(file)).returncode == 0
    assert file.read_text() != key
    assert [each.name for each in file.parent.iterdir()] == ["cluster.key"]


KEY, OTHER = "0f" * 32, "1e" * 32


@pytest.mark.parametrize(
    ("there", "given", "words", "kept"),
    [
        ("", f"{KEY}\n", (), KEY),
        (KEY, f" {KEY}", (), KEY),
        (OTHER, KEY, (), OTHER),
        (OTHER, KEY, ("--replace",), KEY),
        ("", KEY[:-1], (), ""),
        ("", KEY + KEY, (), ""),
        (OTHER, "", ("--replace",), OTHER),
    ],
)
def test_key_import(tmp_path: Path, there: str, given: str, words: tuple[str, ...], kept: str) -> None:
    file = tmp_path / "cluster.key"
    if there:
        file.write_text(f"{there}\n")
        file.chmod(0o600)
    done = cli("key", "import", *words, "--file", str(file), stdin=given)
    assert done.returncode == (0 if kept == KEY else 2), done.stderr
    assert (file.read_text().strip() if file.exists() else "") == kept
    assert not file.exists() or file.stat().st_mode & 0o777 == 0o600
    assert KEY[:20] not in done.stdout + done.stderr


def test_token_set_from_a_pipe(tmp_path: Path) -> None:
    file = tmp_path / "hf-token"
    file.write_text("old")
    done = cli("token", "set", "--file", str(file), stdin=f"{TOKEN}\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert file.read_text() == TOKEN + "\n"
    assert file.stat().st_mode & 0o777 == 0o600
    assert TOKEN not in done.stdout


@pytest.mark.parametrize("text", ["", "sk-" + "a" * 30, "hf_a b c d e f g h", "hf_", TOKEN + "\n" + TOKEN])
def test_what_is_no_token_is_not_kept_and_not_shown(tmp_path: Path, text: str) -> None:
    file = tmp_path / "hf-token"
    done = cli("token", "set", "--file", str(file), stdin=text)
    assert done.returncode == 2
    assert done.stderr == (
        "strixd-cli: this is no Hugging Face token: it begins with hf_ and has letters and digits only\n"
        "  https://huggingface.co/settings/tokens shows yours\n"
    )
    assert not file.exists()


def test_a_terminal_does_not_show_the_token(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command("token", "set", "--file", str(tmp_path / "token")),
        env=environment(),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    shown = os.read(ours, 4096)
    while b"not shown" not in shown:
        shown += os.read(ours, 4096)
    os.write(ours, TOKEN.encode() + b"\n")
    assert process.wait(20) == 0
    shown += os.read(ours, 4096)
    assert TOKEN.encode() not in shown
    assert (tmp_path / "token").read_text() == TOKEN + "\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_without_permission_sudo_is_named(tmp_path: Path) -> None:
    file, heard = tmp_path / "cluster.key", tmp_path / "heard"
    with heard.open("w") as errors:
        if (pid := os.fork()) == 0:
            os.setuid(65534)
            sys.stderr = errors
            status = main(["key", "new", "--file", str(file)])
            errors.flush()
            os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 77
    assert heard.read_text() == f"strixd-cli: Cannot write {file}: Permission denied\n  sudo strixd-cli key new\n"


@pytest.mark.parametrize("name", ["", ".", "/", "..", "folder"])
@pytest.mark.parametrize("words", [("key", "new"), ("key", "new", "--replace"), ("token", "set")])
def test_a_folder_is_no_place_for_a_secret(tmp_path: Path, words: tuple[str, ...], name: str) -> None:
    (tmp_path / "folder").mkdir()
    done = cli(*words, "--file", str(tmp_path / name) if name == "folder" else name, stdin=TOKEN)
    assert done.returncode == 2
    assert done.stderr.startswith("strixd-cli: Cannot write ")
    assert "it is a folder\n  for example: --file " in done.stderr


@pytest.mark.parametrize("redirected", ["<&-", "< /dev/null", "< bytes"])
def test_input_that_cannot_be_read_is_no_token(tmp_path: Path, redirected: str) -> None:
    (tmp_path / "bytes").write_bytes(b"hf_\xff\xfe")
    done = _shell(tmp_path, f'"$@" {redirected}', "token", "set", "--file", "token")
    assert done.returncode == 2
    assert done.stderr.startswith("strixd-cli: this is no Hugging Face token")


@pytest.mark.parametrize(
    ("redirected", "status", "said"),
    [
        (">&-", 0, ""),
        ("> /dev/full", 1, "strixd-cli: Cannot write the output: No space left on device\n"),
        ("> /dev/full 2>&1", 1, ""),
        ("| (exec <&-; sleep 1)", 141, ""),
    ],
)
def test_output_that_nobody_takes(tmp_path: Path, redirected: str, status: int, said: str) -> None:
    done = _shell(tmp_path, f'(sleep 0.3; exec "$@") {redirected}', "help")
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.startswith(said)
    assert done.stderr.count("strixd-cli: ") == bool(said)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("redirected", ["2>&-", "2> /dev/full"])
def test_a_complaint_that_nobody_takes_leaves_its_status(tmp_path: Path, redirected: str) -> None:
    assert _shell(tmp_path, f'"$@" {redirected}', "nonsense").returncode == 2


def _shell(folder: Path, script: str, *words: str) -> subprocess.CompletedProcess[str]:
    line = ["bash", "-o", "pipefail", "-c", script, "bash", *command(*words)]
    more = environment(PYTHONIOENCODING="utf-8:strict")
    return subprocess.run(line, cwd=folder, env=more, capture_output=True, text=True, timeout=60, check=False)


def _stand_in(folder: Path, name: str) -> None:
    """In place of a program: says what it was called with."""
    file = folder / name
    file.write_text('#!/bin/sh\necho "$(basename "$0") $*"\n')
    file.chmod(0o755)


@pytest.mark.parametrize(
    ("words", "became"),
    [
        ("logs", "--lines=100 --unit=strixd.service --unit=strixd-ray.service --unit=strixd-vllm.service"),
        ("logs vllm -f", "--lines=100 --unit=strixd-vllm.service --follow"),
        ("logs ray -n 5", "--lines=5 --unit=strixd-ray.service"),
        ("logs daemon --follow --lines=0", "--lines=0 --unit=strixd.service --follow"),
    ],
)
def test_logs_become_journalctl(tmp_path: Path, words: str, became: str) -> None:
    _stand_in(tmp_path, "journalctl")
    done = cli(*words.split(), PATH=f"{tmp_path}:/usr/bin:/bin")
    assert (done.returncode, done.stdout) == (0, f"journalctl {became}\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="the container belongs to root")
def test_shell_becomes_podman(tmp_path: Path) -> None:
    _stand_in(tmp_path, "podman")
    done = cli("shell", PATH=f"{tmp_path}:/usr/bin:/bin")
    assert done.stdout == "podman exec --interactive strixd-ray bash -l\n"
    done = cli("shell", PATH=str(tmp_path / "empty"))
    assert done.returncode == 69
    assert done.stderr == "strixd-cli: Cannot run podman: No such file or directory\n  dnf install podman\n"


def test_nobody_waits_longer_than_the_daemon_does() -> None:
    done = cli("wait", "ready", "--timeout", "999999999")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("strixd-cli: wait: --timeout is at most 2592000 (30 days), not 999999999\n")
