"""What an idle strixd costs on a lab host, beside its neighbours there: `python -m tests.bench.idle [SECONDS]`.

Every fact is in place and the model answers. CPU is user and system time of the main process with
all its threads, ended ones too (/proc/PID/stat, ticks of 10 ms), memory is PSS (/proc/PID/smaps_rollup).
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

from tests.bench.served import served
from tests.lab.host import Host

SECONDS = 300.0
UNITS = ("strixd", "NetworkManager", "firewalld", "bare-asyncio")
BARE = "import asyncio; asyncio.run(asyncio.sleep(1e6))"
MOST_CPU, MOST_PSS = 0.2, 40.0  # per cent of one core, MiB


@dataclass(frozen=True, slots=True)
class Cost:
    cpu_ms: float
    pss_mib: float


def main() -> int:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    with served() as cluster:
        cluster.head.run("systemd-run", "--unit=bare-asyncio", "python3", "-c", BARE)
        time.sleep(150)  # looks are rare only when nothing has changed for two minutes
        return report(cluster.head, seconds)


def report(host: Host, seconds: float) -> int:
    before = {unit: cost(host, unit) for unit in UNITS}
    time.sleep(seconds)
    after = {unit: cost(host, unit) for unit in UNITS}
    print(f"over {seconds:.0f} s{'':16} CPU ms  % of a core  PSS MiB")
    for unit in UNITS:
        used = after[unit].cpu_ms - before[unit].cpu_ms
        print(f"{unit:24} {used:8.0f} {used / seconds / 10:12.3f} {after[unit].pss_mib:8.1f}")
    share = (after["strixd"].cpu_ms - before["strixd"].cpu_ms) / seconds / 10
    good = share <= MOST_CPU and after["strixd"].pss_mib <= MOST_PSS
    print(f"wanted: at most {MOST_CPU} % and {MOST_PSS:.0f} MiB: {'held' if good else 'MISSED'}")
    return 0 if good else 1


def cost(host: Host, unit: str) -> Cost:
    pid = host.sh(f"systemctl show -P MainPID {unit}").strip()
    ticks = host.sh(f"sed 's/.*) //' /proc/{pid}/stat | awk '{{print $12 + $13}}'")
    kib = host.sh(f"awk '/^Pss:/ {{print $2}}' /proc/{pid}/smaps_rollup")
    return Cost(int(ticks) * 10.0, int(kib) / 1024)


if __name__ == "__main__":
    sys.exit(main())
