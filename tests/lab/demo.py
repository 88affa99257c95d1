"""`make demo`: two hosts, one cluster.toml, and the product doing its job on them before your eyes."""

from __future__ import annotations

import os
import sys
import time

from tests.lab.cache import say
from tests.lab.cluster import lay_cluster
from tests.lab.host import Host
from tests.lab.install import install
from tests.lab.lab import Ended, running_lab

VERSIONS = (
    "hostname; systemctl --version | head -1; NetworkManager --version; firewall-cmd --version; podman --version; "
    "python3 --version"
)


def main() -> int:
    if os.geteuid() != 0:
        say("without root there are no hosts to boot")
        return 1
    try:
        return _demonstrate()
    except KeyboardInterrupt as end:
        return end.status if isinstance(end, Ended) else 130


def _demonstrate() -> int:
    started = time.monotonic()
    with running_lab() as lab:
        hosts = lab.new_hosts()
        say(f"{len(hosts)} hosts are up after {time.monotonic() - started:.0f} s")
        install(hosts)
        lay_cluster(hosts)
        for host in hosts:
            _show(host, VERSIONS)
    return 0


def _show(host: Host, script: str) -> None:
    for line in host.sh(script).splitlines():
        sys.stdout.write(f"{host.name}: {line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
