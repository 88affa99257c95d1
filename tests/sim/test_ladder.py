"""The ladder in service: what a fault of RDMA does to the model, what it costs, and when the better rung is back."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import pytest

from strixd.engine.status import Status
from strixd.ladder import GRACE
from strixd.sim.hardware import Fault
from strixd.sim.world import EVIDENCE, FABRIC, RAY, VLLM
from strixd.workload import EVIDENCE_REQUEST, EVIDENCE_WITHIN
from tests.quadlet_text import environment
from tests.sim.node import MODEL, Node, answering, living, serving, starts, virtual, world

FILES = tuple(f"/run/containers/systemd/{name}.container" for name in ("strixd-ray", "strixd-vllm"))
GOOD = "RDMA (RoCE v2, irdma0 port 1, GID 3)"
TCP = f"TCP over {FABRIC}, 100 Gb/s"


def told(node: Node, variable: str) -> list[str | None]:
    """What the containers of Ray and of the server are told."""
    return [environment(node.world.disk.files[path]).get(variable) for path in FILES]


def ray_is_told(node: Node, variable: str, value: str, _: Status) -> bool:
    return environment(node.world.disk.files[FILES[0]]).get(variable) == value


def over(status: Status) -> str:
    return status.model.over if status.model else ""


def fault(node: Node, kind: Fault) -> None:
    node.world.rdma.fault = kind
    node.world.changed("rdma")


def of(node: Node, resource: str) -> str:
    view = next(view for view in node.status.resources if view.name == resource)
    return f"{view.condition}: {view.why}"


@virtual
async def test_a_model_is_served_over_rdma_and_told_exactly_which() -> None:
    async with serving() as node:
        assert over(node.status) == GOOD
        assert told(node, "NCCL_IB_HCA") == ["=irdma0:1"] * 2
        assert told(node, "NCCL_IB_GID_INDEX") == ["3"] * 2
        assert told(node, "NCCL_SOCKET_IFNAME") == [f"={FABRIC}"] * 2
        assert starts(node.world, RAY) == starts(node.world, VLLM) == 1


@pytest.mark.parametrize("kind", ["down", "gids", "none", "iwarp", "flaps"])
@virtual
async def test_rdma_lost_in_service_restarts_on_tcp_and_says_what_it_costs(kind: Fault) -> None:
    async with serving() as node:
        fault(node, kind)
        await node.until(lambda status: over(status) == TCP and answering(status), seconds=200)
        assert told(node, "NCCL_IB_DISABLE") == ["1"] * 2
        assert told(node, "NCCL_IB_HCA") == [None] * 2
        incident = node.status.incident
        assert incident
        assert incident.ended
        assert incident.resource == "ray"
        assert incident.cause.startswith("RDMA is lost: ")
        assert incident.cause.endswith("goes on over TCP, about 70 µs instead of 5 µs")
        assert starts(node.world, VLLM) == 2


def calls(node: Node) -> list[tuple[str, str]]:
    """What was done to the units of evidence and of Ray, in order."""
    units = {EVIDENCE: "evidence", RAY: "ray"}
    return [
        (call.method, units[call.args[0]])
        for call in node.world.calls.writes
        if call.method in ("start", "stop") and call.args[0] in units
    ]


RESTARTED = [("start", "evidence"), ("stop", "ray"), ("start", "ray")]


def request(node: Node) -> dict[str, str]:
    found: dict[str, str] = json.loads(node.world.disk.files[EVIDENCE_REQUEST])
    return found


@pytest.mark.parametrize("kind", ["down", "flaps"])
@virtual
async def test_what_a_lost_port_says_is_saved_once_and_before_the_restart(kind: Fault) -> None:
    async with serving() as node:
        fault(node, kind)
        await node.until(lambda status: over(status) == TCP and answering(status), seconds=200)
        assert calls(node) == [("start", "ray"), *RESTARTED]
        assert request(node)["unit"] == RAY
        assert request(node)["why"].startswith("RDMA is lost: ")


@virtual
async def test_the_head_saves_its_own_side_of_a_loss_on_another_node() -> None:
    async with serving() as node:
        node.world.cluster.others["halo2"].record["rdma"] = "irdma0 port 1 is DOWN, Disabled"
        node.world.changed("records")
        await node.until(lambda status: over(status) == TCP and answering(status), seconds=200)
        assert calls(node) == [("start", "ray"), *RESTARTED]
        assert "halo2: irdma0 port 1 is DOWN" in request(node)["why"]


@virtual
async def test_evidence_that_hangs_delays_the_restart_within_its_bound() -> None:
    async with serving() as node:
        node.world.systemd.fixed[EVIDENCE] = "[Service]\nType=oneshot\nExecStart=/bin/sleep 600\n"
        node.world.systemd.reload()
        fault(node, "down")
        await node.until(lambda _: calls(node)[-1] == ("stop", "ray"), seconds=GRACE + EVIDENCE_WITHIN + 5)
        await node.until(lambda status: over(status) == TCP and answering(status), seconds=200)


@virtual
async def test_rdma_that_the_file_turns_off_is_not_lost_and_leaves_no_evidence() -> None:
    async with serving() as node:
        node.text += '\n[fabric]\nkind = "ethernet"\n'
        assert node.engine
        await node.engine.apply("uid 0: apply")
        await node.until(lambda status: over(status) == TCP and answering(status), seconds=200)
        assert calls(node) == [("start", "ray"), ("stop", "ray"), ("start", "ray")]
        assert node.status.incident is None


@virtual
async def test_a_server_that_dies_of_lost_rdma_comes_back_over_tcp_and_the_cause_is_the_link() -> None:
    async with serving() as node:
        fault(node, "down")
        await node.until(lambda status: of(node, "fabric").startswith("waiting"), seconds=10)
        server = node.world.server()
        assert server
        server.fail()
        await node.until(lambda status: over(status) == TCP and answering(status), seconds=200)
        assert node.status.incident
        assert node.status.incident.resource == "fabric"
        assert "irdma0 port 1 is DOWN" in node.status.incident.cause
        assert "about 70 µs instead of 5 µs" in node.status.incident.cause
        assert starts(node.world, VLLM) == 2


@virtual
async def test_rdma_that_comes_back_at_once_ends_nothing() -> None:
    async with serving() as node:
        fault(node, "down")
        await node.until(lambda status: of(node, "fabric").startswith("waiting: RDMA is not there"), seconds=10)
        fault(node, "")
        await node.world.clock.sleep(60)
        assert over(node.status) == GOOD
        assert starts(node.world, VLLM) == 1
        assert node.status.incident is None


@virtual
async def test_a_better_rung_is_told_and_taken_only_by_order() -> None:
    async with serving() as node:
        assert node.engine
        fault(node, "down")
        await node.until(lambda status: over(status) == TCP and answering(status), seconds=200)
        fault(node, "")
        await node.until(lambda status: bool(status.model and status.model.better == GOOD), seconds=40)
        await node.world.clock.sleep(600)
        assert over(node.status) == TCP
        assert starts(node.world, VLLM) == 2
        await node.engine.restart("vllm", "uid 0: restart vllm")
        await node.until(lambda status: over(status) == GOOD and answering(status), seconds=300)
        assert node.status.model
        assert node.status.model.better == ""


@virtual
async def test_a_gid_that_moves_under_a_model_is_looked_up_at_its_next_start() -> None:
    async with serving() as node:
        node.world.rdma.index = 7
        node.world.changed("rdma")
        await node.world.clock.sleep(100)
        assert told(node, "NCCL_IB_GID_INDEX") == ["3"] * 2
        assert starts(node.world, VLLM) == 1
        node.world.kill(VLLM)
        await node.until(lambda status: over(status) == GOOD.replace("3)", "7)") and answering(status), seconds=300)
        assert told(node, "NCCL_IB_GID_INDEX") == ["7"] * 2


@virtual
async def test_rdma_lost_on_another_node_is_its_fault_by_name() -> None:
    async with serving() as node:
        node.world.cluster.others["halo2"].record["rdma"] = "irdma0 port 1 is DOWN, Disabled"
        node.world.changed("records")
        await node.until(lambda status: over(status) == TCP and answering(status), seconds=200)
        assert node.status.incident
        assert "halo2: irdma0 port 1 is DOWN, Disabled" in node.status.incident.cause
        await node.world.clock.sleep(300)
        assert starts(node.world, VLLM) == 2  # while its record comes and goes with Ray, nothing is tried in vain
        assert starts(node.world, RAY) == 2


@virtual
async def test_without_tcp_nothing_is_served_and_the_mend_is_named() -> None:
    async with living(world()) as node:
        assert node.engine
        node.text += "\n[fabric]\nallow-tcp = false\n"
        node.engine.reread()
        fault(node, "down")
        await node.engine.serve(MODEL, (), by="uid 0: serve")
        await node.until(lambda status: status.phase == "degraded", seconds=60)
        assert of(node, "fabric") == "blocked: irdma0 port 1 is DOWN, Disabled, and [fabric] allow-tcp = false"
        await node.world.clock.sleep(100)
        assert starts(node.world, RAY) == starts(node.world, VLLM) == 0
        fault(node, "")
        await node.until(lambda status: over(status) == GOOD and answering(status), seconds=200)


@virtual
async def test_without_tcp_a_running_model_is_left_alone_and_the_node_at_fault_named() -> None:
    async with serving() as node:
        assert node.engine
        node.text += "\n[fabric]\nallow-tcp = false\n"
        await node.engine.apply("uid 0: apply")
        node.world.cluster.others["halo2"].record["rdma"] = "irdma0 port 1 is DOWN, Disabled"
        node.world.changed("records")
        await node.until(lambda status: status.phase == "degraded", seconds=60)
        assert of(node, "ray") == "blocked: halo2: irdma0 port 1 is DOWN, Disabled; [fabric] allow-tcp = false"
        await node.world.clock.sleep(100)
        assert starts(node.world, VLLM) == 1


@virtual
async def test_a_card_that_is_not_of_the_demanded_kind_is_named() -> None:
    async with living(world()) as node:
        assert node.engine
        node.text += '\n[fabric]\nkind = "roce"\n'
        node.engine.reread()
        fault(node, "iwarp")
        await node.engine.serve(MODEL, (), by="uid 0: serve")
        await node.until(lambda status: of(node, "fabric").startswith("blocked"), seconds=60)
        assert "irdma0 is iWARP" in of(node, "fabric")
        assert starts(node.world, RAY) == 0


@virtual
async def test_a_worker_follows_the_rung_of_its_head() -> None:
    async with living(world("halo2")) as node:
        node.world.cluster.switch("halo1", on=True)
        await node.until(lambda status: status.phase == "ready", seconds=60)
        for rung, off in (("rdma", "0"), ("tcp", "1"), ("rdma", "0")):
            node.world.cluster.others["halo1"].record["rung"] = rung
            node.world.changed("records")
            await node.until(partial(ray_is_told, node, "NCCL_IB_DISABLE", off), seconds=60)


@virtual
async def test_a_worker_that_has_lost_rdma_says_so_and_leaves_a_model_to_its_head() -> None:
    async with living(world("halo2")) as node:
        node.world.cluster.switch("halo1", on=True)
        await node.until(lambda status: status.phase == "ready", seconds=60)
        node.world.cluster.place()
        fault(node, "gids")
        await node.until(lambda _: "none of its GIDs" in node.world.cluster.kept.get("rdma", ""), seconds=60)
        await node.world.clock.sleep(60)
        assert calls(node) == [("start", "ray"), ("start", "evidence")]  # at the same time as its head, and once
        assert request(node)["why"].startswith("RDMA is lost: irdma0 port 1 has ")
        assert node.world.cluster.kept["rung"] == "rdma"
        node.world.cluster.others["halo1"].record["rung"] = "tcp"
        node.world.changed("records")
        await node.until(partial(ray_is_told, node, "NCCL_IB_DISABLE", "1"), seconds=60)
        assert calls(node)[2:] == [("stop", "ray"), ("start", "ray")]


@virtual
async def test_a_worker_whose_ranks_died_of_lost_rdma_saves_what_its_port_says_before_it_follows() -> None:
    async with living(world("halo2")) as node:
        node.world.cluster.switch("halo1", on=True)
        await node.until(lambda status: status.phase == "ready", seconds=60)
        fault(node, "down")
        await node.until(partial(ray_is_told, node, "NCCL_IB_DISABLE", "1"), seconds=60)
        await node.until(lambda status: status.phase == "ready", seconds=60)
        assert calls(node) == [("start", "ray"), *RESTARTED]


@virtual
async def test_thunderbolt_is_served_over_tcp_and_said_so() -> None:
    made = world()
    nic = made.network.nics[FABRIC]
    nic.link = replace(nic.link, driver="thunderbolt-net", max_mtu=65522)
    async with living(made) as node:
        assert node.engine
        node.text = node.text.replace('driver = "ice"', 'driver = "thunderbolt-net"')
        node.engine.reread()
        await node.engine.serve(MODEL, (), by="uid 0: serve")
        await node.answers(seconds=120)
        assert over(node.status) == f"TCP over {FABRIC}, 40 Gb/s"
        assert told(node, "NCCL_IB_DISABLE") == ["1"] * 2
