"""The probe's command line. Started as a file, it makes its folder importable under the name that it has in strixd."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[2])

from strixd.probe.look import Cluster, look_for_ever  # noqa: E402
from strixd.probe.wrapper import wrap  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(prog="probe", description="Start Ray, and tell strixd who is in the cluster.")
    parser.add_argument("--socket", required=True, help="strixd's socket")
    parser.add_argument("--sweep", default="", help="folder of shared memory, rid of what killed models left there")
    parser.add_argument("--look", type=int, help=argparse.SUPPRESS)  # the wrapper's process id
    parser.add_argument("command", nargs="+", help="ray start …, after --")
    arguments = parser.parse_args()
    if arguments.look:
        return look_for_ever(Cluster(arguments.command, arguments.sweep), arguments.socket, arguments.look)
    return wrap(arguments.command, [sys.executable, __file__, f"--look={os.getpid()}", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
