"""Real RDMA, in software: two machines on a cable, each with the kernel's own rdma_rxe over its card, and the real
perftest. What strixd reads of the link, what follows from it, and what `bench link` measures.

One story, since it takes minutes under emulation, told by files/rdma.py; the tests judge it. The numbers are those of
an emulated processor: that they are read is tested, not how large they are.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.lab.cache import say
from tests.vm.guest import FILES
from tests.vm.machine import Machine

Seen = dict[str, Any]
RDMA = "RDMA (RoCE v2, rxe0 port 1, GID 1)"
NODES = {"halo1": "192.168.100.1", "halo2": "192.168.100.2"}
PROGRAMS = ("ib_write_lat", "ib_send_lat", "ib_write_bw")


@pytest.fixture(scope="module")
def seen(cabled: tuple[Machine, Machine]) -> Seen:
    first, second = cabled
    with first.on(FILES / "rdma.py") as told, second.on(FILES / "obey.py") as obeyed:
        story = told()
        obeyed()
    for node, run in story["bench"].items():
        for row in run["outcome"].get("rows", [f"{run['status']}: {run['words']}; the other end: {run['hand']}"]):
            say(f"vm: from {node}: {row}")
    say(f"vm: {story['version'].strip()}; seconds: {story['seconds']}")
    return story


def fact(sight: Seen) -> str:
    """What the daemon says of the rungs."""
    return str(sight["status"]["facts"][0])


def port(sight: Seen) -> Seen:
    """The only RDMA port of the link, as read."""
    (only,) = sight["card"]["ports"]
    return dict(only)


def over_tcp(sight: Seen) -> bool:
    interface = sight["card"]["interface"]
    sockets = {"NCCL_SOCKET_IFNAME": f"={interface}", "GLOO_SOCKET_IFNAME": interface}
    return bool(sight["environment"] == {**sockets, "NCCL_IB_DISABLE": "1"})


def over_rdma(sight: Seen, index: str = "1") -> bool:
    interface = sight["card"]["interface"]
    sockets = {"NCCL_SOCKET_IFNAME": f"={interface}", "GLOO_SOCKET_IFNAME": interface}
    rdma = {"NCCL_IB_DISABLE": "0", "NCCL_IB_HCA": "=rxe0:1", "NCCL_IB_GID_INDEX": index}
    return bool(sight["environment"] == {**sockets, **rdma})


def own_index(sight: Seen, node: str) -> str:
    """Where the node's own address stands in the table of GIDs."""
    (found,) = [gid["index"] for gid in port(sight)["gids"] if gid["ip"] == NODES[node]]
    return str(found)


def test_a_link_without_rdma_is_ethernet(seen: Seen) -> None:
    assert seen["plain"]["status"]["condition"] == "ok"
    assert fact(seen["plain"]).startswith("ethernet: no RDMA: no RDMA device is bound to ")
    assert seen["plain"]["best"].startswith("TCP over ")
    assert over_tcp(seen["plain"])


@pytest.mark.parametrize("node", NODES)
def test_a_port_of_roce_is_read_and_taken(seen: Seen, node: str) -> None:
    sight = seen["ready"][node]
    assert sight["status"]["condition"] == "ok"
    assert fact(sight).startswith(f"roce: {RDMA}; TCP over ")
    found = {key: port(sight)[key] for key in ("device", "number", "transport", "state", "physical", "layer")}
    names = {"device": "rxe0", "number": 1, "transport": "RoCE", "layer": "Ethernet"}
    assert found == {**names, "state": "ACTIVE", "physical": "LinkUp"}
    ours = {"index": 1, "kind": "RoCE v2", "ip": NODES[node], "interface": sight["card"]["interface"]}
    assert ours in port(sight)["gids"]
    assert sight["best"] == RDMA
    assert over_rdma(sight)


def test_doctor_says_the_same(seen: Seen) -> None:
    assert (seen["doctor"]["rdma"]["verdict"], seen["doctor"]["rdma"]["read"]) == ("ok", RDMA)
    assert seen["doctor"]["fabric"]["verdict"] == "ok"


def assert_measured(run: Seen) -> dict[str, Seen]:
    """RDMA, by all three programs; the rows by their rungs."""
    assert (run["status"], run["outcome"]["failed"], run["outcome"]["lacking"]) == ("status 0", [], []), run
    rows = {row["rung"]: row for row in run["outcome"]["rows"]}
    write, send = rows["rdma write"], rows["rdma send"]
    assert (write["latency_by"], send["latency_by"], write["bandwidth_by"]) == PROGRAMS
    assert all(0 < row["latency"] <= row["p99"] for row in (write, send))
    assert write["bandwidth"] > 0
    assert run["hand"] == [""], "the other end ended in order"
    return rows


@pytest.mark.parametrize("node", NODES)
def test_bench_measures_with_the_real_programs_from_each_end(seen: Seen, node: str) -> None:
    rows = assert_measured(seen["bench"][node])
    assert {row["peer"] for row in rows.values()} == NODES.keys() - {node}
    if node == "halo1":  # asked for all rungs
        assert rows["tcp"]["latency"] > 0
        assert rows["tcp"]["bandwidth"] > 0


def test_connections_of_others_have_the_dscp_as_long_as_it_is_asked_for(seen: Seen) -> None:
    """Seen on the wire: what the kernel's rdma_cm makes of what strixd wrote, and of what it took back."""
    given, taken = seen["given"], seen["taken"]
    assert (given["client"], taken["client"]) == ("connected\n",) * 2
    assert given["status"]["facts"] == ["rdma_cm connects over rxe0 port 1 with DSCP 26 (TOS 104)"], given["status"]
    assert (given["crossed"], taken["crossed"]) == (f"[{26 << 2}]", "[0]")


def test_a_device_that_goes_moves_the_ladder_to_tcp_and_back(seen: Seen) -> None:
    gone, back = seen["gone"], seen["back"]
    assert (seen["deleted"], seen["added"]) == ("", "")
    assert gone["status"]["condition"] == "ok"
    assert "no RDMA: no RDMA device is bound to " in fact(gone)
    assert over_tcp(gone)
    (lacking,) = gone["bench"]["outcome"]["lacking"]
    assert lacking.endswith("no active RDMA port has the address of the fabric on halo1")
    assert fact(back).startswith(f"roce: {RDMA}; ")
    assert over_rdma(back)


def test_a_port_that_is_down_is_no_way(seen: Seen) -> None:
    """Here its carrier goes with it; so there is no way at all until it is back. Where that is the third loss within
    10 minutes (a boot may count for one) it is no ground for RDMA then. Its GID is at another place."""
    down = seen["down"]
    assert down["status"]["condition"] == "blocked"
    assert down["status"]["why"].startswith("no carrier on ")
    assert (port(down)["state"], port(down)["physical"]) == ("DOWN", "Disabled")
    assert down["no_rdma"] == "rxe0 port 1 is DOWN, Disabled"
    up = seen["up"]
    again = rf"RDMA \(RoCE v2, rxe0 port 1, GID {own_index(up, 'halo1')}\); TCP over "
    lost = r"no RDMA: \S+ lost its carrier or its RDMA port 3 times within 10 min "
    assert re.match(rf"roce: ({again}|{lost})", fact(up))
    assert over_rdma(up, own_index(up, "halo1"))


def test_an_active_port_of_another_interface_is_none_of_this_link(seen: Seen) -> None:
    elsewhere = seen["elsewhere"]
    assert elsewhere["card"]["ports"] == []
    assert "no RDMA: no RDMA device is bound to " in fact(elsewhere)
    (lacking,) = elsewhere["bench"]["outcome"]["lacking"]
    assert lacking.endswith("no active RDMA port has the address of the fabric on halo2")


def test_an_index_that_moved_is_found_and_works(seen: Seen) -> None:
    """At one end only: each end needs its own."""
    other = seen["other_index"]
    assert own_index(other, "halo2") != "1"
    assert over_rdma(other, own_index(other, "halo2"))
    assert_measured(other["bench"])


def test_nothing_else_goes_wrong(seen: Seen) -> None:
    assert (seen["setup"], seen["exchanged"], seen["moved"], seen["lowered"], seen["raised"]) == ("",) * 5
    errors, failed = seen["errors"].split("\n"), seen["failed"].split("\n")
    assert all(line.startswith("image is stuck: Cannot look for the image") for line in errors if line), (
        "no podman here"
    )
    assert {line.split()[0] for line in failed if line.strip()} == {"strixd-image.service"}
