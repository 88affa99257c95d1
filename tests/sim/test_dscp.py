"""[fabric] dscp in service: given to rdma_cm and to the containers, again after a reset, and taken back."""

from __future__ import annotations

from strixd.engine.status import ResourceView
from strixd.sim.hardware import Fault
from tests.quadlet_text import environment
from tests.sim.node import Node, answering, living, serving, virtual, world

GIVEN = 26 << 2


def fault(node: Node, kind: Fault) -> None:
    node.world.rdma.fault = kind
    node.world.changed("rdma")


def view(node: Node) -> ResourceView:
    return next(view for view in node.status.resources if view.name == "dscp")


def ranks(node: Node) -> str | None:
    """What the ranks are told."""
    text = node.world.disk.files["/run/containers/systemd/strixd-ray.container"]
    return environment(text).get("NCCL_IB_TC")


def dscp(node: Node, value: int) -> None:
    assert node.engine
    node.text = node.text.partition("\n[fabric]")[0] + (f"\n[fabric]\ndscp = {value}\n" if value else "")
    node.engine.reread()


@virtual
async def test_a_dscp_is_given_to_all_rdma_of_the_port_and_taken_back_with_the_file() -> None:
    async with serving() as node:
        node.world.rdma.tos = 32
        dscp(node, 26)
        await node.until(lambda _: node.world.rdma.tos == GIVEN, seconds=60)
        await node.until(lambda status: ranks(node) == "104" and answering(status), seconds=200)
        assert (view(node).condition, view(node).why) == ("ok", "")
        dscp(node, 0)
        await node.until(lambda _: node.world.rdma.tos == 32, seconds=60)


@virtual
async def test_a_device_that_was_reset_gets_its_dscp_again_and_an_undo_takes_it_back() -> None:
    async with living(world()) as node:
        assert node.engine
        dscp(node, 26)
        await node.until(lambda _: node.world.rdma.tos == GIVEN, seconds=60)
        await node.restart()
        node.world.rdma.tos = 0
        await node.until(lambda _: node.world.rdma.tos == GIVEN, seconds=60)
        await node.engine.undo("uid 0: undo")
        await node.until(lambda _: node.world.rdma.tos == 0, seconds=60)
        await node.world.clock.sleep(120)
        assert node.world.rdma.tos == 0


@virtual
async def test_without_rdma_no_dscp_is_set_and_without_rdma_cm_the_next_command_is_named() -> None:
    async with living(world()) as node:
        node.world.rdma.loaded = False
        dscp(node, 26)
        await node.until(lambda _: view(node).condition == "blocked", seconds=60)
        assert view(node).hint == "modprobe rdma_cm"
        await node.until(lambda status: status.phase == "ready", seconds=60)  # a node answers without it
        fault(node, "iwarp")
        await node.until(lambda _: view(node).condition == "ok", seconds=60)
        fault(node, "")
        node.world.rdma.loaded = True
        await node.until(lambda _: node.world.rdma.tos == GIVEN, seconds=60)
