"""The unit files, judged by systemd itself: nothing it does not know, and no wider open than they are now."""

from __future__ import annotations

import json
import re

import pytest

from strixd.messages import IDS
from tests.lab.fixtures import Pair
from tests.lab.judge import Judge
from tests.lab.layout import PROJECT

pytestmark = pytest.mark.lab

UNITS = (
    *("strixd.service", "strixd.socket", "strixd-image.service", "strixd-evidence.service", "strixd-workload.slice"),
    *("strixd-firstboot.service", "strixd-load.service"),
)
EXPOSURE = {
    "strixd.service": 28,
    "strixd-image.service": 15,
    "strixd-evidence.service": 30,
    "strixd-firstboot.service": 15,
}
"""At most, in tenths, as `systemd-analyze security` counts: NetworkManager has 78 and firewalld 73."""


def test_systemd_has_no_complaint(pair: Pair) -> None:
    done = pair[0].attempt("systemd-analyze", "verify", *UNITS)
    assert (done.rc, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("unit", EXPOSURE)
def test_they_are_not_opened_unnoticed(pair: Pair, unit: str) -> None:
    command = ("systemd-analyze", "security", "--no-pager", f"--threshold={EXPOSURE[unit]}", unit)
    done = pair[0].attempt(*command)
    assert done.ok, done.stdout


def test_every_exception_is_explained_in_the_unit(pair: Pair) -> None:
    told = pair[0].sh("systemd-analyze security --offline=true --no-pager --json=short strixd.service")
    open_ = [row["name"] for row in json.loads(told) if row["set"] is False and row.get("exposure")]
    text = "\n".join(line for line in (PROJECT / "units/strixd.service").read_text().splitlines() if line[:1] == "#")
    # "SystemCallFilter=~@privileged", "RestrictAddressFamilies=~AF_(INET|INET6)", "User=/DynamicUser="
    words = [re.split(r"=~|[=/]", name)[1 if "=~" in name else 0] for name in open_]
    assert [word for word in words if not any(part in text for part in re.findall(r"\w{4,}", word))] == []


def test_groups_and_folders_are_made(pair: Pair) -> None:
    assert pair[0].sh("getent group strixd strixd-observe | wc -l").strip() == "2"
    folders = pair[0].sh(
        "stat -c '%a %n' /run/strixd /run/strixd/probe /etc/strixd /var/lib/strixd /var/lib/strixd/tmp"
    )
    assert [line.split()[0] for line in folders.splitlines()] == ["755", "700", "755", "755", "700"]


def test_the_journal_can_explain_every_message(pair: Pair) -> None:
    known = pair[0].sh("journalctl --list-catalog --no-pager")
    assert all(number in known for number in IDS.values())


def test_clients_of_a_daemon_that_cannot_start_are_refused_in_the_end_and_served_when_it_can(
    pair: Pair, judge: Judge
) -> None:
    """Without a trigger limit a single waiting client starts it eight times a second, for ever."""
    host = pair[0]
    judge.expect("systemd: (strixd.service|strixd.socket|Failed to start strixd.service)")
    drop_in = "/run/systemd/system/strixd.service.d/test.conf"
    host.sh(f"mkdir -p {drop_in.rpartition('/')[0]}; printf '%b' '{_instead('exit 78')}' >{drop_in}")
    host.sh("systemctl daemon-reload; systemctl start strixd.socket")
    waited = host.sh(f"python3 -c '{CALL}'")
    assert waited.strip() == "refused"
    host.sh(f"printf '%b' '{_instead('exec sleep 60')}' >{drop_in}; systemctl daemon-reload; systemctl start strixd")
    assert host.sh("systemctl is-active strixd.service strixd.socket").split() == ["active", "active"]
    host.sh(f"systemctl stop strixd.service strixd.socket; rm {drop_in}; systemctl daemon-reload")


CALL = """
import socket
call = socket.socket(socket.AF_UNIX)
call.connect("/run/strixd/io.strixd")
call.settimeout(8)
try:
    call.recv(1)
except ConnectionResetError:
    print("refused")
"""


def _instead(script: str) -> str:
    lines = ("[Service]", "Type=exec", "WatchdogSec=0", "ExecStart=", f'ExecStart=/bin/sh -c "{script}"')
    return "\\n".join((*lines, ""))
