"""strixd-image.service, asked as the daemon asks it, with a real podman and a real registry."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass

import pytest

from strixd.resources import image
from tests.lab import registry
from tests.lab.fixtures import Pair
from tests.lab.host import Host
from tests.lab.judge import Judge

pytestmark = pytest.mark.lab


@dataclass(frozen=True)
class Ask:
    reference: str = registry.REFERENCE
    digest: str = ""
    pull: str = "missing"
    update: bool = False


def fetch(host: Host, ask: Ask) -> image.Report:
    host.write(image.REQUEST, json.dumps(asdict(ask)))
    started = host.attempt("systemctl", "start", image.UNIT, timeout=240)
    report = image.report(host.read(image.REPORT))
    assert started.ok == (report.state == "present"), report
    return report


def recorded(host: Host) -> str:
    return str(image.loads(host.read(image.RECORD))["digest"])


def test_first_pull_moved_tag_update_and_a_registry_that_is_off(pair: Pair, judge: Judge) -> None:
    judge.expect("systemd: (strixd-image.service|Failed to start strixd-image.service)", "podman: .*")
    host = pair[0]
    first, second = registry.digest("first"), registry.digest("second")

    pulled = fetch(host, Ask())
    assert (pulled.state, pulled.digest, recorded(host)) == ("present", first, first)
    assert pulled.boot == host.boot_id()
    assert host.attempt("podman", "run", "--rm", image.runnable(pulled), "/bin/true").ok

    registry.move_tag("second")
    assert fetch(host, Ask(digest=first)).digest == first
    assert recorded(host) == first

    assert fetch(host, Ask(digest=first, update=True)).digest == second
    assert recorded(host) == second
    assert host.attempt("podman", "image", "exists", f"{registry.REFERENCE.rpartition(':')[0]}@{first}").ok

    registry.stop()
    kept = fetch(host, Ask(digest=second, update=True))
    assert (kept.state, kept.digest, recorded(host)) == ("present", second, second)
    assert "cannot be reached" in kept.error
    gone = fetch(host, Ask(digest="sha256:" + "0" * 64))
    assert gone.state == "failed"
    assert "cannot be reached" in gone.error
    assert gone.hint
    registry.start()

    gone = fetch(host, Ask(digest="sha256:" + "0" * 64))
    assert "has no such image, or no longer" in gone.error
    registry.move_tag("first")


def test_a_pull_that_is_stopped_is_begun_again(pair: Pair, judge: Judge) -> None:
    judge.expect("systemd: strixd-image.service", "podman: .*")
    host = pair[1]
    host.write(image.REQUEST, json.dumps(asdict(Ask())))
    host.run("systemctl", "start", "--no-block", image.UNIT)
    for _ in range(200):
        if host.attempt("grep", "-qs", "pulling", image.REPORT).ok:
            break
        time.sleep(0.05)
    host.run("systemctl", "stop", image.UNIT)
    assert fetch(host, Ask()).state == "present"


def test_an_absent_podman_is_named(pair: Pair, judge: Judge) -> None:
    judge.expect("systemd: ")
    host = pair[0]
    host.run("systemctl", "stop", "podman.socket", "podman.service")
    host.run("systemctl", "mask", "--runtime", "podman.socket")
    told = fetch(host, Ask(digest=recorded(host)))
    host.run("systemctl", "unmask", "--runtime", "podman.socket")
    assert (told.state, "podman does not answer" in told.error) == ("failed", True)
