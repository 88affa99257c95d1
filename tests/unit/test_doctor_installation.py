"""doctor --first-install: a new node on which all is well, and each thing that an installation may have left amiss."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_process import ROOT, cli
from doctor_host import ARGUMENTS, Fault, Laid

from strixd import firstboot
from strixd.doctor.byhand import TRIALS
from strixd.doctor.checks import CHECKS, FIRST_INSTALL
from strixd.doctor.finding import Finding, Verdict
from strixd.doctor.read.installation import PACKAGES, UNITS
from strixd.doctor.screen import by_hand
from tests.cluster_file import cluster_file

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINh0ZXN0dGVzdHRlc3R0ZXN0dGVzdHRlc3R0ZXN0dGVz"
SECRET = "5e" * 32
FILES = {
    "etc/strixd/cluster.toml": cluster_file(
        f'[install]\nssh-keys = ["{KEY} me@laptop"]\ntime-zone = "Europe/Berlin"\n'
    ),
    "etc/strixd/cluster.key": f"{SECRET}\n",
    "etc/os-release": 'NAME="Fedora Linux"\nID=fedora\nVERSION_ID=43\n',
    "root/.ssh/authorized_keys": f"# from the kickstart\n{KEY}\n",
    "root/anaconda-ks.cfg": "rootpw --lock\n",
    "var/log/anaconda/packaging.log": "installed strixd\n",
    "var/lib/strixd/bench.json": json.dumps([{"at": 1.0, "key": "link", "values": {"halo2 tcp latency, µs": 70.0}}]),
}
GRUBBY = f"""\
index=0
kernel="/boot/vmlinuz-6.18.4-200.fc43.x86_64"
args="ro pci=noaer {ARGUMENTS.replace("pci=realloc", "pci=noaer,realloc")} rhgb quiet"
root="UUID=1"
id="f43"
index=1
kernel="/boot/vmlinuz-0-rescue-4711"
args="ro rhgb quiet"
"""
PROGRAMS = {
    "semodule": "abrt\nstrixd\nzebra\n",
    "restorecon": "",
    "rpm.verify": "",
    "systemctl.enabled": "enabled\nenabled\n",
    "grubby": GRUBBY,
}


@pytest.fixture
def laid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Laid:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    made = Laid(tmp_path / "root", tmp_path / "bin")
    for name, text in FILES.items():
        made.lay(name, text)
    for name, text in PROGRAMS.items():
        made.says(name, text)
    made.link("etc/localtime", "../usr/share/zoneinfo/Europe/Berlin")
    return made


def zone(laid: Laid, target: str) -> None:
    laid.remove("etc/localtime")
    laid.link("etc/localtime", target)


def waiting(laid: Laid, *files: str) -> None:
    for name in ("x", *files):
        laid.lay(f"var/lib/strixd/install/{name}", "")
    laid.lay(str(firstboot.MOTD).lstrip("/"), "strixd: halo1 is installed; ray is blocked: no key\n")


WOULD = "Would relabel /etc/strixd/cluster.toml from system_u:object_r:tmp_t:s0 to system_u:object_r:etc_t:s0\n"
CASES: dict[str, tuple[str, Verdict, Fault, str]] = {
    "not Fedora": ("system", "warning", lambda h: h.edit("etc/os-release", "fedora", "debian"), "debian 43"),
    "too old": ("system", "warning", lambda h: h.edit("etc/os-release", "=43", "=42"), "fedora 42"),
    "a file changed": (
        "package-files",
        "warning",
        lambda h: h.says("rpm.verify", "S.5....T.    /usr/lib/systemd/system/strixd.service\n"),
        "S.5....T.    /usr/lib/systemd/system/strixd.service",
    ),
    "without its packages": (
        "package-files",
        "warning",
        lambda h: h.says("rpm.verify", "package strixd-selinux is not installed\n"),
        "strixd-selinux is not installed",
    ),
    "not enabled": (
        "enabled",
        "fault",
        lambda h: h.says("systemctl.enabled", "enabled\ndisabled\n"),
        "strixd.service is disabled",
    ),
    "permissive": ("selinux", "warning", lambda h: h.lay("sys/fs/selinux/enforce", "0"), "it only notes"),
    "no SELinux": ("selinux", "warning", lambda h: h.remove("sys/fs/selinux/enforce"), "runs without SELinux"),
    "no module": ("selinux-module", "warning", lambda h: h.says("semodule", "abrt\n"), "no module strixd among 1"),
    "labels": ("labels", "fault", lambda h: h.says("restorecon", WOULD * 7), "etc_t:s0; and 2 more"),
    "denied": (
        "selinux-denials",
        "warning",
        lambda h: h.says("journalctl.audit", "avc:  denied  { map } scontext=system_u:system_r:container_t:s0\n"),
        "{ map }",
    ),
    "grubby knows less": (
        "boot-tool",
        "warning",
        lambda h: h.says("grubby", "noaer ", "noaer,realloc "),
        "vmlinuz-6.18.4-200.fc43.x86_64 lacks pci=realloc",
    ),
    "grubby knows nothing": ("boot-tool", "fault", lambda h: h.says("grubby", ""), "no kernel"),
    "waiting": ("firstboot", "warning", waiting, "ray is blocked: no key"),
    "image not loaded": ("firstboot", "warning", lambda h: waiting(h, "image.tar"), "is not loaded yet"),
    "secret in a log": (
        "secrets-left",
        "fault",
        lambda h: h.lay("var/log/anaconda/sub/syslog", f"x{SECRET}y\n"),
        "/var/log/anaconda/sub/syslog",
    ),
    "secret in the kickstart": (
        "secrets-left",
        "fault",
        lambda h: h.lay("root/anaconda-ks.cfg", SECRET),
        "/root/anaconda-ks.cfg",
    ),
    "an SSH key turned off": (
        "ssh-keys",
        "fault",
        lambda h: h.lay("root/.ssh/authorized_keys", f"# {KEY}"),
        "0 of the 1",
    ),
    "no SSH key": ("ssh-keys", "fault", lambda h: h.remove("root/.ssh/authorized_keys"), "0 of the 1 keys"),
    "another zone": ("time-zone", "warning", lambda h: zone(h, "/usr/share/zoneinfo/Asia/Tokyo"), "Asia/Tokyo"),
    "no zone": ("time-zone", "unknown", lambda h: zone(h, "/opt/zone"), "names no time zone"),
    "not measured": ("measured", "warning", lambda h: h.remove("var/lib/strixd/bench.json"), "not been measured"),
}


def looked(laid: Laid) -> dict[str, Finding]:
    return {each.name: each for each in laid.findings(FIRST_INSTALL)}


def test_a_new_node_on_which_all_is_well_shows_what_was_read(laid: Laid) -> None:
    findings = looked(laid)
    assert {name: each.read for name, each in findings.items() if each.verdict != "ok"} == {}
    elsewhere = {"lossless", "spare"}  # with a switch, and with a second cable
    assert set(findings) == {check.name for check in FIRST_INSTALL} - elsewhere
    assert findings["secrets-left"].read == "no key or token in 2 files that the installer left"
    assert findings["boot-tool"].read == "grubby tells them of vmlinuz-6.18.4-200.fc43.x86_64"


@pytest.mark.parametrize("case", CASES)
def test_it_is_all_that_is_amiss(laid: Laid, case: str) -> None:
    name, verdict, fault, words = CASES[case]
    fault(laid)
    amiss = [each for each in looked(laid).values() if each.verdict != "ok" and not each.follows]
    assert [(each.name, each.verdict) for each in amiss] == [(name, verdict)], [each.read for each in amiss]
    assert words in amiss[0].read
    assert amiss[0].mend or verdict == "unknown"
    assert SECRET not in str(amiss)


def test_before_the_first_start_there_is_one_thing_to_do(laid: Laid) -> None:
    laid.around.told = None
    laid.says("systemctl.enabled", "disabled\ndisabled\n")
    laid.says("systemctl", "inactive\n")
    laid.edit("boot/loader/entries/f43.conf", "iommu=pt ", "")
    laid.says("grubby", "", "iommu=pt ")
    amiss = {each.name: each.follows for each in looked(laid).values() if each.verdict != "ok"}
    assert (amiss["enabled"], amiss["boot-tool"]) == ("daemon", "arguments")
    assert {name for name, follows in amiss.items() if not follows} == {"daemon", "arguments", "container"}


def test_every_check_of_an_installation_has_such_a_case() -> None:
    new = set(FIRST_INSTALL) - set(CHECKS)
    assert {name for name, _, _, _ in CASES.values()} == {check.name for check in new}


def test_what_the_file_does_not_ask_for_is_not_looked_for(laid: Laid) -> None:
    """A node that was installed by hand, with the packages."""
    laid.lay("etc/strixd/cluster.toml", cluster_file())
    laid.remove("root/.ssh/authorized_keys")
    findings = looked(laid)
    assert not {"ssh-keys", "time-zone"} & set(findings)
    assert {each.verdict for each in findings.values()} == {"ok"}


@pytest.mark.parametrize("program", ["semodule", "restorecon", "rpm", "systemctl", "grubby"])
def test_what_a_tool_does_not_tell_is_unknown_and_never_ok(laid: Laid, program: str) -> None:
    before = looked(laid)
    laid.fails(program, "no luck")
    changed = [each for name, each in looked(laid).items() if each.verdict != before[name].verdict]
    assert {each.verdict for each in changed} == {"unknown"}
    assert any("no luck" in each.read for each in changed)


@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("etc/strixd/cluster.key", "secrets-left"),
        ("root/.ssh/authorized_keys", "ssh-keys"),
        ("etc/os-release", "system"),
    ],
)
def test_what_cannot_be_read_may_hold_anything(laid: Laid, name: str, check: str) -> None:
    """A folder in its place, since root may read every file."""
    laid.remove(name)
    (laid.root / name).mkdir()
    finding = looked(laid)[check]
    assert finding.verdict == "unknown", finding


def test_the_packages_and_units_that_are_asked_about_are_ours() -> None:
    spec = (ROOT / "packaging/strixd.spec").read_text()
    assert set(PACKAGES) <= {"strixd", "python3-strixd", *(f"strixd-{name}" for name in ("media", "selinux"))}
    assert all(unit in spec and (ROOT / "units" / unit).exists() for unit in UNITS)


# As a program


def test_trials_are_numbered_and_their_commands_stay_whole() -> None:
    lines = by_hand(50)
    assert [line.split(".")[0].strip() for line in lines if line[:7].strip(" .").isdigit()] == [
        str(number + 1) for number in range(len(TRIALS))
    ]
    assert all(f"          {trial.command}" in lines for trial in TRIALS)


def test_the_cli_asks_for_it() -> None:
    """Whatever machine this is, doctor alone shows nothing of what is well, and knows no trials."""
    both = [cli("doctor", *more, PYTHONPATH=str(ROOT)).stdout for more in ((), ("--first-install",))]
    assert ["to be tried by hand" in said for said in both] == [False, True]
    assert ["\n  ok  " in said for said in both] == [False, True]
    told = json.loads(cli("doctor", "--first-install", "--json", PYTHONPATH=str(ROOT)).stdout)
    assert {"system", "settings"} <= {each["name"] for each in told["findings"]}
