"""Runs inside the virtual machine: stand-ins of a model take memory in the slice that strixd has limited, once without
end, and once modestly while another service has most of what there is and the kernel is told to choose (SysRq f). Tells
who is alive, and what systemd, the kernel and strixd say of it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from strixd.ports import Unit
from strixd.quadlet import OOM_SCORE, SLICE, Container, render
from strixd.workload import ended

GROUP = Path("/sys/fs/cgroup/strixd.slice", SLICE)
ORDINARY = ("strixd.service", "dbus.service", "NetworkManager.service", "systemd-logind.service")
CLUSTER = Path("/etc/strixd/cluster.toml")
PATIENCE = 150.0  # seconds; under emulation a first pass takes 20 to 40


def output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stdout


def until(true: Callable[[], Any], pause: float = 0.5) -> Any:
    """The last sight, true or not: the test judges it."""
    deadline = time.monotonic() + PATIENCE
    while not (seen := true()) and time.monotonic() < deadline:
        time.sleep(pause)
    return seen


def memory() -> dict[str, Any]:
    """What status says of the resource, once it is true."""
    said = output("strixd-cli", "status", "--json")
    found = [each for each in json.loads(said)["resources"] if each["name"] == "memory"] if said.strip() else []
    return found[0] if found and found[0]["condition"] == "ok" else {}


def show(unit: str, *names: str) -> dict[str, str]:
    lines = output("systemctl", "show", unit, *(f"--property={name}" for name in names)).splitlines()
    return dict(line.split("=", 1) for line in lines)


def pids() -> dict[str, str]:
    return {unit: show(unit, "MainPID")["MainPID"] for unit in ORDINARY}


def start(unit: str, mib: int, *lines: str, score: int) -> None:
    """The last lines of [Service] are given: for a model's stand-in those that the product writes."""
    words = f"/usr/bin/python3 /usr/local/libexec/hold.py {mib} {score} /run/{unit}.holds"
    text = "\n".join(("[Service]", *lines, f"ExecStart={words}", ""))
    Path(f"/run/systemd/system/{unit}.service").write_text(text)
    output("systemctl", "daemon-reload")
    output("systemctl", "start", unit)


def model(unit: str, mib: int) -> None:
    written = render(Container("strixd-x", "", "i", ("x",))).partition("[Service]\n")[2].partition("\n[")[0]
    start(unit, mib, "Delegate=yes", *written.splitlines(), score=OOM_SCORE)  # Quadlet delegates


def holds(unit: str) -> bool:
    return Path(f"/run/{unit}.holds").exists()


def how_ended(unit: str) -> dict[str, Any]:
    until(lambda: not (GROUP / f"{unit}.service").exists())  # a file costs less than a program, under emulation
    until(lambda: show(unit, "ActiveState")["ActiveState"] in ("failed", "inactive"))
    seen: dict[str, Any] = show(unit, "ActiveState", "Result", "ExecMainStatus", "InvocationID")
    state, status = seen["ActiveState"], int(seen["ExecMainStatus"])
    words = ended(Unit(unit, active=state, result=seen["Result"], status=status, invocation=seen["InvocationID"]))
    return seen | {"words": words, "held_all": holds(unit)}


def limit() -> int:
    return int((GROUP / "memory.max").read_text())


def without_end() -> dict[str, Any]:
    model("glutton", 1400)
    return {
        "ended": how_ended("glutton"),
        "limit": limit(),
        "peak": int((GROUP / "memory.peak").read_text()),
        "events": (GROUP / "memory.events.local").read_text(),
        "facts": until(lambda: [fact for fact in memory().get("facts", ()) if "reached" in fact], pause=5),
    }


def another_reserve() -> dict[str, Any]:
    """While a stand-in runs."""
    model("modest", 48)
    until(lambda: holds("modest"))
    before, pid = limit(), show("modest", "MainPID")
    CLUSTER.write_text(CLUSTER.read_text().replace('memory-reserve = "1GiB"', 'memory-reserve = "1088MiB"'))
    said = output("strixd-cli", "apply")
    until(lambda: limit() != before)
    return {"before": before, "after": limit(), "same": show("modest", "MainPID") == pid, "said": said}


def kernel_chooses() -> dict[str, Any]:
    start("other", 400, score=0)
    until(lambda: holds("other"))
    Path("/proc/sysrq-trigger").write_text("f")
    return {"ended": how_ended("modest"), "other": show("other", "ActiveState")["ActiveState"]}


def main() -> None:
    output("systemctl", "mask", "--runtime", "--now", "strixd-image.service")  # it would only cost time here
    seen = {
        "status": until(memory, pause=5),  # a look is seconds of work here
        "total": int(Path("/proc/meminfo").read_text().split()[1]) << 10,
        "before": pids(),
        "without_end": without_end(),
        "another_reserve": another_reserve(),
        "kernel_chooses": kernel_chooses(),
        "after": pids(),
        "strixd": output(
            "journalctl", "-b", "-u", "strixd", "-g", "memory", "-o", "short-monotonic", "--no-pager", "-q"
        ),
        "kernel": output("journalctl", "-k", "-b", "-g", "oom|out of memory", "-o", "cat", "--no-pager", "-q"),
    }
    json.dump(seen, sys.stdout)


main()
