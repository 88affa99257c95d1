"""Editing a kernel command line: every case of the data file, twice, and the corners between."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strixd import kernelargs as args
from strixd.config import load
from strixd.errors import ConfigError
from strixd.kernelpolicy import Policy
from strixd.resources import cmdline
from tests.cluster_file import cluster_file

CASES = tomllib.loads((Path(__file__).parents[1] / "cases/cmdline/cases.toml").read_text())["case"]


def _desired(case: dict[str, Any], tmp_path: Path) -> cmdline.Desired:
    lines = [f"{key} = {_toml(value)}" for key, value in case["policy"].items()]
    file = tmp_path / "cluster.toml"
    file.write_text(cluster_file("\n".join(("[kernel]", *lines))))
    kernel = load(file).kernel
    return cmdline.desired_arguments(
        Policy(
            iommu=kernel.iommu,
            gtt_pages=kernel.gtt_pages,
            gttsize_mib=kernel.gtt_mib if kernel.gttsize else 0,
            pci_realloc=kernel.pci_realloc,
            pcie_aspm=kernel.pcie_aspm,
            arguments=kernel.arguments,
        )
    )


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


@pytest.mark.parametrize("case", [case for case in CASES if "want" in case], ids=lambda case: case["name"])
def test_the_right_answer(case: dict[str, Any], tmp_path: Path) -> None:
    desired, recorded = _desired(case, tmp_path), tuple(case["recorded"])
    once = cmdline.wanted(case["options"], desired, recorded)
    assert once == case["want"]
    assert cmdline.wanted(once, desired, recorded) == once


@pytest.mark.parametrize("case", [case for case in CASES if "refuse" in case], ids=lambda case: case["name"])
def test_what_is_refused_says_why(case: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refusal:
        _desired(case, tmp_path)
    assert all(word in str(refusal.value) for word in case["refuse"])


@pytest.mark.parametrize(
    ("before", "add", "after"),
    [
        ("quiet iommu=pt iommu=off", "iommu=pt", "quiet iommu=pt"),
        ("iommu=off quiet iommu=pt", "iommu=pt", "iommu=pt quiet"),
        ("quiet pci=realloc=off,noaer", "pci=realloc", "quiet pci=realloc,noaer"),
        ("quiet pci=realloc=off,realloc", "pci=realloc", "quiet pci=realloc"),
        ("ttm.pages-limit=7  quiet", "ttm.pages_limit=7", "ttm.pages-limit=7  quiet"),
        ("console=tty0 quiet", "console=ttyS0", "console=tty0 quiet console=ttyS0"),
        ("", "iommu=pt", "iommu=pt"),
        ("-- single", "iommu=pt", "iommu=pt -- single"),
        ('"foo bar=1 2" quiet', "iommu=pt", '"foo bar=1 2" quiet iommu=pt'),
    ],
)
def test_setting_one_argument(before: str, add: str, after: str) -> None:
    assert args.edited(before, add=(add,), drop=()) == after


@pytest.mark.parametrize(
    ("before", "drop", "after"),
    [
        ("quiet amd_iommu=off amd_iommu=fullflush", "amd_iommu=off", "quiet amd_iommu=fullflush"),
        ("quiet amdgpu.gttsize=1 amdgpu.gttsize", "amdgpu.gttsize", "quiet"),
        ("pci=noaer,realloc quiet", "pci:realloc", "pci=noaer quiet"),
        ("pci=realloc quiet", "pci:realloc", "quiet"),
        ("console=tty0 console=ttyS0", "console:ttyS0", "console=tty0"),
        ("quiet  -- iommu=pt", "iommu", "quiet  -- iommu=pt"),
    ],
)
def test_taking_one_out(before: str, drop: str, after: str) -> None:
    assert args.edited(before, add=(), drop=(drop,)) == after


WORD = st.sampled_from(
    (
        *("quiet", "ro", "iommu=pt", "iommu=off", "pci=noaer", "pci=realloc=off,nommconf", "pci=realloc"),
        *("console=tty0", "ttm.pages-limit=1", "ttm.pages_limit=2", 'dyndbg="file a/* +p"', "amd_iommu=off"),
        *("--", "amdgpu.gttsize=5"),
    )
)


@given(st.lists(WORD, max_size=8).map(" ".join), st.sampled_from(["pt", "off", "leave"]), st.booleans())
def test_a_second_application_changes_no_byte(text: str, iommu: Any, realloc: bool) -> None:
    desired = cmdline.desired_arguments(Policy(iommu=iommu, gtt_pages=7, pci_realloc=realloc))
    once = cmdline.wanted(text, desired, ("pci:realloc", "iommu"))
    assert cmdline.wanted(once, desired, ("pci:realloc", "iommu")) == once


@given(st.lists(WORD, max_size=8).map(" ".join))
def test_what_is_not_touched_keeps_its_order(text: str) -> None:
    touched = {"iommu", "amd_iommu", "pci", "ttm.pages_limit", "amdgpu.gttsize", "pcie_aspm"}
    desired = cmdline.desired_arguments(Policy(gtt_pages=7))
    after = cmdline.wanted(text, desired, ())
    before_words, after_words = (args.parts(each) for each in (text, after))
    assert before_words[1] == after_words[1]
    left, right = ([word for word in each[0] if args.key(word) not in touched] for each in (before_words, after_words))
    assert left == right


@pytest.mark.parametrize(
    ("text", "before", "after", "then"),
    [
        ("ro quiet", "ro quiet", "ro quiet iommu=pt", "ro quiet iommu=pt"),
        ("ro quiet iommu=pt", "ro quiet", "ro quiet iommu=pt", "ro quiet iommu=pt"),
        ("ro debug", "ro quiet", "ro quiet iommu=pt", "ro debug iommu=pt"),
        ("ro debug iommu=pt x", "ro quiet iommu=pt", "ro quiet", "ro debug x"),
        ("ro debug iommu=pt -- s", "ro iommu=pt", "ro amd_iommu=off", "ro debug amd_iommu=off -- s"),
        ("debug iommu=pt ro", "ro iommu=pt", "ro iommu=soft", "debug iommu=soft ro"),
        ("debug iommu=off ro", "ro iommu=pt", "ro iommu=soft", "debug iommu=off ro"),  # somebody's own value
        ("x pci=noaer,realloc,nommconf", "pci=noaer,realloc", "pci=noaer", "x pci=noaer,nommconf"),
        ("x pci=nommconf", "pci=noaer", "pci=noaer,realloc", "x pci=nommconf,realloc"),
        ("x console=tty0 console=ttyS0", "console=ttyS0", "", "x console=tty0"),
        ("x console=tty0", "", "console=ttyS0", "x console=tty0 console=ttyS0"),
    ],
)
def test_a_change_is_carried_over_to_a_line_that_is_another_by_now(
    text: str, before: str, after: str, then: str
) -> None:
    assert args.carried(text, before, after) == then


@given(st.lists(WORD, max_size=8, unique_by=args.key).map(" ".join), st.booleans())
def test_there_and_back_on_a_line_with_one_more_word(text: str, realloc: bool) -> None:
    """As when a kernel is installed between a change and its undoing."""
    desired = cmdline.desired_arguments(Policy(gtt_pages=7, pci_realloc=realloc))
    after = cmdline.wanted(text, desired, ())
    back = args.carried(f"newer {after}", after, text)
    assert members(back) == members(f"newer {text}")


def members(text: str) -> list[str]:
    """What a line says, whatever its order: each member of a list by itself."""
    kernel, tail = args.parts(text)
    words = [f"{args.key(w)}={m}" for w in kernel for m in args.value(w).split(",")]
    return sorted(set(words)) + tail
