"""doctor and report on real hosts that serve: no fault, in time, and also when nobody but they is left to ask."""

from __future__ import annotations

import json
import tarfile
from io import BytesIO
from typing import Any

import pytest

from tests.e2e.cluster import Cluster
from tests.lab.cluster import KEY
from tests.lab.host import Host

pytestmark = pytest.mark.lab

LONGEST = 10.0
"""Seconds that doctor itself reports."""
ON_ANY_MACHINE = ("settings", "carrier", "address", "mtu", "crossing", "ports", "container", "shared-memory")


def look(cluster: Cluster, host: Host) -> dict[str, Any]:
    """The examination, with its findings by name."""
    told: dict[str, Any] = json.loads(cluster.cli("doctor", "--json", host=host).stdout)
    assert told["seconds"] < LONGEST
    told["findings"] = {each["name"]: each for each in told["findings"]}
    return told


def faults(told: dict[str, Any]) -> dict[str, str]:
    return {name: each["read"] for name, each in told["findings"].items() if each["verdict"] == "fault"}


def test_a_healthy_host_has_no_fault(serving: Cluster) -> None:
    for host in serving.hosts:
        told = look(serving, host)
        assert faults(told) == {}, host.name
        assert {name: told["findings"][name]["read"] for name in ON_ANY_MACHINE if _known(told, name) != "ok"} == {}
        assert told["exitStatus"] < 2
    assert _known(look(serving, serving.head), "model") == "ok"


def _known(told: dict[str, Any], name: str) -> str:
    return str(told["findings"][name]["verdict"])


def test_a_screen_names_what_is_wrong_and_counts_the_rest(serving: Cluster) -> None:
    said = serving.cli("doctor").stdout
    assert "\n0 faults, " in f"\n{said}"
    assert " ok; looked for " in said


def test_without_the_daemon_it_still_looks(serving: Cluster) -> None:
    host = serving.head
    host.run("systemctl", "stop", "strixd.service", "strixd.socket")
    told = look(serving, host)
    assert set(faults(told)) == {"daemon"}
    assert "systemctl enable --now strixd.socket strixd.service" in told["findings"]["daemon"]["mend"]
    assert told["findings"]["daemon"]["cause"]
    assert [_known(told, name) for name in ("container", "crossing", "ports", "model")] == ["ok"] * 4
    assert told["findings"]["network"]["follows"] == "daemon"
    fixed = serving.cli("doctor", "--fix")
    assert (fixed.rc, "nothing is fixed: Cannot reach strixd" in fixed.stderr) == (2, True)
    host.run("systemctl", "start", "strixd.socket", "strixd.service")


def test_fix_asks_strixd_for_an_apply_and_looks_again(serving: Cluster) -> None:
    """No grubby here: an apply ends with that, and what came of it is looked at all the same."""
    fixed = serving.cli("doctor", "--fix")
    assert "applied: " in fixed.stdout or "Cannot apply all of it" in fixed.stderr
    assert "\n0 faults, " in fixed.stdout


def test_a_report_of_a_serving_host_gives_nothing_away(serving: Cluster) -> None:
    host, file = serving.head, "/root/report.tar.gz"
    said = serving.cli("report", file).check().stdout
    assert said.index("this will be in the archive:") < said.index("written: ")
    packed = host.path(file).read_bytes()
    assert host.sh(f"stat -c %a {file}").strip() == "600"
    with tarfile.open(fileobj=BytesIO(packed), mode="r:gz") as archive:
        members = {each.name: content.read() for each in archive if (content := archive.extractfile(each))}
    everything = b"\n".join(members.values())
    mac = host.sh("cat /sys/class/net/enp1s0/address").strip()
    secrets = (host.read(KEY).strip(), "hello world", "192.168.100.", host.name, serving.workers[0].name, mac)
    assert [secret for secret in secrets if secret.encode() in everything] == []
    assert b"strixd" in members["strixd-report/journal-strixd.txt"]
    again = serving.cli("report", file)
    assert (again.rc, "is there already" in again.stderr) == (2, True)
    host.run("rm", file)
