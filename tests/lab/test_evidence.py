"""strixd-evidence.service beside a workload that hangs: where it stands is kept, and nothing that is secret."""

from __future__ import annotations

import json
import time

import pytest

from strixd.workload import EVIDENCE, EVIDENCE_REQUEST
from tests.lab import registry
from tests.lab.fixtures import Pair
from tests.lab.host import Host, wait_for

pytestmark = pytest.mark.lab

UNIT = "strixd-vllm.service"
FOLDERS = "/var/lib/strixd/evidence"
SECRETS = ("Zebra prompt", "Zebra answer", "clusterkey4711", "environ4712", "hf_abcdefgh4713", "bearer4714")
SAYS = """
(APIServer pid=7) INFO 11-29 10:00:00 [launcher.py:47] the server is up
(APIServer pid=7) INFO 11-29 10:00:01 [request_logger.py:65] Received request a: params: X(stop='Zebra prompt')
(APIServer pid=7) INFO 11-29 10:00:02 [request_logger.py:108] Generated response a: output: 'Zebra answer'
(APIServer pid=7) WARNING 11-29 10:00:03 [hub.py:1] 401 for hf_abcdefgh4713, sent Authorization: Bearer bearer4714
(APIServer pid=7) WARNING 11-29 10:00:04 [x.py:1] got environ4712 and clusterkey4711
(EngineCore pid=9) ERROR 11-29 10:00:05 [core.py:1] the last words
"""


def start_and_freeze(host: Host) -> str:
    """A stand-in for the server in the workload's slice, with secrets about it; stopped as a hang. Its process id."""
    host.write("/etc/strixd/cluster.key", "clusterkey4711\n", 0o600)
    host.write("/run/words", SAYS)
    run = "import time; print(open('/run/words').read(), flush=True); time.sleep(600)"
    properties = ("--slice=strixd-workload.slice", "--setenv=SOME_API_KEY=environ4712", f"--unit={UNIT}")
    host.run("systemd-run", "-q", *properties, "python3", "-c", run, "--api-key", "environ4712")
    pid = host.sh(f"systemctl show -P MainPID {UNIT}").strip()
    wait_for("it has spoken", lambda: "last words" in host.sh(f"journalctl -q -o cat -u {UNIT}"))
    host.run("kill", "-STOP", pid)
    wait_for("it is stopped", lambda: host.sh(f"ps -o stat= {pid}").startswith("T"))
    return pid


def newest(host: Host) -> dict[str, str]:
    folder = f"{FOLDERS}/{host.sh(f'ls {FOLDERS} | tail -1').strip()}"
    return {name: host.read(f"{folder}/{name}") for name in host.sh(f"ls {folder}").split()}


def test_a_hanging_workload_is_described_and_its_secrets_are_not(pair: Pair) -> None:
    host = pair[0]
    pid = start_and_freeze(host)
    host.write(EVIDENCE_REQUEST, json.dumps({"unit": UNIT, "why": "no token for 20 s"}))
    since = time.time()
    host.run("systemctl", "start", EVIDENCE)

    found = newest(host)
    assert "why: no token for 20 s" in found["summary.txt"]
    process = found["processes.txt"].partition(f"\n{pid} (python3) T")[2].partition("\n\n")[0]
    assert "waiting in do_signal_stop" in process
    assert "[<0>] do_signal_stop" in process
    assert "the server is up" in found["journal-vllm.txt"]
    assert "the last words" in found["journal-vllm.txt"]
    assert "lo" in {link["ifname"] for link in json.loads(found["links.json"])}
    assert "MemAvailable" in found["memory.txt"]
    assert "no RDMA device" in found["rdma.txt"]
    assert "ray.json: failed: Cannot reach strixd" in found["summary.txt"]  # it does not run here
    everything = "\n".join(found.values())
    assert [secret for secret in SECRETS if secret in everything] == []
    assert host.sh(f"stat -c %a {FOLDERS} {FOLDERS}/*").split() == ["700", "700"]
    (told,) = [e for e in host.journal(since) if e.get("STRIXD_EVIDENCE")]
    assert told["MESSAGE"].endswith(told["STRIXD_EVIDENCE"])
    assert not host.path(EVIDENCE_REQUEST).exists()
    host.sh(f"kill -CONT {pid}; systemctl stop {UNIT}")


PY_SPY = """#!/bin/sh
echo "Process $4: python3 --api-key environ4712"
echo "Thread 1 (idle): MainThread"
echo "    wait_for_tokens (core.py:7)"
"""


def test_python_stacks_come_from_the_container(pair: Pair) -> None:
    """With a stand-in for py-spy, called as the real one is, in a container that is where Quadlet puts it."""
    host = pair[0]
    host.write("/run/py-spy", PY_SPY, 0o755)
    host.run("podman", "pull", "-q", registry.REFERENCE, timeout=240)
    run = "podman run --rm --init --name strixd-ray --cgroups=split -v /run/py-spy:/usr/local/bin/py-spy:ro"
    inside = "cp /bin/sleep /tmp/python3; exec /tmp/python3 600"  # the kernel names it by its file
    host.write("/run/start-ray", f"#!/bin/sh\nexec {run} {registry.REFERENCE} bash -c '{inside}'\n", 0o755)
    properties = (
        "--slice=strixd-workload.slice",
        "--unit=strixd-ray.service",
        "-p",
        "Delegate=yes",
        "-p",
        "SuccessExitStatus=143",
    )
    host.run("systemd-run", "-q", *properties, "/run/start-ray")
    wait_for("it runs", lambda: "python3" in host.attempt("podman", "top", "strixd-ray", "comm").stdout, 60)
    host.run("systemctl", "start", EVIDENCE)
    found = newest(host)
    assert "wait_for_tokens (core.py:7)" in found["python-stacks.txt"]
    assert "environ4712" not in found["python-stacks.txt"]
    host.run("systemctl", "stop", "strixd-ray.service")
