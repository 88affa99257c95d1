"""Which finding is the cause of which: on a host with several faults at once, and the table itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from doctor_host import DRM, NET, Laid

from strixd import config
from strixd.config.loading import LARGEST_FILE
from strixd.doctor.causes import EXPLAINS, marked
from strixd.doctor.checks import FIRST_INSTALL
from strixd.doctor.finding import Check, Finding, Judged, Unread, Verdict, exit_status, found
from strixd.errors import ConfigError


@pytest.fixture
def laid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Laid:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return Laid(tmp_path / "root", tmp_path / "bin")


def test_three_independent_faults_are_all_found_and_each_has_what_follows_from_it(laid: Laid) -> None:
    """A BIOS that keeps half of the memory; no cable, and so no peer and no token; a full disk."""
    laid.lay(f"{DRM}/mem_info_vram_total", str(64 << 30))
    laid.linked(carrier=False)
    laid.lay(f"{NET}/carrier", "0\n")
    laid.condition("network", "blocked", "no carrier on enp194s0np0")
    laid.condition("fabric", "blocked", "no carrier on enp194s0np0")
    laid.condition("ray", "waiting", "halo2 has not joined")
    laid.condition("vllm", "waiting", "Ray is not ok")
    laid.around.door, laid.around.ahead, laid.around.trouble = "silent", None, "connection refused"
    laid.around.room = 1 << 20
    assert laid.around.told
    laid.around.told["members"][1]["joined"] = False
    findings = {each.name: each for each in laid.findings() if each.verdict != "ok"}
    assert {each.name for each in findings.values() if each.verdict == "fault" and not each.follows} == {
        "vram",
        "carrier",
        "disk",
    }
    followers = {"rdma", "fabric", "crossing", "network", "ports", "clock", "ray", "members", "image-digest", "model"}
    assert {name: each.follows for name, each in findings.items() if each.follows} == dict.fromkeys(
        followers, "carrier"
    )
    assert [each.name for each in findings.values() if each.cause] == ["carrier"]


def test_a_stopped_container_explains_what_cannot_be_seen_in_it(laid: Laid) -> None:
    laid.says("systemctl", "inactive\n")
    findings = {each.name: each for each in laid.findings()}
    inside = ("memlock", "devices", "shared-memory", "rccl")
    assert [(findings[name].verdict, findings[name].follows) for name in inside] == [("unknown", "container")] * 4
    assert findings["container"].cause


@pytest.mark.parametrize(
    ("text", "mend"), [(None, "strixd-cli init"), ("[cluster", "sudoedit /etc/strixd/cluster.toml")]
)
def test_a_file_that_is_not_there_is_written_by_init_and_a_wrong_one_is_edited(
    laid: Laid, text: str | None, mend: str
) -> None:
    laid.remove("etc/strixd/cluster.toml")
    if text is not None:
        laid.lay("etc/strixd/cluster.toml", text)
    settings = next(each for each in laid.findings() if each.name == "settings")
    assert (settings.verdict, settings.cause) == ("fault", True)
    assert settings.mend.startswith(mend)


@pytest.mark.parametrize(
    "raw", [b"# f\xfcr zwei\n", b"\xff", b"#" * LARGEST_FILE], ids=["Latin-1", "no text", "too large"]
)
def test_of_the_bytes_of_a_file_it_says_what_strixd_says(laid: Laid, raw: bytes) -> None:
    path = laid.root / "etc/strixd/cluster.toml"
    path.write_bytes(path.read_bytes() + raw)
    with pytest.raises(ConfigError) as caught:
        config.read(path, config.EXPECTED_AT)
    settings = next(each for each in laid.findings() if each.name == "settings")
    assert (settings.verdict, settings.read) == ("fault", str(caught.value))


def one(name: str, verdict: Verdict) -> Finding:
    return Finding(name, "kernel", verdict, "", "", "", "")


def follows(*findings: Finding) -> dict[str, str]:
    return {each.name: each.follows for each in marked(findings) if each.follows}


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        ((one("carrier", "fault"), one("model", "fault")), {"model": "carrier"}),
        # in two steps, by way of what is wrong itself
        (
            (one("vram", "ok"), one("leftovers", "fault"), one("gpu", "fault"), one("model", "fault")),
            {"gpu": "leftovers", "model": "leftovers"},
        ),
        # and not by way of what is well, or of what is not known
        ((one("leftovers", "fault"), one("gpu", "ok"), one("model", "fault")), {}),
        ((one("daemon", "fault"), one("firewall", "unknown"), one("ports", "warning")), {"firewall": "daemon"}),
        # a warning explains no fault, but a later warning
        ((one("conflicts", "warning"), one("effective", "fault")), {}),
        ((one("mtu", "warning"), one("crossing", "warning")), {"crossing": "mtu"}),
        # what is not known explains nothing
        ((one("carrier", "unknown"), one("model", "fault")), {}),
        # the earlier layer is the cause of the later one, never the other way round
        ((one("ray", "fault"), one("carrier", "fault")), {}),
    ],
)
def test_what_follows_from_what(findings: tuple[Finding, ...], expected: dict[str, str]) -> None:
    assert follows(*findings) == expected


def test_the_table_speaks_of_checks_that_there_are() -> None:
    names = {check.name for check in FIRST_INSTALL}
    assert set(EXPLAINS) <= names
    assert {name for row in EXPLAINS.values() for name in row} <= names
    assert all(name not in row for name, row in EXPLAINS.items())


def judge(one: str, two: str) -> Judged:
    return Judged("ok", one + two)


CHECK = Check("c", "kernel", judge, "wanted", "why")


def test_a_judge_never_sees_what_could_not_be_read() -> None:
    (finding,) = found((CHECK,), {"one": "a", "two": Unread("Permission denied", "sudo"), "three": "c"})
    assert (finding.verdict, finding.read, finding.mend) == ("unknown", "Permission denied", "sudo")
    (finding,) = found((CHECK,), {"one": "a", "two": "b"})
    assert (finding.verdict, finding.read, finding.wanted) == ("ok", "ab", "wanted")


@pytest.mark.parametrize(
    ("verdicts", "status"),
    [
        ((), 0),
        (("ok",), 0),
        (("ok", "warning"), 1),
        (("unknown",), 1),
        (("warning", "fault", "ok"), 2),
    ],
)
def test_exit_status(verdicts: tuple[Verdict, ...], status: int) -> None:
    assert exit_status(tuple(one("x", verdict) for verdict in verdicts)) == status


def test_not_knowing_what_does_not_matter_is_no_warning() -> None:
    calm = Finding("x", "kernel", "unknown", "", "", "", "", doubt="ok")
    assert exit_status((calm,)) == 0
