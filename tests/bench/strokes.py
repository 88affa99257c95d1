"""A fault that is dealt, and when what follows it is seen: in seconds of the epoch, by the one clock that the machine
and all its lab hosts share."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from strixd import messages
from tests.e2e.cluster import Cluster
from tests.faults.tokens.harm import one
from tests.faults.tokens.processes import MODEL, Kind, Process, processes
from tests.lab.host import Entry, Host, wait_for

LOOK = 0.01  # seconds between looks for the end of the old processes
ASK = 0.2  # seconds between two questions; nearer ones would take the processor from what is measured
PATIENCE = 20.0  # seconds for a completion, whose first one on a server can take some
SERVER = "strixd-vllm.service"
# One failure first, since what has been struck may answer once more; then until a completion comes.
ASKING = "while {ask}; do sleep 0.05; done; until {ask}; do sleep {pause}; done; echo $EPOCHREALTIME"
# Of systemd (sd-messages.h).
PROCESS_EXIT = "98e322203f7a4ed290d09fe03c09fe15"
UNIT_FAILED = "d9b373ed55a64feb8242e02dbe79a49c"
UNIT_STARTING = "7d4958e842da4a758f6c1cdc7b36dcc5"
MANY = 900  # tokens of a stream, which must be under way for as long as the stroke takes; the context is 1024


@dataclass(frozen=True, slots=True)
class Replaced:
    """When the last process of the old run was gone, and the new server's process there (the kernel's own record)."""

    gone: float
    new: float


def strike(host: Host, kind: Kind, name: str) -> float:
    """Sends the signal; when that was."""
    pid = one(host, kind).pid
    return float(host.sh(f"echo $EPOCHREALTIME; kill -{name} {pid}"))


def model(cluster: Cluster) -> frozenset[Process]:
    return frozenset(each for host in cluster.hosts for each in processes(host) if each.kind in MODEL)


def replaced(cluster: Cluster, old: frozenset[Process], within: float = 60.0) -> Replaced:
    """Until both are so. The old processes are looked at closely, the list of all seldom: that costs milliseconds."""
    wait_for("the old run is gone", lambda: not any(_lives(cluster, each) for each in old), within, pause=LOOK)
    gone = time.time()
    found: list[Process] = []

    def appeared() -> bool:
        found[:] = [each for each in processes(cluster.head) if each.kind == "server" and each not in old]
        return bool(found)

    wait_for("a new server", appeared, within)
    return Replaced(gone, found[0].began + time.time() - time.clock_gettime(time.CLOCK_BOOTTIME))


def _lives(cluster: Cluster, process: Process) -> bool:
    host = next(host for host in cluster.hosts if host.name == process.host)
    try:
        return host.path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class Asking:
    """A client on the head that asks for completions, from now on: until one fails, and then until one comes."""

    def __init__(self, cluster: Cluster, within: float) -> None:
        self._within = within
        ask = f"{shlex.join(cluster.asking(PATIENCE))} >/dev/null 2>&1"
        script = ASKING.format(ask=ask, pause=ASK)
        self._client = cluster.head.stream("timeout", str(within), "bash", "-c", script)

    def answered(self) -> float:
        """When the first completion was whole, 0 when none came in time."""
        said, _ = self._client.communicate(timeout=self._within + PATIENCE)
        return float(said) if self._client.returncode == 0 else 0.0


@contextmanager
def streaming(cluster: Cluster) -> Iterator[subprocess.Popen[str]]:
    """A streamed completion is under way: its first token has come."""
    reading = cluster.head.stream(*cluster.stream(MANY))
    assert reading.stdout
    assert reading.stdout.readline(), "no stream began"
    try:
        yield reading
    finally:
        reading.kill()
        reading.communicate()


def noticed(host: Host, since: float, within: float) -> float:
    """When strixd there said in the journal that an incident has begun. The incident's own moment may lie before that:
    it is the first bad sign, also one that was understood later."""
    found: list[Entry] = []

    def said() -> bool:
        found[:] = told(host.journal_from_outside(since), since, messages.IDS["INCIDENT_BEGAN"])
        return bool(found)

    wait_for("strixd notices", said, within, pause=0.5)
    return moment(found[0])


def told(entries: Sequence[Entry], since: float, kind: str, **known: str) -> list[Entry]:
    """Those of that message id which began after `since`; `known`: fields and how they begin."""
    return [
        entry
        for entry in entries
        if entry.get("MESSAGE_ID") == kind
        and moment(entry) >= since
        and all(entry.get(name, "").startswith(start) for name, start in known.items())
    ]


def moment(entry: Entry) -> float:
    return int(entry["__REALTIME_TIMESTAMP"]) / 1e6


def stages(entries: Sequence[Entry], struck: float, seen: Replaced) -> Mapping[str, float]:
    """Where the seconds from the stroke to the new process went, by what the head's journal says."""
    start = messages.IDS["STEP_TAKEN"]
    marks = {
        "until systemd saw the main process end": told(entries, struck, PROCESS_EXIT, UNIT=SERVER),
        "until systemd had ended the unit": told(entries, struck, UNIT_FAILED, UNIT=SERVER),
        "until strixd said that it starts it": told(entries, struck, start, STRIXD_STEP=f"start {SERVER}"),
        "until systemd began to start it": told(entries, struck, UNIT_STARTING, UNIT=SERVER),
    }
    whens = {name: moment(found[0]) for name, found in marks.items() if found} | {"until the process": seen.new}
    befores = (struck, *whens.values())
    return {name: when - before for (name, when), before in zip(whens.items(), befores, strict=False)}
