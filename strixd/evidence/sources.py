"""Where evidence comes from, a function for each file of the bundle. Each gives lines and may fail by itself."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from strixd.api import wire
from strixd.cli import client
from strixd.errors import Unavailable
from strixd.evidence import redact
from strixd.evidence.bundle import Source
from strixd.evidence.processes import PROC, SLICE, pids, processes, stat
from strixd.host import cgroup
from strixd.host.journal import text_lines
from strixd.quadlet import FOLDER as QUADLETS
from strixd.resources import ray, vllm

LAST = 300
"""Lines of each journal."""
ASK = 4.0
"""Seconds for a program, or for strixd."""
STACKS = 8.0
"""Seconds for all Python stacks; each process has two."""
KEYS = 1.0
"""Seconds to learn what must be masked."""
SYS = Path("/sys")
SETTINGS = Path("/etc/strixd")
_DUMP = (
    'command -v py-spy >/dev/null || { echo "no py-spy"; exit 3; }; '
    'for pid; do echo "== $pid"; timeout 2 py-spy dump --nonblocking --pid "$pid" 2>&1; done; exit 0'
)
"""--nonblocking: it only reads memory. Without it a process is stopped first, and one that hangs in the kernel never
stops."""


def all_sources() -> tuple[Source, ...]:
    return (
        Source("processes.txt", processes),
        Source("python-stacks.txt", python_stacks, STACKS),
        Source("journal-vllm.txt", lambda: journal("-u", f"{vllm.NAME}.service")),
        Source("journal-ray.txt", lambda: journal("-u", f"{ray.NAME}.service")),
        Source("journal-strixd.txt", lambda: journal("-u", "strixd.service")),
        Source("journal-kernel.txt", lambda: journal("-k", "-b")),
        Source("ray.json", status),
        Source("links.json", lambda: _run("ip", "-s", "-s", "-d", "-j", "link")),
        Source("link-counters.txt", counters),
        Source("rdma.txt", rdma),
        Source("memory.txt", memory),
    )


def secrets(settings: Path = SETTINGS, quadlets: Path = Path(QUADLETS)) -> Iterator[str]:
    """Values that must not be found in the bundle: strixd's keys, and what units and processes are given as such."""
    for path in sorted(chain(settings.glob("*key"), settings.glob("*token"))):
        yield from _read(path).split()
    for path in quadlets.glob("*.container"):
        yield from redact.assigned(_read(path))
    for pid in pids():
        yield from redact.assigned(_read(PROC / pid / "environ"))


def secrets_in_time(settings: Path = SETTINGS, quadlets: Path = Path(QUADLETS)) -> tuple[frozenset[str], bool]:
    """As secrets(), and whether all could be read within KEYS: environments lie in the memory of processes that may
    hang."""
    found: set[str] = set()
    thread = threading.Thread(target=lambda: found.update(secrets(settings, quadlets)), daemon=True)
    thread.start()
    thread.join(KEYS)
    return frozenset(found.copy()), not thread.is_alive()


def journal(*which: str) -> Iterator[str]:
    """The last lines, oldest first: "TIME IDENTIFIER: WORDS", as redact.py expects them."""
    fields = "--output-fields=MESSAGE,SYSLOG_IDENTIFIER,PODMAN_EVENT"
    command = ("journalctl", "-q", "--no-pager", "-n", str(LAST), "-o", "json", "--all", fields, *which)
    lines = [line for entry in _run(*command) for line in _entry(entry)]
    yield from lines[-LAST:]


def _entry(line: str) -> Iterator[str]:
    entry = json.loads(line)
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(entry["__REALTIME_TIMESTAMP"]) / 1e6))
    who = str(entry.get("SYSLOG_IDENTIFIER") or "-").replace(" ", "_")
    yield from (f"{when} {who}: {words}" for words in text_lines(entry))


def status() -> Iterator[str]:
    """Members and conditions, as the running strixd knows them."""
    yield json.dumps(client.call(wire.ADDRESS, "Status", patience=ASK))


def python_stacks() -> Iterator[str]:
    """py-spy of the image, or else of the host."""
    known = [pid for pid in pids() if _is_python(pid)]
    if not known:
        raise Unavailable("no Python process is there")
    yield from _in_container([inside for pid in known if (inside := _inside(pid))])
    if shutil.which("py-spy"):
        yield "py-spy of the host:"
        yield from _run("sh", "-c", _DUMP, "sh", *known, within=STACKS)


def _in_container(known: list[str]) -> Iterator[str]:
    """vLLM's processes share Ray's PID namespace, so its container sees both. podman's service does it: an exec of our
    own would need all capabilities of a container."""
    yield f"in the container {ray.NAME}, by its own process numbers:"
    command = ("podman", "--remote", "exec", ray.NAME, "bash", "-lc", _DUMP, "bash", *known)
    try:
        yield from _run(*command, within=STACKS - 1)
    except (OSError, subprocess.SubprocessError, Unavailable) as error:
        yield f"skipped: {error}"


def _is_python(pid: str) -> bool:
    try:
        return stat(PROC / pid).name.lower().startswith(("python", "ray::", "vllm", "pt_main"))
    except (OSError, ValueError):
        return False


def _inside(pid: str) -> str:
    """Its number in the innermost PID namespace, "" when it is in none but the host's."""
    numbers = next((line.split()[1:] for line in _read(PROC / pid / "status").splitlines() if line[:6] == "NSpid:"), [])
    return numbers[-1] if len(numbers) > 1 else ""


def counters(sys: Path = SYS) -> Iterator[str]:
    """The drivers' own counters, of interfaces that are devices; those that are 0 say nothing."""
    if not shutil.which("ethtool"):
        raise Unavailable("no ethtool here")
    for interface in sorted(path.parent.name for path in (sys / "class/net").glob("*/device")):
        yield f"{interface}:"
        try:
            yield from (line for line in _run("ethtool", "-S", interface) if not line.endswith(": 0"))
        except Unavailable as error:
            yield f"     {error}"


def rdma(sys: Path = SYS) -> Iterator[str]:
    """Ports, their states, what is counted, and the addresses by which peers find them."""
    root = sys / "class/infiniband"
    ports = sorted(root.glob("*/ports/*"))
    if not ports:
        yield f"no RDMA device: nothing in {root}"
    for port in ports:
        yield f"{port.relative_to(root)}:"
        for path in (port / "state", port / "phys_state", port / "link_layer", port / "rate"):
            yield f"  {path.name} {_read(path).strip()}"
        for path in sorted(chain((port / "counters").glob("*"), (port / "hw_counters").glob("*"))):
            yield f"  {path.relative_to(port)} {_read(path).strip()}"
        yield from (f"  {line}" for line in _gids(port))


def _gids(port: Path) -> Iterator[str]:
    for path in sorted((port / "gids").glob("*"), key=lambda path: path.name.zfill(4)):
        if (address := _read(path).strip()).strip("0:"):
            about = port / "gid_attrs"
            kind, device = (_read(about / what / path.name).strip() for what in ("types", "ndevs"))
            yield f"gids/{path.name} {address} {kind} {device}"


def memory(sys: Path = SYS, proc: Path = PROC) -> Iterator[str]:
    """The host's, the slice's, the GPU's, and what lies in the containers' shared memory."""
    yield "/proc/meminfo:"
    yield from _read(proc / "meminfo").splitlines()
    yield from _read(proc / "pressure/memory").splitlines()
    yield f"{SLICE}:"
    for path in sorted((sys / "fs/cgroup" / SLICE.strip("/")).glob("memory.*")):
        yield from (f"{path.name} {line}" for line in _read(path).splitlines())
    for path in sorted((sys / "class/drm").glob("card*/device/mem_info_*")):
        yield f"{path.relative_to(sys)} {_read(path).strip()}"
    yield from _shared(proc)


def _shared(proc: Path) -> Iterator[str]:
    """/dev/shm as the Ray container has it; vLLM's joins it."""
    known = cgroup.members(cgroup.ROOT / SLICE.strip("/") / f"{ray.NAME}.service")
    folders = (proc / pid / "root/dev/shm" for pid in known if _inside(pid))
    folder = next(folders, None)
    if folder is None:
        yield "/dev/shm: no process of the Ray container is there"
        return
    yield f"{folder}:"
    for path in sorted(folder.iterdir()):
        yield f"{path.stat().st_size} {path.name}"


def _run(*command: str, within: float = ASK) -> list[str]:
    """The lines that a program wrote. Raises SubprocessError when it is late, Unavailable with its words when it
    failed."""
    done = subprocess.run(command, capture_output=True, timeout=within, check=False, stdin=subprocess.DEVNULL)
    if done.returncode and not done.stdout:
        words = done.stderr.decode(errors="replace").strip()
        raise Unavailable(f"{command[0]} ended with status {done.returncode}: {words[:1000]}")
    return done.stdout.decode(errors="replace").splitlines()


def _read(path: Path) -> str:
    """ "" when it cannot be read: some counters of a driver are for other firmware."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
