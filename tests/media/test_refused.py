"""What cannot be made is said in one sentence, and nothing is left behind, whatever happens (fixture `out` looks)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from strixd import __version__
from strixd.media import main
from strixd.media.rpms import WANTED
from tests.media import pieces
from tests.media.lab import ROOT, TOOLS, Parts, cluster, media, stand_in
from tests.media.pieces import NAME, run

STRIXDS = tuple((name, __version__) for name in WANTED)


def other_rpms(folder: Path, *packages: tuple[str, str], more: str = "") -> Path:
    """`more`: a line of each spec."""
    for name, version in packages:
        pieces.rpm(folder / "other", name, version, more)
    return folder / "other"


def of_release(folder: Path, told: str) -> Path:
    (folder / "discinfo").write_text(told)
    return pieces.fedora(folder, real={".discinfo": folder / "discinfo"})


BAD: dict[str, tuple[Callable[[Parts, Path], list[str | Path]], str]] = {
    "no-iso": (lambda parts, _: ["--iso", parts.cluster], "is no ISO image"),
    "no-iso-file": (lambda _, tmp: ["--iso", tmp / "away.iso"], "No such file"),
    "other-iso": (
        lambda _, tmp: ["--iso", pieces.fedora(tmp, without="boot/grub2/grub.cfg")],
        "no boot/grub2/grub.cfg",
    ),
    "no-esp": (lambda _, tmp: ["--iso", pieces.fedora(tmp, without="esp")], "no EFI system partition"),
    "other-menu": (lambda _, tmp: ["--iso", pieces.fedora(tmp, menu="boot\n")], "nothing in its EFI/BOOT/grub.cfg"),
    "older-fedora": (lambda _, tmp: ["--iso", of_release(tmp, "0\n42\n")], "it is of release 42"),
    "newer-fedora": (lambda _, tmp: ["--iso", of_release(tmp, "0\n45\n")], "it is of release 45"),
    "no-release": (lambda _, tmp: ["--iso", of_release(tmp, "0")], "it is of release unknown"),
    "no-discinfo": (lambda _, tmp: ["--iso", pieces.fedora(tmp, without=".discinfo")], "no .discinfo in it"),
    "other-python": (
        lambda _, tmp: ["--rpms", other_rpms(tmp, *STRIXDS, more="Requires: python(abi) = 3.15")],
        "has python3-strixd for Python 3.15, and Fedora 43 and 44 have 3.14",
    ),
    "no-rpms": (lambda _, tmp: ["--rpms", tmp / "away"], "no such folder"),
    "not-strixd": (lambda _, tmp: ["--rpms", other_rpms(tmp, ("other", "1"))], "strixd is not among them"),
    "half-of-it": (
        lambda _, tmp: ["--rpms", other_rpms(tmp, ("strixd", __version__), ("strixd-selinux", __version__))],
        "python3-strixd is not among them",
    ),
    "other-version": (
        lambda _, tmp: ["--rpms", other_rpms(tmp, ("strixd", "9.9"))],
        f"strixd 9.9, and this is strixd-media {__version__}",
    ),
    "no-model": (lambda _, tmp: ["--model", tmp], "is no model: it has no config.json"),
    "no-archive": (lambda parts, _: ["--image", parts.cluster], "is no OCI archive"),
    "other-image": (
        lambda _, tmp: ["--image", pieces.archive(tmp / "a.tar", "localhost/x:1")],
        "holds localhost/x:1",
    ),
    "unnamed-image": (lambda _, tmp: ["--image", pieces.archive(tmp / "a.tar", "")], "an image without a name"),
    "no-node": (lambda *_: ["--node", "halo9"], 'there is no node "halo9"'),
    "no-folder": (lambda _, tmp: ["--out", tmp / "away" / "medium.iso"], "No such file or directory"),
    "no-suffix": (lambda _, tmp: ["--out", tmp / "medium"], "the name says what is made"),
    "no-fat-name": (
        lambda parts, tmp: ["--model", parts.model, "--out", tmp / "medium.img"],
        "FAT holds no such names",
    ),
}


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The program in this process, which is quicker; it minds SIGTERM."""
    monkeypatch.setenv("PATH", TOOLS["PATH"])
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_made_leaves_nothing(
    parts: Parts, out: Path, elsewhere: Path, case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words, complaint = BAD[case]
    line = ["build", "--cluster", parts.cluster, "--out", out, "--rpms", parts.rpms, *words(parts, elsewhere)]
    assert main([str(word) for word in line]) in (1, 2)
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("strixd-media: ")
    assert complaint in said[0]
    assert len(said) <= 2
    assert not out.exists()


@pytest.mark.parametrize(("versions", "mend"), [(["0.0.1"], "make rpm"), (["0.0.1", __version__], "take the others")])
def test_what_to_do_about_other_versions(
    parts: Parts, out: Path, elsewhere: Path, versions: list[str], mend: str
) -> None:
    """Where the right one is there too, building it again would change nothing."""
    done = parts.build(out, "--rpms", other_rpms(elsewhere, *(("strixd", version) for version in versions)))
    assert (done.returncode, mend in done.stderr.splitlines()[-1]) == (2, True)


def test_without_packages_there_must_be_a_repository(parts: Parts, out: Path, elsewhere: Path, quick: str) -> None:
    done = parts.build(out)
    assert (done.returncode, "nowhere to install strixd from" in done.stderr) == (2, True)
    file = elsewhere / "cluster.toml"
    file.write_text(cluster(more='repository = "https://mirror.example/strixd/"'))
    assert media("build", "--cluster", file, "--out", out, PATH=quick).returncode == 0


def test_an_archive_cannot_be_what_a_digest_asks_for(parts: Parts, out: Path, elsewhere: Path) -> None:
    reference = f"{pieces.REFERENCE}@sha256:{'0' * 64}"
    file = elsewhere / "cluster.toml"
    file.write_text(cluster(more=f'[image]\nreference = "{reference}"'))
    archive = pieces.archive(elsewhere / "image.tar", reference)
    done = media("build", "--cluster", file, "--out", out, "--rpms", parts.rpms, "--image", archive)
    assert (done.returncode, "an archive has another digest" in done.stderr) == (2, True)
    assert f'reference = "{pieces.REFERENCE}" in [image]' in done.stderr


def test_a_file_with_mistakes_is_named_as_everywhere(parts: Parts, out: Path, elsewhere: Path) -> None:
    file = elsewhere / "cluster.toml"
    file.write_text(cluster().replace("[fabric]", "[fabrik]"))
    done = media("build", "--cluster", file, "--out", out, "--rpms", parts.rpms)
    assert (done.returncode, done.stderr) == (78, f"{file}:3: fabrik: unknown key; did you mean fabric?\n")


def test_a_medium_that_is_there_stays(parts: Parts, out: Path) -> None:
    out.write_text("mine")
    done = parts.build(out, "--rpms", parts.rpms)
    assert (done.returncode, done.stderr.splitlines()[-2]) == (2, f"strixd-media: {out} is there already")
    assert out.read_text() == "mine"


@pytest.mark.parametrize("missing", ["xorriso", "ksvalidator", "createrepo_c"])
def test_a_program_that_is_not_there(parts: Parts, out: Path, missing: str, elsewhere: Path) -> None:
    for name in {"xorriso", "ksvalidator", "createrepo_c", "apt-get"} - {missing}:
        stand_in(elsewhere, name, "exit 1")
    done = parts.build(out, "--rpms", parts.rpms, PATH=str(elsewhere))
    assert done.returncode == 69
    assert done.stderr.startswith(f"strixd-media: Cannot find {missing} on this machine\n  ")


FAILURES = {
    "xorriso": ("echo 'libburn : FAILURE : No space left on device' >&2; exit 5", "No space left on device"),
    "ksvalidator": ("echo 'Unknown command: autostep'; exit 1", "use this kickstart for F43: Unknown command"),
    "createrepo_c": ("exit 1", "Cannot make a repository of "),
}


@pytest.mark.parametrize("program", FAILURES)
def test_a_program_that_fails_is_quoted(parts: Parts, out: Path, elsewhere: Path, program: str) -> None:
    body, words = FAILURES[program]
    stand_in(elsewhere, "ksvalidator", "true")  # quicker than the real one
    stand_in(elsewhere, program, body)
    done = parts.build(out, "--rpms", parts.rpms, PATH=f"{elsewhere}:{TOOLS['PATH']}")
    assert done.returncode == 1
    assert words in done.stderr


def test_a_medium_that_was_written_wrongly_gets_no_name(parts: Parts, out: Path, elsewhere: Path) -> None:
    """A disk that lies: one byte of a file is another when it is read again."""
    real = run("bash", "-c", "command -v xorriso").strip()
    change = 'for word; do [[ $word == *medium.iso ]] && sed -i "s/weightsweights/weightsweighty/" "$word"; done; true'
    stand_in(elsewhere, "ksvalidator", "true")
    stand_in(elsewhere, "xorriso", f'{real} "$@" || exit; {change}')
    done = parts.build(out, "--rpms", parts.rpms, "--model", parts.model, PATH=f"{elsewhere}:{TOOLS['PATH']}")
    assert done.returncode == 1
    assert f"Cannot trust the medium that was just written: {NAME} reads " in done.stderr


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(parts: Parts, out: Path, elsewhere: Path, how: signal.Signals) -> None:
    stand_in(elsewhere, "xorriso", f"touch {elsewhere}/began; exec sleep 60")
    stand_in(elsewhere, "ksvalidator", "true")  # quicker than the real one
    words = ("build", "--cluster", parts.cluster, "--rpms", parts.rpms, "--out", out)
    command = [sys.executable, "-m", "strixd.media", *map(str, words)]
    environment = os.environ | TOOLS | {"PATH": f"{elsewhere}:{TOOLS['PATH']}"}
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE)
    while not (elsewhere / "began").exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(how)
    assert process.wait(20) == 130
    assert b"Traceback" not in process.stderr.read()  # type: ignore[union-attr]


@pytest.mark.skipif(os.geteuid() != 0, reason="a small disk is mounted")
def test_no_space(parts: Parts, tmp_path: Path, elsewhere: Path) -> None:
    stand_in(elsewhere, "ksvalidator", "true")
    script = f'mount -t tmpfs -o size=1m none {tmp_path} && "$@"; status=$?; ls -A {tmp_path}; exit $status'
    words = ("build", "--cluster", parts.cluster, "--rpms", parts.rpms, "--out", tmp_path / "medium.iso")
    line = ["unshare", "-m", "bash", "-c", script, "bash", sys.executable, "-m", "strixd.media", *map(str, words)]
    environment = os.environ | TOOLS | {"PATH": f"{elsewhere}:{TOOLS['PATH']}"}
    done = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "strixd-media: Cannot write the medium: it takes " in done.stderr
