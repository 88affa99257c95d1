"""What making the host's settings true costs, on one lab host: `python -m tests.bench.settings [ROUNDS]`.

1. From a blank host, in turn with the guide's commands typed one after the other: at most half their time. strixd's is
   that of one pass inside a process that runs already, as the daemon's does: from the look that finds what differs to
   the change done, verified and recorded on disk. The guide's is that of one script.
2. A pass over all settings when they hold: at most 100 ms (the median), and no writing call.
3. From drift to repaired, under the running daemon: at most 1 s each time. Looked at every few milliseconds.

The boot files are Fedora's, with the stand-in for grubby. Ends with status 1 when a limit is missed.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from tests.lab.bootfiles import lay_boot_files
from tests.lab.cluster import PREFIX_LENGTH, lay_cluster
from tests.lab.host import Host, wait_for
from tests.lab.install import install
from tests.lab.lab import running_lab
from tests.lab.layout import FABRIC, PROJECT

ROUNDS, DRIFTS, QUIET_PASSES = 9, 7, 20
MOST_RATIO, MOST_QUIET, MOST_DRIFT = 0.5, 0.1, 1.0  # seconds
THE_GUIDES = "trusted"  # its zone, and the default for two nodes on their own cable
PLACE = "opt/bench"
ARGUMENTS = "iommu=pt pci=realloc pcie_aspm=off ttm.pages_limit=32505856"
GUIDE = (
    "nmcli con add type ethernet ifname {fabric} con-name guide ipv4.method manual ipv4.addresses {address} mtu 9000",
    "nmcli con up guide",
    "firewall-cmd --permanent --zone=trusted --add-interface={fabric}",
    "firewall-cmd --reload",
    'grubby --update-kernel=ALL --args="{arguments}"',
)
BLANK = """
for name in strixd-lab guide; do
    ! nmcli -g NAME connection | grep -qx $name || nmcli connection delete $name
done
rm -rf /var/lib/strixd/*.json /run/motd.d/* /etc/firewalld/zones/* /etc/firewalld/policies/*
firewall-cmd -q --reload
"""
CLOCKED = """
began=${EPOCHREALTIME/./}
%s
echo $((${EPOCHREALTIME/./} - began))
"""
REPAIRED = "%s; for _ in {1..500}; do ! %s || break; sleep 0.005; done"
HISTORY = "/var/lib/strixd/history.json"
KINDS: dict[str, dict[str, str]] = {"strixd": {"kind": "ethernet"}, "trusted": {"kind": "auto"}}  # the last one stays
NEVER_PULLED = {"image": {"pull": "never", "reference": "registry.lab:5000/none:none"}}
FOREIGN = {
    "firewalld: definitions and one reload": "firewall.define",
    "NetworkManager: activation": "network.activate",
    "grubby and boot files, beside firewalld": "boot.change",
}
"""What others are waited for."""
RESTING = "getting IP configuration"
"""What a card without a profile does: its automatic one waits for DHCP, in vain."""
DRIFTED = {
    "MTU": (f"ip link set {FABRIC} mtu 1400", f"[ $(</sys/class/net/{FABRIC}/mtu) = 9000 ]"),
    "zone": (
        f"firewall-cmd -q --zone=public --change-interface={FABRIC}",
        "[ $(busctl --json=short call org.fedoraproject.FirewallD1 /org/fedoraproject/FirewallD1"
        f" org.fedoraproject.FirewallD1.zone getZoneOfInterface s {FABRIC} | cut -d'\"' -f8) = trusted ]",
    ),
}


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with running_lab() as lab:
        hosts = lab.new_hosts()
        install(hosts)
        return measure(hosts, rounds)


def measure(hosts: Sequence[Host], rounds: int) -> int:
    head, leave_out = hosts[0], shutil.ignore_patterns("__pycache__")
    shutil.copytree(PROJECT / "tests", head.seat.root / PLACE / "tests", ignore=leave_out, dirs_exist_ok=True)
    return 0 if all([*_compared(head, hosts, rounds), _quiet(head), *_drifts(head)]) else 1


# From a blank host


def _compared(head: Host, hosts: Sequence[Host], rounds: int) -> Iterator[bool]:
    """The first round only warms what is warm in every host that has run for a while."""
    guide: list[float] = []
    passes: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    for _ in range(rounds + 1):
        guide.append(_by_hand(head))
        for kind, fabric in KINDS.items():
            lay_cluster(hosts, {"fabric": fabric, **NEVER_PULLED})
            passes[kind].append(_by_strixd(head))
    words = f"the guide's commands by hand, {rounds} times in turn"
    print(f"{words:50}{_told(guide[1:])}")
    for kind, told in passes.items():
        yield _compare(kind, told[1:], statistics.median(guide[1:]))


def _compare(kind: str, passes: list[dict[str, Any]], guide: float) -> bool:
    taken = [each["seconds"] for each in passes]
    ratio = statistics.median(taken) / guide
    words = f"strixd from a blank host, zone {kind}"
    told, good = f"{words:50}{_told(taken)}, {ratio:.2f} of that", True
    if kind == THE_GUIDES:
        good = _judged(f"{told} (at most {MOST_RATIO})", ratio <= MOST_RATIO)
    else:
        print(f"{told} (with a zone of our own, which the guide has not, and must wait for)")
    for what, call in FOREIGN.items():
        inside = [seconds for each in passes for name, seconds in each["calls"] if name == call]
        print(f"    of which {what:41}{_told(inside)}")
    return good


def _by_hand(host: Host) -> float:
    """Seconds."""
    _blank(host)
    address = f"{host.seat.fabric_address}/{PREFIX_LENGTH}"
    lines = [line.format(fabric=FABRIC, address=address, arguments=ARGUMENTS) for line in GUIDE]
    return int(host.sh(CLOCKED % "\n".join(f"{line} >/dev/null" for line in lines))) / 1e6


def _by_strixd(host: Host) -> dict[str, Any]:
    _blank(host)
    (told,) = _passes(host, 1)
    if told["left"] or not told["calls"]:
        raise RuntimeError(f"not made true: {told}")
    return told


def _blank(host: Host) -> None:
    lay_boot_files(host)
    host.sh(BLANK)
    wait_for("the link is as it was", lambda: RESTING in host.sh(f"nmcli -g GENERAL.STATE device show {FABRIC}"), 20)
    host.sh("sync; sleep 1")  # nobody shall wait for what the reset left to be written


def _passes(host: Host, count: int) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = json.loads(host.sh(f"cd /{PLACE} && python3 -m tests.bench.settings_pass {count}"))
    return told


# When it holds


def _quiet(head: Host) -> bool:
    told = _passes(head, QUIET_PASSES)
    taken, writes = [each["seconds"] for each in told], sum(len(each["calls"]) for each in told)
    words = f"a pass when all of it holds, {QUIET_PASSES} times"
    told_all = f"{words:50}{_told(taken)}, {writes} writing calls"
    return _judged(
        f"{told_all} (at most {MOST_QUIET * 1e3:.0f} ms and none)",
        statistics.median(taken) <= MOST_QUIET and not writes,
    )


# Drift


def _drifts(head: Host) -> Iterator[bool]:
    """From before the command that makes it, whose own time counts too. After each a person says `apply`, because the
    third time within a minute strixd would not repair."""
    head.run("systemctl", "start", "strixd.socket", "strixd.service")
    for what, (drift, holds) in DRIFTED.items():
        taken = [_repaired(head, drift, holds) for _ in range(DRIFTS)]
        words = f"{what} drifted to repaired, {DRIFTS} times"
        yield _judged(f"{words:50}{_told(taken)} (at most {MOST_DRIFT * 1e3:.0f} ms)", max(taken) <= MOST_DRIFT)


def _repaired(host: Host, drift: str, holds: str) -> float:
    """Seconds."""
    host.run("strixd-cli", "apply")
    host.sh("sleep 2")
    before = _changes(host)
    taken = int(host.sh(CLOCKED % REPAIRED % (drift, holds))) / 1e6
    wait_for("the repair is on record", lambda: _changes(host) == before + 1, 10)
    return taken


def _changes(host: Host) -> int:
    return len(json.loads(host.read(HISTORY)))


def _told(taken: Sequence[float]) -> str:
    low, middle, high = (each * 1e3 for each in (min(taken), statistics.median(taken), max(taken)))
    return f"{middle:5.0f} ms [{low:.0f}-{high:.0f}]"


def _judged(words: str, good: bool) -> bool:
    print(f"{words}: {'held' if good else 'MISSED'}", flush=True)
    return good


if __name__ == "__main__":
    sys.exit(main())
