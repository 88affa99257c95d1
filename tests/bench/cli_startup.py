"""How long `strixd-cli status` takes beside `python3 -I -c pass` on this host; the limit is three times as long.

    python3 tests/bench/cli_startup.py [--python PYTHON] [--rounds N] [--socket PATH]

Both are started in turn, so that whatever else the machine does slows both. Asks the daemon at --socket, or a
server of this process with a fixed status. Ends with status 1 above the limit.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests/unit")]

from recorded_door import RecordedDoor, served  # noqa: E402

LIMIT = 3.0
CLI = "import sys; sys.path.insert(0, {root!r}); from strixd.cli import main; sys.exit(main())"


def seconds(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


@contextlib.contextmanager
def socket_path(given: str) -> Iterator[str]:
    if given:
        yield given
        return
    with tempfile.TemporaryDirectory() as folder, served(Path(folder, "socket"), RecordedDoor()) as server:
        yield str(server.path)


def measure(python: str, socket: str, rounds: int) -> tuple[float, float]:
    """Medians of the floor and of the command; the first round only warms caches and writes byte code."""
    floor = [python, "-I", "-c", "pass"]
    status = [python, "-I", "-c", CLI.format(root=str(ROOT)), "status", "--socket", socket]
    pairs = [(seconds(floor), seconds(status)) for _ in range(rounds + 1)][1:]
    return statistics.median(each[0] for each in pairs), statistics.median(each[1] for each in pairs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    system = "/usr/bin/python3"  # a virtual environment's floor is higher by what its .pth files import
    parser.add_argument("--python", default=system if os.access(system, os.X_OK) else sys.executable)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--socket", default="")
    asked = parser.parse_args()
    with socket_path(asked.socket) as socket:
        floor, status = measure(asked.python, socket, asked.rounds)
    ratio = status / floor
    line = f"python3 -I -c pass {floor * 1e3:.1f} ms, strixd-cli status {status * 1e3:.1f} ms: {ratio:.2f} times"
    sys.stdout.write(f"{line} (limit {LIMIT:.1f}; {asked.python}, {asked.rounds} rounds in turn)\n")
    return 0 if ratio <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
