"""The daemon as a systemd service, on one real host: its file, its socket, its watchdog, its quiet."""

from __future__ import annotations

import json
import re
import time

import pytest

from tests.e2e.cluster import Cluster
from tests.lab.cluster import FILE
from tests.lab.host import Host, wait_for
from tests.lab.judge import Judge

pytestmark = pytest.mark.lab

SOCKET = "unix:/run/strixd/io.strixd"
READING = re.compile(r"^(Get|GetAll|Get[A-Z]\w*|LoadUnit|List\w+|query\w+|get\w+|AddMatch|RemoveMatch|Hello|Subscribe|"
                     r"NameHasOwner|Ping|Introspect|listConnections|GetUnitProcesses)$")  # fmt: skip


@pytest.fixture(scope="module")
def head(serving: Cluster) -> Host:
    return serving.head


def test_varlinkctl_is_a_client(head: Host) -> None:
    assert "org.varlink.service\nio.strixd" in head.sh(f"varlinkctl list-interfaces {SOCKET} | sort -r")
    methods = head.sh(f"varlinkctl list-methods {SOCKET} io.strixd")
    for name in ("Status", "Plan", "Apply", "Serve", "Stop", "Watch", "Pause", "Resume", "Wait"):
        assert f"io.strixd.{name}" in methods
    assert "method Status" in head.sh(f"varlinkctl introspect {SOCKET} io.strixd")
    status = json.loads(head.sh(f"varlinkctl call --json=short {SOCKET} io.strixd.Status '{{}}'"))
    assert status["status"]["node"] == "halo1"
    watch = ("timeout", "2", "varlinkctl", "call", "--more", "--json=short", SOCKET, "io.strixd.Watch", "{}")
    assert '"node":"halo1"' in head.attempt(*watch).stdout
    wrong = head.attempt("varlinkctl", "call", SOCKET, "io.strixd.Serve", '{"model": 3}')
    assert wrong.rc
    assert "org.varlink.service.InvalidParameter" in wrong.stderr


def test_access_goes_by_group(head: Host) -> None:
    head.sh("useradd -M outsider; useradd -M -G strixd-observe watcher; useradd -M -G strixd strixd-op")
    as_user = "setpriv --reuid={0} --regid={0} --init-groups strixd-cli {1}"
    outsider = head.attempt("bash", "-c", as_user.format("outsider", "status"))
    assert outsider.rc == 77
    assert "strixd-observe" in outsider.stderr
    head.sh(as_user.format("watcher", "status"))
    assert head.attempt("bash", "-c", as_user.format("watcher", "pause")).rc == 77
    head.sh(as_user.format("strixd-op", "pause") + " && " + as_user.format("strixd-op", "resume"))


def test_a_pass_with_every_fact_in_place_writes_nothing(head: Host, serving: Cluster) -> None:
    wait_for("ready", lambda: serving.status()["phase"] == "ready", 60, pause=1.0)
    pid = head.sh("systemctl show -P MainPID strixd").strip()
    passes = serving.status()["passes"]
    said = head.attempt("timeout", "65", "busctl", "monitor", "--json=short", timeout=90).stdout
    assert serving.status()["passes"] >= passes + 2
    ours = head.sh(f"busctl list --no-legend | awk '$2 == {pid} {{print $1}}'").split()
    calls = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    made = {call["member"] for call in calls if call["type"] == "method_call" and call.get("sender") in ours}
    assert made, "the monitor saw no call of strixd at all"
    assert {member for member in made if not READING.match(member)} == set()
    steps = head.sh("journalctl -u strixd -o json STRIXD_STEP= --since=-60s --no-pager -q | wc -l")
    assert steps.strip() == "0"


def test_typo_in_the_file_keeps_the_last_good_one_true(head: Host, serving: Cluster, judge: Judge) -> None:
    judge.expect("strixd: .*fabrik")
    good = head.read(FILE)
    head.write(FILE, good + "\n[fabrik]\nmtu = 1\n")
    refused = serving.cli("apply")
    assert refused.rc == 78
    assert re.search(rf"{FILE}:\d+: fabrik: .*fabric", refused.stderr)
    wait_for("degraded", lambda: serving.status()["phase"] == "degraded", 10, pause=0.5)
    head.run("systemctl", "restart", "strixd")
    assert serving.complete()
    wait_for("degraded", lambda: serving.status()["phase"] == "degraded", 30, pause=0.5)
    head.write(FILE, good)
    head.run("systemctl", "reload", "strixd")
    wait_for("ready", lambda: serving.status()["phase"] == "ready", 60, pause=0.5)


def test_no_usable_file_at_all_is_status_78_and_no_loop(serving: Cluster, judge: Judge) -> None:
    judge.expect("strixd.*")
    host = serving.workers[0]
    good = host.read(FILE)
    host.sh("systemctl stop strixd; mv /var/lib/strixd/last-good.toml /root/; echo '[cluster' > " + FILE)
    host.attempt("systemctl", "start", "strixd")
    shown = dict(line.split("=", 1) for line in host.sh("systemctl show strixd -p ExecMainStatus,NRestarts").split())
    assert (shown["ExecMainStatus"], shown["NRestarts"]) == ("78", "0")
    assert f"{FILE}:1" in host.sh("journalctl -u strixd -o cat -n 5 --no-pager")
    host.write(FILE, good)
    host.sh("systemctl reset-failed strixd; systemctl start strixd.socket strixd")


def test_a_hung_loop_starves_the_watchdog(serving: Cluster, judge: Judge) -> None:
    judge.expect("strixd.*", r"systemd: .*strixd")
    host = serving.workers[0]
    host.write("/run/systemd/system/strixd.service.d/test.conf", "[Service]\nWatchdogSec=10\n")
    host.sh("systemctl daemon-reload; systemctl restart strixd")
    pid = host.sh("systemctl show -P MainPID strixd").strip()
    time.sleep(15)
    assert host.sh("systemctl show -P MainPID strixd").strip() == pid, "an idle daemon feeds it all the same"
    host.run("kill", "-STOP", pid)
    new = lambda: host.sh("systemctl show -P MainPID strixd").strip() not in (pid, "0")  # noqa: E731
    wait_for("a new daemon", new, 40, 0.5)
    host.sh("rm -r /run/systemd/system/strixd.service.d; systemctl daemon-reload; systemctl restart strixd")
