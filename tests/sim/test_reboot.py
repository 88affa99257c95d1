"""Kernel arguments that wait for a reboot: who is told, when strixd reboots by itself, and when it gives up."""

from __future__ import annotations

import json
from dataclasses import replace

from strixd.engine import lastlook
from strixd.engine.reboot import AGAIN, LINE, MOTD, PATIENCE, SERVED
from strixd.engine.status import ResourceView, Status
from strixd.errors import Rejected
from strixd.resources import reboots
from strixd.sim import World, simulated_host
from strixd.sim.boot import booted
from strixd.sim.vllm import TIMEOUT
from strixd.sim.world import RAY, VLLM
from tests.sim.node import MODEL, Node, answering, cluster_toml, virtual, world
from tests.sim.node import living as plainly_living

AUTO = '[kernel]\nreboot = "auto"\n'


def living(world: World, text: str = AUTO) -> Node:
    node = Node(world)
    node.text = cluster_toml() + text
    return node


def cmdline(status: Status) -> ResourceView:
    return next(view for view in status.resources if view.name == "cmdline")


def told(status: Status) -> str:
    return "; ".join(cmdline(status).facts)


async def rebooted(node: Node, *, obeyed: bool) -> None:
    """What login1 does. `obeyed`: the written arguments run afterwards."""
    await node.kill()
    running = node.world.boot_files.content.running
    node.world.reboot()
    if not obeyed:
        node.world.boot_files.content = replace(node.world.boot_files.content, running=running)
    await node.start()


@virtual
async def test_never_means_never_and_whoever_logs_in_is_told() -> None:
    async with plainly_living(world()) as node:
        await node.until(lambda status: cmdline(status).condition == "reboot", seconds=30)
        await node.world.clock.sleep(120)
        assert node.world.reboots_asked == 0
        assert node.world.disk.files[MOTD] == LINE
        writes = [call for call in node.world.writes if MOTD in call]
        assert len(writes) == 1
        await rebooted(node, obeyed=True)
        await node.until(lambda status: cmdline(status).condition == "ok", seconds=30)
        assert MOTD not in node.world.disk.files


@virtual
async def test_auto_reboots_once_when_that_helps() -> None:
    node = living(world())
    await node.start()
    await node.until(lambda _: node.world.reboots_asked == 1, seconds=30)
    (attempt,) = json.loads(node.world.disk.files[reboots.RECORD])
    assert attempt["boot"] == node.world.boot_id
    await node.world.clock.sleep(PATIENCE / 2)
    assert node.world.reboots_asked == 1
    assert "a reboot has been asked of login1" in told(node.status)
    await rebooted(node, obeyed=True)
    await node.until(lambda status: cmdline(status).condition == "ok", seconds=30)
    await node.world.clock.sleep(60)
    assert node.world.reboots_asked == 1
    assert reboots.RECORD not in node.world.disk.files
    await node.kill()


@virtual
async def test_at_most_twice_for_the_same_arguments_then_stuck_until_a_person_says_try() -> None:
    node = living(world())
    await node.start()
    for times in (1, 2):
        await node.until(lambda _, times=times: node.world.reboots_asked == times, seconds=30)  # type: ignore[misc]
        await rebooted(node, obeyed=False)
    await node.until(lambda status: cmdline(status).condition == "stuck", seconds=30)
    await node.world.clock.sleep(2 * PATIENCE)
    assert node.world.reboots_asked == 2
    assert cmdline(node.status).why.startswith("rebooted 2 times, and the running kernel still differs: iommu=pt")
    assert "cat /proc/cmdline; grubby --info=DEFAULT" in cmdline(node.status).hint
    assert node.engine
    for order in (node.engine.serve(MODEL, (), by="uid 0: serve"), node.engine.drain("uid 0: drain")):
        await order
        await node.world.clock.sleep(60)
    assert node.world.reboots_asked == 2, "that was not about the host"
    await node.engine.apply("uid 0: apply")
    await node.until(lambda _: node.world.reboots_asked == 3, seconds=30)
    await node.kill()


@virtual
async def test_other_arguments_are_tried_anew() -> None:
    node = living(world())
    await node.start()
    for times in (1, 2):
        await node.until(lambda _, times=times: node.world.reboots_asked == times, seconds=30)  # type: ignore[misc]
        await rebooted(node, obeyed=False)
    await node.until(lambda status: cmdline(status).condition == "stuck", seconds=30)
    await node.kill()
    node.text += 'arguments = ["quiet2"]\n'
    await node.start()
    await node.until(lambda _: node.world.reboots_asked == 3, seconds=30)
    assert len(json.loads(node.world.disk.files[reboots.RECORD])) == 1
    await node.kill()


@virtual
async def test_a_head_whose_model_answers_waits_until_it_is_stopped() -> None:
    node = living(world(), "")
    engine = await node.start()
    await engine.serve(MODEL, (), by="uid 0: serve")
    await node.answers(seconds=120)
    node.text = cluster_toml() + AUTO
    await node.restart()
    await node.until(answering, seconds=30)
    await node.world.clock.sleep(120)
    assert node.world.disk.files[SERVED] == node.world.systemd.read(VLLM).invocation
    server = node.world.server()
    assert server
    server.hang()  # busy, or ill: as long as that is not known, nothing that a reboot may end
    await node.restart()
    await node.world.clock.sleep(TIMEOUT - 1)
    assert node.world.reboots_asked == 0
    node.world.serving.listeners[8000].hung = False  # it was busy
    await node.world.clock.sleep(120)
    assert node.world.reboots_asked == 0
    assert f"reboots by itself when no model is being served; waits: {MODEL} answers" in told(node.status)
    assert node.engine
    await node.engine.stop("uid 0: stop")
    await node.until(lambda _: node.world.reboots_asked == 1, seconds=30)
    await node.kill()


@virtual
async def test_a_model_that_never_answered_does_not_hinder() -> None:
    node = living(world(), "")
    engine = await node.start()
    await engine.serve(MODEL, (), by="uid 0: serve")
    await node.until(lambda _: node.world.systemd.read(VLLM).active == "active", seconds=120)
    node.world.pace = replace(node.world.pace, load=1e6)
    node.text = cluster_toml() + AUTO
    await node.restart()
    await node.until(lambda _: node.world.reboots_asked == 1, seconds=60)
    assert not answering(node.status)
    await node.kill()


@virtual
async def test_a_worker_waits_while_ranks_run_on_it() -> None:
    node = living(world("halo2"), "")
    await node.start()
    await node.until(lambda _: node.world.systemd.active(RAY), seconds=60)
    node.world.systemd.titles[RAY] = ("raylet", "ray::IDLE", "ray::RayWorkerWrapper.execute_method")
    node.text = cluster_toml() + AUTO
    await node.restart()
    await node.world.clock.sleep(60)
    assert node.world.reboots_asked == 0
    assert "waits: a rank of a model runs here" in told(node.status)
    node.world.systemd.titles[RAY] = ("raylet", "ray::IDLE")
    await node.until(lambda _: node.world.reboots_asked == 1, seconds=60)
    await node.kill()


@virtual
async def test_paused_is_paused() -> None:
    node = living(world(), "")
    engine = await node.start()
    await engine.pause("uid 0: pause")
    node.text = cluster_toml() + AUTO
    await node.restart()
    await node.world.clock.sleep(60)
    assert node.world.reboots_asked == 0
    assert node.engine
    await node.engine.resume("uid 0: resume")
    await node.until(lambda _: node.world.reboots_asked == 1, seconds=30)
    await node.kill()


@virtual
async def test_a_refusal_of_login1_is_no_attempt() -> None:
    node = living(world())
    node.world.fail("power.reboot", Rejected("Cannot reboot this host: not now"))
    await node.start()
    await node.world.clock.sleep(AGAIN / 2)
    assert (node.world.reboots_asked, reboots.RECORD in node.world.disk.files) == (0, False)
    await node.until(lambda _: node.world.reboots_asked == 1, seconds=AGAIN)
    await node.kill()


@virtual
async def test_without_a_record_on_disk_nothing_is_rebooted() -> None:
    node = living(world(), "")
    await node.start()
    await node.until(lambda status: cmdline(status).condition == "reboot", seconds=30)
    node.world.disk.full = True
    node.text = cluster_toml() + AUTO
    await node.restart()
    await node.world.clock.sleep(3 * AGAIN)
    assert node.world.reboots_asked == 0
    await node.kill()


@virtual
async def test_a_kernel_installed_in_the_last_moment_gets_the_arguments() -> None:
    async with plainly_living(world()) as node:
        await node.until(lambda status: cmdline(status).condition == "reboot", seconds=30)
        status, wish = node.status, node.engine._loop.wish  # type: ignore[union-attr]
        await node.kill()
        node.world.install_kernel("6.19.0", "ro quiet")
        await lastlook.last_look(simulated_host(node.world), wish, status)
        assert "iommu=pt" in booted(node.world.boot_files.content).running
        node.world.install_kernel("6.20.0", "ro quiet")
        paused = replace(wish, orders=replace(wish.orders, paused=True))
        await lastlook.last_look(simulated_host(node.world), paused, status)
        assert "iommu=pt" not in booted(node.world.boot_files.content).running


@virtual
async def test_the_last_look_does_not_wait_for_a_hung_grubby() -> None:
    async with plainly_living(world()) as node:
        await node.until(lambda status: cmdline(status).condition == "reboot", seconds=30)
        status, wish = node.status, node.engine._loop.wish  # type: ignore[union-attr]
        await node.kill()
        node.world.install_kernel("6.19.0", "ro quiet")
        node.world.calls.hung.add("boot")
        begun = node.world.clock.now()
        await lastlook.last_look(simulated_host(node.world), wish, status)
        assert node.world.clock.now() - begun <= lastlook.WITHIN


@virtual
async def test_a_kernel_installed_later_is_mended_at_once() -> None:
    async with plainly_living(world()) as node:
        await node.until(lambda status: cmdline(status).condition == "reboot", seconds=30)
        await node.world.clock.sleep(200)
        node.world.install_kernel("6.19.0", "ro quiet")
        await node.world.clock.sleep(1.0)
        assert "iommu=pt" in booted(node.world.boot_files.content).running
