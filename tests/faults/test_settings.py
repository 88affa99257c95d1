"""The host's settings as one change, under the real daemon: made, taken back, killed in the middle, disturbed by
restarts of the services, kept against others, and never at the cost of the way by which somebody is logged in.

One host is worked upon. The other one is left alone in the middle of its first change, at the very beginning, so that
the minute until NetworkManager takes that back is spent once.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from strixd.messages import IDS
from tests.lab.bootfiles import ROOT, VERSIONS, entry, lay_boot_files
from tests.lab.cluster import FILE, lay_cluster
from tests.lab.compare import difference
from tests.lab.fixtures import Pair
from tests.lab.host import Host, wait_for
from tests.lab.judge import Judge
from tests.lab.layout import FABRIC, MANAGEMENT, MANAGEMENT_NETNS, PROJECT

pytestmark = pytest.mark.lab

NEVER_PULLED = {"image": {"pull": "never", "reference": "registry.lab:5000/none:none"}}  # so that no Ray starts
LAW = "/opt/laws"
STORED = "/etc/NetworkManager/system-connections/strixd-lab.nmconnection"
RECORD = "/var/lib/strixd/change.json"
ANEW = ("/var/lib/strixd", "/run/NetworkManager")
ZONE = "/etc/firewalld/zones/strixd.xml"
TRUE = {"cmdline": "reboot", "firewall": "ok", "network": "ok"}
CHANGED = ("cmdline", "firewall", "network")
MINUTE = 60  # NetworkManager's checkpoint
State = dict[str, Any]
Moment = Callable[[Host], bool]


def _there(path: str) -> Moment:
    return lambda host: host.path(path).exists()


MOMENTS: dict[str, Moment] = {
    "the record is on disk": _there(RECORD),
    "the boot entries are written": lambda host: "iommu=pt" in host.read(entry(VERSIONS[0])),
    "the zone is defined": _there(ZONE),
    "the profile is activated": lambda host: mtu(host) == 9000,
    "the profile is on disk": _there(STORED),
}


def mtu(host: Host) -> int:
    return int(host.read(f"/sys/class/net/{FABRIC}/mtu"))


def status(host: Host) -> State:
    said = host.attempt("strixd-cli", "status", "--json", timeout=15)
    found: State = json.loads(said.stdout) if said.ok else {"resources": [], "change": None, "released": []}
    return found | {"by name": {each["name"]: each for each in found["resources"]}}


def history(host: Host) -> list[State]:
    """Newest first."""
    changes: list[State] = json.loads(host.run("strixd-cli", "history", "1000", "--json").stdout)
    return changes


def conditions(host: Host) -> dict[str, str]:
    now = status(host)
    return {} if now["change"] else {n: each["condition"] for n, each in now["by name"].items() if n in TRUE}


def true(host: Host, timeout: float = 30) -> None:
    """Everything holds, and nothing is under way."""
    try:
        wait_for("all is true", lambda: conditions(host) == TRUE, timeout, pause=0.2)
    except TimeoutError as late:
        raise AssertionError(f"{late}: {status(host)['by name']}, {history(host)[0]}") from None
    assert not host.path(RECORD).exists()


def snapshot(host: Host) -> State:
    """All that strixd may touch, but what it keeps for itself; without what NetworkManager makes anew at each of its
    starts, and the number of a cable's far end, which is another one after a boot."""
    told: State = json.loads(host.sh(f"cd {LAW} && python3 -m tests.lab.lawpass snapshot"))
    told["files"] = {name: text for name, text in told["files"].items() if not name.startswith(ANEW)}
    told["profiles"] = {uuid: text for uuid, text in told["profiles"].items() if not text[0].endswith(" lo")}
    told["mtus"] = [re.sub(r"@if\d+", "", line) for line in told["mtus"]]
    return told


def arrives(host: Host, there: State, timeout: float = 20) -> None:
    """NetworkManager may be on its way there."""
    until, seen = time.monotonic() + timeout, list[str]()
    while (now := snapshot(host)) != there and time.monotonic() < until:
        seen.append(difference(there, now))
        time.sleep(0.3)
    assert now == there, "\n".join((*seen[:2], difference(there, now)))


def repaired(host: Host, changes: int) -> bool:
    return len(history(host)) >= changes and conditions(host) == TRUE


def drifts(host: Host, since: float) -> list[str]:
    return [line["MESSAGE"] for line in host.journal(since) if line.get("MESSAGE_ID") == IDS["DRIFT"]]


@contextmanager
def ready_to_run(host: Host, script: str) -> Iterator[Callable[[], None]]:
    """A script that begins within a millisecond of the call, for moments that pass quickly."""
    with host.stream("bash", "-c", f"echo; read; {script}") as shell:
        assert shell.stdin
        assert shell.stdout
        shell.stdout.readline()
        try:
            yield lambda: shell.communicate("\n", timeout=30) and None
        finally:
            shell.kill()


def disturbed(host: Host, moment: str, script: str) -> subprocess.Popen[str]:
    """An apply is begun, and the script is run at that moment of the change."""
    with ready_to_run(host, script) as go:
        applying = host.stream("strixd-cli", "apply")
        wait_for(moment, lambda: MOMENTS[moment](host), 15, pause=0.001)
        go()
    return applying


def pid(host: Host) -> str:
    return host.run("systemctl", "show", "--value", "-p", "MainPID", "strixd.service").stdout.strip()


def started(host: Host) -> None:
    host.run("systemctl", "enable", "--now", "strixd.socket", "strixd.service")


@pytest.fixture(scope="module")
def left_alone(pair: Pair) -> tuple[State, float]:
    """The second host: as it was, and when strixd was killed in the middle of its first change, for good."""
    host = pair[1]
    for each in pair:
        lay_boot_files(each)
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(PROJECT / "tests", each.path(LAW) / "tests", ignore=ignored)
    lay_cluster(pair, NEVER_PULLED)
    before = link(host)
    with ready_to_run(host, "pkill -KILL -f -- '-m strixd$'; systemctl stop strixd.socket strixd.service") as go:
        host.run("systemctl", "start", "--no-block", "strixd.socket", "strixd.service")
        wait_for("the profile is activated", lambda: mtu(host) == 9000, 20, pause=0.001)
        go()
    assert not host.path(STORED).exists()
    return before, time.time()


def link(host: Host) -> State:
    """What is in force on the fabric link."""
    told = snapshot(host)
    return {key: [line for line in told[key] if FABRIC in line] for key in ("devices", "addresses", "mtus")}


@pytest.fixture(scope="module")
def worlds(pair: Pair, left_alone: object) -> tuple[State, State]:
    """The first host before its first change, and after it."""
    host = pair[0]
    blank = snapshot(host)
    started(host)
    true(host)
    return blank, snapshot(host)


@pytest.fixture
def host(pair: Pair, worlds: object) -> Iterator[Host]:
    """Everything holds, before and after the test; and the management link is as it was, at every look."""
    host = pair[0]
    before = management(host)
    host.run("strixd-cli", "apply")
    true(host)
    yield host
    true(host)
    assert management(host) == before


def management(host: Host) -> list[str]:
    """Profile, address and zone of the management link."""
    script = f"""
    nmcli connection show {MANAGEMENT} | grep -v timestamp | grep '^[a-z]'
    ip -br address show {MANAGEMENT}; ip -br link show {MANAGEMENT}; ip route show dev {MANAGEMENT}
    firewall-cmd --get-zone-of-interface={MANAGEMENT}
    """
    return re.sub(r"@if\d+", "", host.sh(script)).splitlines()


@pytest.fixture(autouse=True)
def _no_image(judge: Judge) -> None:
    judge.expect("systemd: .*strixd-image.service", "strixd: (image|ray) is ")


def test_one_change_spans_the_three_and_undo_takes_it_back(host: Host, worlds: tuple[State, State]) -> None:
    blank, goal = worlds
    first = history(host)[-1]
    assert (first["by"], first["outcome"], tuple(first["resources"])) == ("strixd", "done", CHANGED)
    assert {step["effect"] for step in first["steps"]} == {"now", "reboot", "lasting"}
    host.run("strixd-cli", "undo")
    arrives(host, blank)
    undo, before = history(host)[:2]
    assert (undo["by"], undo["undoes"], before["outcome"]) == ("uid 0: undo", before["id"], "undone")
    for disturb in (lambda: host.run("systemctl", "restart", "strixd"), host.reboot):
        disturb()
        wait_for("it looks", lambda: len(conditions(host)) == len(TRUE), 20)
        now = status(host)
        assert set(now["released"]) == set(CHANGED)
        assert {now["by name"][name]["why"] for name in CHANGED} == {"left alone since strixd-cli undo"}
        arrives(host, blank)
    host.run("strixd-cli", "apply")
    true(host)
    arrives(host, goal)
    assert (history(host)[0]["by"], tuple(history(host)[0]["resources"])) == ("uid 0: apply", CHANGED)


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_in_the_middle_the_change_is_finished(
    host: Host, worlds: tuple[State, State], judge: Judge, moment: str
) -> None:
    judge.expect("systemd: strixd.service: Failed with result 'signal'")
    host.run("strixd-cli", "undo")
    known = {each["id"] for each in history(host)}
    with disturbed(host, moment, f"kill -KILL {pid(host)}") as applying:
        applying.communicate(timeout=60)
    true(host)
    arrives(host, worlds[1])
    (change,) = [each for each in history(host) if each["id"] not in known]
    assert (change["by"], change["outcome"], tuple(change["resources"])) == ("uid 0: apply", "done", CHANGED)


@pytest.mark.parametrize("service", ["firewalld", "NetworkManager"])
@pytest.mark.parametrize("moment", ["the boot entries are written", "the profile is activated"])
def test_a_service_is_restarted_in_the_middle(
    host: Host, worlds: tuple[State, State], judge: Judge, service: str, moment: str
) -> None:
    judge.expect("firewalld: ERROR: INVALID_ZONE: strixd")  # NetworkManager names it while it is being taken back
    host.run("strixd-cli", "undo")
    with disturbed(host, moment, f"systemctl restart {service}") as applying:
        applying.communicate(timeout=60)
    true(host)
    arrives(host, worlds[1])


def test_killed_and_never_started_again_the_link_is_as_before_within_a_minute(
    pair: Pair, left_alone: tuple[State, float]
) -> None:
    host, (before, killed) = pair[1], left_alone
    wait_for("the old link", lambda: link(host) == before, max(killed + MINUTE + 10 - time.time(), 1), pause=1)
    assert not host.path(STORED).exists()
    started(host)
    true(host)


@contextmanager
def ssh_session(host: Host) -> Iterator[Callable[[], None]]:
    """From the management network, as far as sshd's greeting. What is yielded goes on with it."""
    code = "import socket, sys; s = socket.create_connection((sys.argv[1], 22), 5); print(s.recv(99), flush=True); "
    code += "input(); s.sendall(b'SSH-2.0-lab\\r\\n'); print(len(s.recv(4096)), flush=True)"
    argv = ["nsenter", f"--net=/run/netns/{MANAGEMENT_NETNS}", "python3", "-c", code, host.seat.management_address]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout
        assert "SSH-2.0" in client.stdout.readline()

        def goes_on() -> None:
            assert int(client.communicate("\n", timeout=10)[0]) > 100, "sshd offers its keys"

        try:
            yield goes_on
        finally:
            client.kill()


@contextmanager
def addresses(host: Host, pair: Pair, *each: str) -> Iterator[None]:
    """Other fabric addresses in the file of this host."""
    good = host.read(FILE)
    text = good
    for old, new in zip(pair, each, strict=True):
        text = text.replace(f"{old.seat.fabric_address}/29", new)
    host.write(FILE, text)
    try:
        yield
    finally:
        host.write(FILE, good)


def test_a_fabric_network_that_would_cut_an_ssh_session_off_is_refused(
    host: Host, pair: Pair, worlds: tuple[State, State]
) -> None:
    """The fabric's network would be a part of the management network, in which the administrator sits."""
    with ssh_session(host) as goes_on, addresses(host, pair, "10.77.0.5/29", "10.77.0.6/29"):
        host.attempt("strixd-cli", "apply")
        view = status(host)["by name"]["network"]
        assert view["condition"] == "blocked"
        assert f"10.77.0.5/29 of the file overlaps 10.77.0.11/24 of {MANAGEMENT}" in view["why"]
        arrives(host, worlds[1])
        goes_on()
    host.run("strixd-cli", "apply")


DRIFTS = {
    "network": {
        "profile": "nmcli connection modify strixd-lab 802-3-ethernet.mtu 1400",
        "other profile": 'nmcli -w 0 connection up "Wired connection 1"',
        "mtu": f"ip link set {FABRIC} mtu 1300",
    },
    "cmdline": {"entry": f"sed -i 's/^options .*/options {ROOT}/' {entry(VERSIONS[0])}"},
    "firewall": {
        "policy": "firewall-cmd -q --policy=strixd-fence --set-priority=-5 --permanent; firewall-cmd -q --reload"
    },
}
FOUND = {
    "profile": "MTU 1400",
    "other profile": "Wired connection 1",
    "mtu": "MTU 1300",
    "entry": "3 of 4",
    "policy": "",
}


@pytest.mark.parametrize(("resource", "what"), [(name, what) for name, each in DRIFTS.items() for what in each])
def test_what_others_change_is_repaired_and_told(
    host: Host, worlds: tuple[State, State], resource: str, what: str
) -> None:
    known, since = len(history(host)), time.time()
    host.sh(DRIFTS[resource][what])
    begun = time.monotonic()
    wait_for("repaired", partial(repaired, host, known + 1), 10)
    assert time.monotonic() - begun < 3
    arrives(host, worlds[1])
    assert any(FOUND[what] in line and line.startswith(resource) for line in drifts(host, since)), drifts(host, since)
    assert {each["by"] for each in history(host)[:-known]} == {"drift"}


def test_paused_nothing_is_repaired(host: Host) -> None:
    host.run("strixd-cli", "pause")
    host.run("ip", "link", "set", FABRIC, "mtu", "1300")
    wait_for("seen", lambda: conditions(host)["network"] == "waiting", 5)
    time.sleep(1.5)
    now = status(host)
    assert (mtu(host), now["phase"], now["by name"]["network"]["why"]) == (1300, "paused", "paused")
    host.run("strixd-cli", "resume")
    true(host)
    assert mtu(host) == 9000


def test_the_third_time_within_a_minute_it_holds_and_names_the_other(host: Host) -> None:
    known = len(history(host))
    for times in (1, 2):
        host.sh(DRIFTS["network"]["profile"])
        wait_for("repaired", partial(repaired, host, known + times), 10)
    host.sh(DRIFTS["network"]["profile"])
    wait_for("held", lambda: conditions(host)["network"] == "held", 10)
    why = status(host)["by name"]["network"]["why"]
    assert "a third time within a minute" in why
    assert 'of uid 0 had NetworkManager do connection-update "strixd-lab"' in why
    time.sleep(1)
    assert "MTU 1400" in "".join(status(host)["by name"]["network"]["facts"])
    host.run("strixd-cli", "apply")


def test_a_second_strixd_refuses(host: Host) -> None:
    second = host.attempt("python3", "-sP", "-m", "strixd", "--socket", "/tmp/second", timeout=10)
    assert second.rc == 2
    assert f"another strixd keeps this host: process {pid(host)} (strixd.service)" in second.stderr
    assert second.stderr.count("ERROR") == 2, "the reason and the hint"


def test_dbus_is_restarted(host: Host, worlds: tuple[State, State], judge: Judge) -> None:
    judge.expect(".*")
    host.run("systemctl", "restart", "dbus")
    host.attempt("systemctl", "start", "firewalld")
    true(host, 60)
