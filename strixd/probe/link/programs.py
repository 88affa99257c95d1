"""iperf3 and perftest: their words for either end, and running them so that none outlives its time.

Bounded in size: perftest pins 64 KiB twice for each of eight queue pairs, and iperf3 takes its socket buffers.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LATENCY = ("-n", "1000")  # messages of 2 bytes, both perftest's own; 5 ms each must do on a link that is that slow
BANDWIDTH = ("-D", "6", "-f", "1", "-s", "65536", "-q", "8", "--report_gbits")  # 6 s, of which 4 are counted
STREAMS = ("-P", "8", "-t", "5", "-i", "0", "-J", "--connect-timeout", "3000")  # 5 s, the guide's number of streams
PATIENCE = ("-u", "18")
"""4.096 µs × 2^18, 1.07 s until an acknowledgement is missed, at both ends: in software RDMA a processor gives it,
which may be later than perftest's own 67 ms."""
AMOUNTS = {"ib_write_lat": LATENCY, "ib_send_lat": LATENCY, "ib_write_bw": BANDWIDTH}
KNOWN = ("iperf3", *AMOUNTS)
SECONDS = 30  # that one run may take, on either end
LISTENS = 15.0  # seconds until it must
ANY_ERROR = (OSError, ValueError, subprocess.SubprocessError)
_PROC = Path("/proc/net")
_OUTPUT = 1 << 20  # characters of output that are kept; iperf3 takes some thousand, perftest fewer


def present() -> list[str]:
    return [name for name in KNOWN if shutil.which(name)]


def words(program: str, address: str, port: int, *, rdma: dict[str, Any] | None = None, peer: str = "") -> list[str]:
    """The command; without `peer` that of the end that listens on `port` of `address`."""
    if program == "iperf3":
        end = ["-c", peer, *STREAMS] if peer else ["-s", "-1"]
        return ["iperf3", "-p", str(port), "-B", address, *end]
    assert rdma
    device = ["-d", str(rdma["device"]), "-i", str(rdma["port"])]
    device += [] if rdma["gid"] is None else ["-x", str(rdma["gid"])]
    common = [program, *device, "-p", str(port), "-F", *PATIENCE, *AMOUNTS[program]]
    return [*common, peer] if peer else [*common, *_only_here(program, address)]


def _only_here(program: str, address: str) -> list[str]:
    """An older perftest (4.5) listens on all addresses; the fence keeps that port to the fabric all the same."""
    told = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=5, check=False)
    return ["--bind_source_ip", address] if "--bind_source_ip" in told.stdout + told.stderr else []


def bounded(command: list[str]) -> list[str]:
    return ["timeout", "--kill-after=2", str(SECONDS), *command]


def run(command: list[str]) -> str:
    """What it wrote. Raises ValueError with its last words when it failed, and SubprocessError."""
    done = subprocess.run(
        bounded(command), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS + 5, check=False
    )
    if done.returncode:
        raise ValueError(f"{command[0]} ended with status {done.returncode}: {_last(done.stderr or done.stdout)}")
    return done.stdout[:_OUTPUT]


def _last(text: str) -> str:
    return " ".join(text.split())[-300:]


@contextlib.contextmanager
def listening(program: str, address: str, rdma: dict[str, Any] | None) -> Iterator[int]:
    """The program as the end that listens, and its port; it is gone afterwards."""
    port = free_port(address)
    with tempfile.TemporaryFile() as output:
        command = bounded(words(program, address, port, rdma=rdma))
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        try:
            if not _comes(server, port):
                output.seek(0)
                raise ValueError(f"{program} does not listen: {_last(output.read(_OUTPUT).decode(errors='replace'))}")
            yield port
        finally:
            server.terminate()
            server.wait(5)


def free_port(address: str) -> int:
    """One of the kernel's choice: those are behind the fence."""
    with socket.create_server((address, 0)) as chosen:
        return int(chosen.getsockname()[1])


def _comes(server: subprocess.Popen[bytes], port: int) -> bool:
    """Looked up, not knocked at: it serves one caller and would take us for that."""
    end = time.monotonic() + LISTENS
    while time.monotonic() < end and server.poll() is None:
        if any(_listed(table, port) for table in ("tcp", "tcp6")):
            return True
        time.sleep(0.05)
    return False


def _listed(table: str, port: int) -> bool:
    with contextlib.suppress(OSError):
        rows = [line.split()[1:4:2] for line in (_PROC / table).read_text().splitlines()[1:]]
        return any(state == "0A" and local.endswith(f":{port:04X}") for local, state in rows)
    return False
