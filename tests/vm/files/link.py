"""Runs inside the virtual machine: the fabric link as strixd reads it, and what the ranks would be told of it."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from strixd import collectives
from strixd.config import find_node, load
from strixd.desired import derive
from strixd.host.hardware import card
from strixd.ladder import GRACE, judge
from strixd.orders import Orders

SYS = Path("/sys")


def main() -> None:
    config = load(Path("/etc/strixd/cluster.toml"))
    macs = {path.parent.name: path.read_text().strip() for path in SYS.glob("class/net/*/address")}
    node = find_node(config, "", macs.values())
    wanted = derive(config, node, Orders()).fabric.wanted
    seen = card(SYS, next(name for name, mac in macs.items() if mac == node.mac))
    assert seen
    verdict = judge(wanted, seen, seen.since + GRACE)
    told = {
        "card": asdict(seen),
        "best": str(verdict.best),
        "no_rdma": verdict.rdma.why,
        "condition": verdict.condition,
    }
    json.dump({**told, "environment": collectives.told(verdict.best, wanted.dscp)}, sys.stdout)


main()
