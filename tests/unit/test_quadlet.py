"""The container file: quoting survives systemd, and what only the host knows is filled in per host."""

from __future__ import annotations

import shlex

import pytest

from strixd.quadlet import Container, quote, render
from strixd.resources.completed import with_host
from strixd.resources.image import Report, runnable

PLAIN = Container("strixd-x", "a test", "example.org/x@sha256:1", ("vllm", "serve", "m"))
PRESENT = Report(reference="example.org/a/b:latest", state="present", digest="sha256:abc", id="123")


def unquoted(line: str) -> str:
    """What systemd makes of Exec=: one level of quotes, then %% and $$ (systemd.service(5))."""
    words = shlex.split(line.removeprefix("Exec="))
    assert words[:2] == ["bash", "-lc"]
    assert len(words) == 3
    return words[2].replace("%%", "%").replace("$$", "$")


@pytest.mark.parametrize("word", ["plain", "two words", 'quo"te', "it's", "$HOME", "100%", "a\\b", '{"a": "$b%c\'"}'])
def test_every_argument_reaches_the_program_as_it_was_given(word: str) -> None:
    text = render(Container("strixd-x", "a test", "i", ("vllm", "serve", word)))
    line = next(line for line in text.splitlines() if line.startswith("Exec="))
    assert shlex.split(unquoted(line)) == ["exec", "vllm", "serve", word]


@pytest.mark.parametrize("value", ["plain", "two words", 'quo"te', "100%", "a\\b"])
def test_environment_values_keep_their_characters(value: str) -> None:
    assert shlex.split(quote(f"K={value}"))[0].replace("%%", "%") == f"K={value}"


def test_the_same_container_always_gives_the_same_bytes() -> None:
    one = Container("strixd-x", "a", "i", ("c",), environment={"B": "1", "A": "2"})
    other = Container("strixd-x", "a", "i", ("c",), environment={"A": "2", "B": "1"})
    assert render(one) == render(other)


def test_systemd_never_restarts_it_by_itself() -> None:
    lines = render(PLAIN).splitlines()
    assert "Restart=no" in lines
    assert "[Install]" not in lines


def test_the_kernel_takes_the_model_first_and_whole() -> None:
    lines = render(PLAIN).splitlines()
    assert {"OOMPolicy=kill", "PodmanArgs=--oom-score-adj=900", "Slice=strixd-workload.slice"} <= set(lines)


def test_what_only_the_host_knows_is_filled_in() -> None:
    full = with_host(PLAIN, PRESENT, {"GLOO_SOCKET_IFNAME": "eth7"})
    assert full.environment["GLOO_SOCKET_IFNAME"] == "eth7"
    assert full.image == "example.org/a/b@sha256:abc"


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("example.org/a/b:latest", "example.org/a/b@sha256:abc"),
        ("example.org:5000/a/b", "example.org:5000/a/b@sha256:abc"),
        ("example.org:5000/a/b:1", "example.org:5000/a/b@sha256:abc"),
        ("example.org/a/b@sha256:abc", "example.org/a/b@sha256:abc"),
        ("localhost/b:1", "sha256:123"),
    ],
)
def test_an_image_is_run_by_what_cannot_move(reference: str, name: str) -> None:
    assert runnable(Report(reference=reference, digest="sha256:abc", id="123")) == name
