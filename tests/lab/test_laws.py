"""The laws of a change, against the real NetworkManager and firewalld: it is failed, and strixd is killed, at every
writing call, and complete snapshots of the host are compared. `make test-faults` does so before and after each call's
effect, `make test` after it.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.bootfiles import lay_boot_files
from tests.lab.cluster import lay_cluster
from tests.lab.compare import difference
from tests.lab.fixtures import Pair
from tests.lab.host import Host, wait_for
from tests.lab.judge import Judge
from tests.lab.layout import FABRIC, PROJECT

pytestmark = pytest.mark.lab

PLACE = "opt/laws"
WHENS = ("before", "after") if os.environ.get("STRIXD_FAULTS") else ("after",)
KEPT = ("files.write /var/lib/strixd/history.json", "files.remove /var/lib/strixd/change.json")
"""Calls after the change itself: what fails there costs the history."""
RESET = """
nmcli -g NAME connection | grep -qx strixd-lab && nmcli connection delete strixd-lab
rm -rf /var/lib/strixd/*.json /run/motd.d/*
ours=$(ls /etc/firewalld/zones/strixd.xml /etc/firewalld/policies/strixd.xml 2>/dev/null || true)
rm -f $ours /etc/firewalld/zones/strixd.xml.old /etc/firewalld/policies/strixd.xml.old
[ -z "$ours" ] || firewall-cmd -q --reload
nmcli connection up lan
"""
LAN = f"nmcli connection add type ethernet ifname {FABRIC} con-name lan ipv4.method manual ipv4.addresses 172.16.0.9/24"
NM = "org.freedesktop.NetworkManager"
CHECKPOINTS = ("busctl", "get-property", NM, "/org/freedesktop/NetworkManager", NM, "Checkpoints")
Snapshot = dict[str, Any]


class Subject:
    """A host on which passes are made, by processes of their own."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.blank: Snapshot = {}
        self.goal: Snapshot = {}
        self.calls: list[str] = []

    def one_pass(self, *fault: str) -> dict[str, Any] | None:
        """None when it was killed."""
        done = self.host.attempt(
            "bash", "-c", f"cd /{PLACE} && exec python3 -m tests.lab.lawpass pass {' '.join(fault)}"
        )
        return json.loads(done.stdout) if done.ok else None

    def snapshot(self) -> Snapshot:
        told: Snapshot = json.loads(self.host.sh(f"cd /{PLACE} && python3 -m tests.lab.lawpass snapshot"))
        return told

    def reset(self) -> None:
        """A checkpoint whose making failed after it was made has run out by then."""
        wait_for("no checkpoint is open", lambda: self.host.run(*CHECKPOINTS).stdout.strip() == "ao 0", 15)
        lay_boot_files(self.host)
        self.host.sh(RESET)
        self.arrives(self.blank or self.snapshot())

    def arrives(self, there: Snapshot, within: float = 20.0) -> None:
        """NetworkManager may be on its way there still."""
        until = time.monotonic() + within
        while (now := self.snapshot()) != there and time.monotonic() < until:
            time.sleep(0.3)
        assert now == there, difference(there, now)

    def faults(self) -> Iterator[tuple[int, str, str]]:
        """Number of each writing call, what it is, and when the fault comes."""
        for number, call in enumerate(self.calls, 1):
            for when in WHENS:
                yield number, call, when


@pytest.fixture(scope="module")
def subject(pair: Pair) -> Subject:
    host = pair[0]
    lay_cluster(pair)
    folder = host.seat.root / PLACE
    shutil.copytree(PROJECT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    host.run(*LAN.split())
    subject = Subject(host)
    for _ in range(2):  # what firewalld once made for a zone, it keeps, empty
        subject.reset()
        subject.blank = subject.snapshot()
        told = subject.one_pass()
        assert told
        assert not told["left"], told
        subject.calls, subject.goal = told["calls"], subject.snapshot()
        subject.blank, blank = {}, subject.blank
    subject.blank = blank
    return subject


def test_idempotent_and_quiet(subject: Subject) -> None:
    again = subject.one_pass()
    assert again
    assert (again["left"], again["calls"]) == ([], [])
    assert subject.snapshot() == subject.goal


def test_reversible(subject: Subject, judge: Judge) -> None:
    judge.expect(".*")
    for number, call, when in subject.faults():
        subject.reset()
        told = subject.one_pass("fail", str(number), when)
        assert told, f"failed {when} call {number}, {call}"
        if call in KEPT:
            assert subject.one_pass()
            subject.arrives(subject.goal)
        else:
            assert "the test said no" in json.dumps(told["conditions"]), told
            subject.arrives(subject.blank)


def test_resumable(subject: Subject, judge: Judge) -> None:
    judge.expect(".*")
    for number, call, when in subject.faults():
        subject.reset()
        assert subject.one_pass("kill", str(number), when) is None, f"killed {when} call {number}, {call}"
        told = subject.one_pass()
        assert told
        assert not told["left"], f"killed {when} call {number}, {call}: {told}"
        subject.arrives(subject.goal)


def test_unconfirmed_the_link_is_back_by_itself(subject: Subject, judge: Judge) -> None:
    """strixd does not come back. What is left lies in memory only, and is never activated by itself."""
    judge.expect(".*")
    subject.reset()
    assert subject.one_pass("kill", "network.activate", "after") is None
    wait_for("the old address is back", lambda: "172.16.0.9/24" in json.dumps(subject.snapshot()["addresses"]), 15)
    now = subject.snapshot()
    for key in ("devices", "addresses", "mtus"):
        assert now[key] == subject.blank[key]
    stored = "/etc/NetworkManager/system-connections"
    ours = [name for name in now["files"] if name.startswith(stored) and name not in subject.blank["files"]]
    assert ours == []
