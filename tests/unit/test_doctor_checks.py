"""Each check with a host on which it is all that is wrong, and a healthy one on which nothing is."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import get_type_hints

import pytest
from doctor_cases import CASES
from doctor_faults import asleep, missing, with_desktop
from doctor_host import DRM, PORT, Fault, Laid

from strixd.doctor.checks import CHECKS, FIRST_INSTALL
from strixd.doctor.finding import LAYERS, exit_status
from strixd.doctor.read.table import READERS

ELSEWHERE = {"lossless", "spare"}
"""Of a cluster with a switch, and of one with a second cable."""


@pytest.fixture
def laid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Laid:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return Laid(tmp_path / "root", tmp_path / "bin")


def test_a_healthy_host_has_no_fault(laid: Laid) -> None:
    findings = laid.findings()
    assert [(each.name, each.read) for each in findings if each.verdict != "ok"] == []
    assert {each.name for each in findings} == {check.name for check in CHECKS} - ELSEWHERE
    assert exit_status(findings) == 0


def test_a_healthy_worker_has_no_fault_and_answers_for_no_model(laid: Laid) -> None:
    laid.lay("proc/sys/kernel/hostname", "halo2\n")
    laid.linked(addresses=("192.168.100.2/30",))
    laid.edit(f"{PORT}/gids/1", "6401", "6402")
    assert laid.around.told
    laid.around.told["role"] = "worker"
    laid.around.trouble = "nobody listens"
    findings = laid.findings()
    assert [(each.name, each.read) for each in findings if each.verdict != "ok"] == []
    assert {check.name for check in CHECKS} - {each.name for each in findings} == {"model", "image-digest", *ELSEWHERE}


@pytest.mark.parametrize("case", CASES)
def test_it_is_all_that_is_wrong(laid: Laid, case: str) -> None:
    name, verdict, fault, words = CASES[case]
    fault(laid)
    findings = laid.findings()
    first = [each for each in findings if each.verdict != "ok" and not each.follows]
    assert [(each.name, each.verdict) for each in first] == [(name, verdict)], [each.read for each in first]
    assert words in first[0].read
    assert first[0].mend or verdict == "unknown"
    assert all(each.follows == name for each in findings if each.verdict != "ok" and each.name != name)


def without_display_manager(laid: Laid) -> None:
    with_desktop(laid)
    laid.remove("etc/systemd/system/display-manager.service")


def with_console(laid: Laid) -> None:
    """What the administrator set comes before what the system brought."""
    with_desktop(laid)
    laid.link("etc/systemd/system/default.target", "/usr/lib/systemd/system/multi-user.target")


def only_suspend_masked(laid: Laid) -> None:
    laid.remove("etc/systemd/system/sleep.target")
    laid.link("etc/systemd/system/suspend.target", "/dev/null")
    laid.lay("etc/systemd/logind.conf", "[Login]\nIdleAction=lock\nHandleLidSwitch=suspend\n")


def own_choice(laid: Laid) -> None:
    """A drop-in of the administrator's hides its namesake of the system's, and comes after the file."""
    asleep(laid)
    laid.lay("usr/lib/systemd/logind.conf.d/50-idle.conf", "[Login]\nIdleAction=hibernate\n")
    laid.lay("etc/systemd/logind.conf.d/50-idle.conf", "[Login]\nIdleAction=ignore\n")


@pytest.mark.parametrize("fault", [without_display_manager, with_console, only_suspend_masked, own_choice])
def test_what_sends_no_host_to_sleep(laid: Laid, fault: Fault) -> None:
    fault(laid)
    assert {each.verdict for each in laid.findings()} == {"ok"}


def test_what_does_not_run_has_no_effect_yet(laid: Laid) -> None:
    laid.edit("proc/cmdline", "ttm.pages_limit=32505856 ", "")
    laid.lay(f"{DRM}/mem_info_gtt_total", str(62 << 30))
    findings = {each.name: each for each in laid.findings()}
    assert (findings["effective"].verdict, findings["effective"].follows) == ("warning", "arguments")


def test_every_check_has_such_a_case() -> None:
    assert {name for name, _, _, _ in CASES.values()} == {check.name for check in CHECKS}


def test_an_image_that_a_member_has_not_told_of_is_not_known(laid: Laid) -> None:
    missing(laid)
    (digest,) = [each for each in laid.findings() if each.name == "image-digest"]
    assert (digest.verdict, digest.follows) == ("unknown", "members")


def test_a_busy_model_answers_as_strixd_has_seen(laid: Laid) -> None:
    laid.around.trouble = "no completion within 6 s"
    (model,) = [each for each in laid.findings() if each.name == "model"]
    assert model.verdict == "ok"


@pytest.mark.parametrize("program", ["rpm", "journalctl", "systemctl", "podman", "timedatectl"])
@pytest.mark.parametrize("how", ["fails", "is not there"])
def test_what_a_program_does_not_tell_is_unknown_and_never_ok(laid: Laid, program: str, how: str) -> None:
    before = {each.name: each.verdict for each in laid.findings()}
    if how == "fails":
        laid.fails(program, "no luck")
    else:
        (laid.bin / program).unlink()
    changed = [each for each in laid.findings() if each.verdict != before[each.name]]
    assert changed
    assert {each.verdict for each in changed} == {"unknown"}
    assert all(program in each.read for each in changed if program != "rpm" or how != "fails")


@pytest.mark.parametrize("check", FIRST_INSTALL, ids=lambda check: check.name)
def test_a_judge_gets_what_the_readers_bring(check: object) -> None:
    """Facts are found by name, so their types are compared here."""
    judge = next(each.judge for each in FIRST_INSTALL if each is check)
    for name, kind in get_type_hints(judge).items():
        if name != "return":
            assert get_type_hints(READERS[name].read)["return"] == kind, name


def test_the_readers_get_what_other_readers_bring() -> None:
    for reader in READERS.values():
        for name in set(inspect.signature(reader.read).parameters) - {"scene"}:
            assert get_type_hints(reader.read)[name] == get_type_hints(READERS[name].read)["return"], reader.read


def test_checks_have_names_of_their_own_and_places_for_all_layers() -> None:
    names = [check.name for check in FIRST_INSTALL]
    assert len(set(names)) == len(names)
    assert {check.layer for check in FIRST_INSTALL} <= set(LAYERS)
    assert max(reader.within for reader in READERS.values()) < 9
