"""The container file: quoting survives systemd, and what only the host knows is filled in per host."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from strixd import collectives
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


def shell(container: Container, environment: dict[str, str]) -> dict[str, str]:
    """What a real shell with the image's own environment makes of the container's command, which is `env`."""
    full = with_host(
        replace(container, command=("env",)), PRESENT, {"NCCL_IB_HCA": "=irdma0:1", "NCCL_IB_DISABLE": "0"}
    )
    line = next(line for line in render(full).splitlines() if line.startswith("Exec="))
    given = {"PATH": os.environ["PATH"], **environment, **full.environment}
    said = subprocess.run(["bash", "-c", unquoted(line)], env=given, check=True, capture_output=True, text=True).stdout
    return {key: value for key, _, value in (each.partition("=") for each in said.splitlines())}


def test_what_the_image_says_of_the_link_is_overridden() -> None:
    said = shell(PLAIN, {"NCCL_IB_GID_INDEX": "1", "NCCL_IB_DISABLE": "1", "NCCL_IB_TC": "", "NCCL_DEBUG": "INFO"})
    assert said["NCCL_IB_HCA"] == "=irdma0:1"
    assert said["NCCL_IB_DISABLE"] == "0"
    assert said["NCCL_DEBUG"] == "INFO"
    assert not {"NCCL_IB_GID_INDEX", "NCCL_IB_TC"} & set(said)


def test_what_the_person_says_of_the_link_counts_more() -> None:
    said = shell(replace(PLAIN, environment={"NCCL_IB_HCA": "mlx5_0", "NCCL_IB_TC": "106"}), {})
    assert (said["NCCL_IB_HCA"], said["NCCL_IB_TC"], said["NCCL_IB_DISABLE"]) == ("mlx5_0", "106", "0")


def test_the_server_keeps_what_is_each_nodes_own(tmp_path: Path) -> None:
    """The file that vLLM 0.32 reads (vllm/ray/ray_env.py)."""
    folder = tmp_path / "vllm-config"
    shell(replace(PLAIN, before=collectives.keep_own()), {"VLLM_CONFIG_ROOT": str(folder)})
    kept = json.loads((folder / "ray_non_carry_over_env_vars.json").read_text())
    assert set(kept) == set(collectives.OWN)


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
