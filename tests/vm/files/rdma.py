"""Runs inside the first of two virtual machines that share a cable. The link gets RDMA in software, loses it and has it
again, and is measured from both ends. Tells what strixd says of it each time, here and there."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

OTHER = ("192.168.100.2", 7000)
PATIENCE = 300.0  # seconds; under emulation a first pass takes 20 to 40, more on a busy machine
LONGEST = 600.0  # that one order may take
BY_HAND = "python3 -sP -m strixd.probe.link --answer"
MODULES = "modprobe -a crc32_generic rdma_rxe rdma_ucm ib_uverbs"
DEVICE = next(path.parent.name for path in Path("/sys/class/net").glob("*/device"))
ROCE, NO_ROCE = f"rdma link add rxe0 type rxe netdev {DEVICE}", "rdma link delete rxe0"
ELSEWHERE = (
    "modprobe dummy && ip link add dummy0 type dummy && ip addr add 192.168.101.1/24 dev dummy0 && "
    "ip link set dummy0 up && rdma link add rxe00 type rxe netdev dummy0"
)
OURS = f"{OTHER[0]}/30 dev {DEVICE}"
MOVE = f"ip addr add 192.168.102.1/24 dev {DEVICE} && ip addr del {OURS} && ip addr add {OURS} && {ROCE}"
DSCP = r"sed -i '/^dscp/d; s/^\[fabric\]$/&\ndscp = {}/' /etc/strixd/cluster.toml; strixd-cli apply >/dev/null 2>&1"
BY_RDMA_CM = "timeout 300 ib_write_lat -R -d rxe0 -u 18 -n 100"
LISTEN = f"({BY_RDMA_CM} >/dev/null 2>&1 &); python3 -sP /usr/local/libexec/tos.py"
ONCE = f"{BY_RDMA_CM} {OTHER[0]} >/dev/null 2>&1 && echo connected"
CONNECT = f"for try in 1 2 3 4 5 6 7 8 9; do sleep 3; {ONCE} && break; done"
Place = Callable[[str], Iterator[str]]
"""Where a line of shell is run; what it writes comes line by line."""


def here(order: str) -> Iterator[str]:
    words = ["sh", "-c", order]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout
        yield from process.stdout


def there(order: str) -> Iterator[str]:
    with socket.create_connection(OTHER, 10) as line:
        line.settimeout(LONGEST)
        line.sendall(f"{order}\n".encode())
        yield from line.makefile()


def said(at: Place, order: str) -> str:
    return "".join(at(order))


def until(true: Callable[[], Any]) -> Any:
    """The last sight, true or not: the test judges it."""
    deadline = time.monotonic() + PATIENCE
    while not (seen := true()) and time.monotonic() < deadline:
        time.sleep(1)
    return seen


def told(at: Place, *commands: str) -> dict[str, Any]:
    """JSON; empty when that is not what came."""
    try:
        return dict(json.loads(said(at, " ".join(commands))))
    except ValueError:
        return {}


def resource(at: Place, name: str) -> dict[str, Any]:
    """What status says of one; empty while the daemon does not answer."""
    status = told(at, "strixd-cli status --json 2>/dev/null")
    found: list[dict[str, Any]] = [each for each in status.get("resources", []) if each["name"] == name]
    return found[0] if found else {}


def settled(at: Place, words: str, name: str = "fabric") -> dict[str, Any]:
    """Once its facts, or what blocks it, have these words in them."""
    seen: list[dict[str, Any]] = [{}]

    def comes() -> bool:
        seen[0] = resource(at, name)
        return words in " ".join((seen[0].get("why", ""), *seen[0].get("facts", [])))

    until(comes)
    return seen[0]


def looked(at: Place, words: str) -> dict[str, Any]:
    """The daemon's view, once it has these words in it, and all that is read and derived."""
    return {"status": settled(at, words), **told(at, "python3 -sP /usr/local/libexec/link.py")}


def bench(at: Place, other: Place, *options: str) -> dict[str, Any]:
    """From one end; the other one is started by hand, as strixd says."""
    lines: list[str] = []
    hands: list[Future[str]] = []
    with ThreadPoolExecutor(1) as pool:
        for line in at(" ".join(("strixd-cli bench link --json", *options, "; echo status $?"))):
            lines.append(line)
            if BY_HAND in line:
                hands.append(pool.submit(said, other, line[line.index(BY_HAND) :].strip()))
    words, brace, rest = ("\n" + "".join(lines)).partition("\n{")
    outcome = json.loads(brace + rest[: rest.rindex("}") + 1]) if brace else {}
    return {"words": words, "outcome": outcome, "status": lines[-1].strip(), "hand": [each.result() for each in hands]}


def doctor(at: Place) -> dict[str, Any]:
    """Once it has read the link in the time that it gives itself, which is short for an emulated processor."""
    seen: dict[str, Any] = {}

    def read() -> bool:
        findings = told(at, "strixd-cli doctor --json 2>/dev/null").get("findings", [])
        seen.update({each["name"]: each for each in findings})
        return all(seen.get(name, {}).get("verdict", "unknown") != "unknown" for name in ("rdma", "fabric"))

    until(read)
    return seen


def reached() -> bool:
    try:
        return said(there, "echo here") == "here\n"
    except OSError:
        return False


def both(order: str) -> str:
    return said(here, order) + said(there, order)


def without(seen: dict[str, Any]) -> None:
    settled(here, "no RDMA")
    until(reached)
    seen["plain"] = looked(here, "no RDMA")
    seen["setup"] = both(f"{MODULES} && {ROCE}")


def whole(seen: dict[str, Any]) -> None:
    """RDMA is there, at both ends: what is told of it, and the measurements each way."""
    seen["ready"] = {name: looked(at, "RDMA (RoCE v2") for name, at in (("halo1", here), ("halo2", there))}
    seen["doctor"] = doctor(here)
    seen["version"] = said(here, "ib_write_lat --version")
    seen["bench"] = {"halo1": bench(here, there), "halo2": bench(there, here, "--rung rdma")}


def marked(seen: dict[str, Any]) -> None:
    """Connections that others than the ranks make: which DSCP their packets have at the other end."""
    for name, dscp, words in (("given", 26, "with DSCP 26"), ("taken", 0, "none is asked for")):
        said(here, DSCP.format(dscp))
        status = settled(here, words, "dscp")
        with ThreadPoolExecutor(1) as pool:
            crossed = pool.submit(said, there, LISTEN)
            seen[name] = {"status": status, "client": said(here, CONNECT), "crossed": crossed.result().strip()}


def lost_here(seen: dict[str, Any]) -> None:
    """The device goes, and comes back; then the interface is taken down under it."""
    seen["deleted"] = said(here, NO_ROCE)
    seen["gone"] = looked(here, "no RDMA device is bound to")
    seen["gone"]["bench"] = bench(here, there, "--rung rdma")
    seen["added"] = said(here, ROCE)
    seen["back"] = looked(here, "RDMA (RoCE v2")
    seen["lowered"] = said(here, f"ip link set {DEVICE} down")
    seen["down"] = looked(here, "no carrier")
    seen["raised"] = said(here, f"ip link set {DEVICE} up")
    until(reached)
    seen["up"] = looked(here, "; TCP over ")


def lost_there(seen: dict[str, Any]) -> None:
    """The other end has an active port, of another interface; then its own again, and an address more before ours."""
    seen["exchanged"] = said(there, f"{NO_ROCE} && {ELSEWHERE}")
    seen["elsewhere"] = looked(there, "no RDMA device is bound to")
    seen["elsewhere"]["bench"] = bench(here, there, "--rung rdma")
    seen["moved"] = said(there, MOVE)
    seen["other_index"] = looked(there, "RDMA (RoCE v2")
    seen["other_index"]["bench"] = bench(here, there, "--rung rdma")


def main() -> None:
    seen: dict[str, Any] = {}
    for part in (without, whole, marked, lost_here, lost_there):
        began = time.monotonic()
        part(seen)
        seen.setdefault("seconds", {})[part.__name__] = round(time.monotonic() - began)
    errors = "journalctl -b -u strixd -p err -o cat --no-pager -q"
    seen["errors"] = both(errors)
    seen["failed"] = both("systemctl list-units --failed --plain --no-legend")
    said(there, "end")
    json.dump(seen, sys.stdout)


main()
