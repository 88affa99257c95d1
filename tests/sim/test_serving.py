"""From an order to a completion, and back to one after each fault that leaves the machines able to work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

import pytest

from strixd.engine.supervise import SELDOM
from strixd.errors import Refused, Rejected
from strixd.orders import Workload
from strixd.resources.vllm import CALM, ONLY_WORKS, RANK_LOST, STILL
from strixd.sim import faults
from strixd.sim.vllm import Listener
from strixd.sim.world import FABRIC, IMAGE, RAY, VLLM
from tests.sim.node import MODEL, Node, answering, explain, living, serving, starts, virtual, world


@virtual
async def test_an_order_ends_in_a_completion() -> None:
    async with living(world()) as node:
        assert node.engine
        await node.engine.serve(MODEL, (), by="uid 0: serve")
        assert 25 < await node.answers(seconds=120) < 60
        conditions = {view.name: view.condition for view in node.status.resources}
        assert conditions.pop("cmdline") == "reboot"  # written, and not yet what runs
        assert set(conditions.values()) == {"ok"}
        assert [member.joined for member in node.status.members] == [True, True]


@virtual
async def test_nothing_is_served_without_an_order() -> None:
    async with living(world()) as node:
        await node.until(lambda status: status.phase == "ready", seconds=120)
        await node.world.clock.sleep(600)
        assert starts(node.world, VLLM) == 0
        assert node.status.model is None


@virtual
async def test_with_everything_in_place_no_call_writes() -> None:
    async with serving() as node:
        await node.world.clock.sleep(30)
        calls = list(node.world.calls.writes)
        await node.world.clock.sleep(3600)
        assert node.world.calls.writes == calls


@virtual
async def test_a_worker_may_come_an_hour_late() -> None:
    late = world()
    late.cluster.others["halo2"].on = False
    async with living(late) as node:
        assert node.engine
        await node.engine.serve(MODEL, (), by="uid 0: serve")
        await late.clock.sleep(3600)
        assert starts(late, VLLM) == 0
        assert "halo2" in explain(node.status)
        late.cluster.switch("halo2", on=True)
        await node.answers(seconds=60)
        assert starts(late, RAY) == 1


@virtual
async def test_a_worker_waits_for_its_head_and_joins_when_it_comes() -> None:
    waiting = world("halo2")
    waiting.cluster.others["halo1"].on = False
    async with living(waiting) as node:
        await waiting.clock.sleep(3600)
        assert starts(waiting, RAY) == 1
        waiting.cluster.switch("halo1", on=True)
        await node.until(lambda status: status.phase == "ready", seconds=60)
        assert node.engine
        with pytest.raises(Refused, match="worker"):
            await node.engine.serve(MODEL, (), by="uid 0: serve")


@virtual
async def test_a_worker_joins_the_successor_of_its_head() -> None:
    member = world("halo2")
    member.cluster.begin()
    async with living(member) as node:
        await node.until(lambda status: status.phase == "ready", seconds=60)
        for away in (1.0, 30.0, 300.0):
            member.cluster.switch("halo1", on=False)
            await member.clock.sleep(away)
            member.cluster.switch("halo1", on=True)
            await node.until(lambda status: status.phase == "ready", seconds=120)
            await member.clock.sleep(120)
            assert node.status.phase == "ready"


async def _kill_server(node: Node) -> None:
    node.world.kill(VLLM)


async def _kill_engine(node: Node) -> None:
    server = node.world.server()
    assert server
    server.fail()


async def _kill_raylet(node: Node) -> None:
    node.world.kill(RAY)


async def _kill_worker(node: Node) -> None:
    node.world.cluster.switch("halo2", on=False)
    await node.world.clock.sleep(4)
    node.world.cluster.switch("halo2", on=True)


async def _cut_long(node: Node) -> None:
    node.world.plug(cable=False)
    await node.world.clock.sleep(90)
    node.world.plug(cable=True)


async def _stop_by_hand(node: Node) -> None:
    await node.world.systemd.stop(VLLM)


async def _remove_units(node: Node) -> None:
    for path in [path for path in node.world.disk.files if path.endswith(".container")]:
        del node.world.disk.files[path]
    node.world.systemd.reload()
    node.world.kill(VLLM)


FAULTS = (_kill_server, _kill_engine, _kill_raylet, _kill_worker, _cut_long, _stop_by_hand, _remove_units)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__.strip("_"))
@virtual
async def test_tokens_again(fault: Callable[[Node], Awaitable[None]]) -> None:
    async with serving() as node:
        await node.world.clock.sleep(600)
        await fault(node)
        await node.until(lambda status: not answering(status), seconds=60)
        await node.answers(seconds=180)
        assert node.status.incident
        assert node.status.incident.ended


@pytest.mark.parametrize("fault", FAULTS[:2], ids=lambda fault: fault.__name__.strip("_"))
@virtual
async def test_a_full_disk_ends_no_daemon(fault: Callable[[Node], Awaitable[None]]) -> None:
    """The units are written already; the history of the incident, which decides nothing, is written at its end."""
    async with serving() as node:
        await node.world.clock.sleep(600)
        node.world.disk.full = True
        await fault(node)
        await node.until(lambda status: not answering(status), seconds=60)
        await node.answers(seconds=180)
        assert node.status.incident
        assert node.status.incident.ended
        assert node.engine
        with pytest.raises(Rejected, match=r"Cannot write .*: No space left on device"):
            await node.engine.pause("uid 0: pause")
        assert not node.dead


@virtual
async def test_a_short_cut_restarts_nothing() -> None:
    async with serving() as node:
        before = starts(node.world, VLLM), starts(node.world, RAY)
        node.world.plug(cable=False)
        await node.world.clock.sleep(3)
        node.world.plug(cable=True)
        await node.world.clock.sleep(600)
        assert answering(node.status)
        assert (starts(node.world, VLLM), starts(node.world, RAY)) == before


@virtual
async def test_with_the_cable_out_nothing_loops() -> None:
    async with serving() as node:
        node.world.plug(cable=False)
        await node.world.clock.sleep(300)
        before = len(node.world.calls.writes)
        await node.world.clock.sleep(2 * 3600)
        assert len(node.world.calls.writes) - before < 5, node.world.writes[before:]
        assert "no carrier" in explain(node.status)
        node.world.plug(cable=True)
        await node.answers(seconds=120)


@pytest.mark.parametrize("fault", ["missing", "memory", "flag"])
@virtual
async def test_what_can_never_work_is_named_and_not_repeated(fault: str) -> None:
    broken = world()
    broken.serving.fault = fault
    async with living(broken) as node:
        assert node.engine
        await node.engine.serve(MODEL, (), by="uid 0: serve")
        await node.until(lambda status: status.phase == "stuck", seconds=120)
        await broken.clock.sleep(3600)
        assert starts(broken, VLLM) == 1
        broken.serving.fault = ""
        await node.engine.serve(MODEL, (), by="uid 0: serve")
        await node.answers(seconds=120)


@virtual
async def test_a_crash_that_returns_is_no_loop_and_ends_with_its_cause() -> None:
    async with serving() as node:
        node.world.serving.fault = "crash"
        node.world.kill(VLLM)
        before = starts(node.world, VLLM)
        await node.world.clock.sleep(1800)
        assert starts(node.world, VLLM) - before < 25
        assert node.status.phase == "stuck"
        assert "and none came well" in explain(node.status)
        node.world.serving.fault = ""
        await node.answers(seconds=SELDOM + 60)


@virtual
async def test_a_hung_server_is_started_again_by_its_whole() -> None:
    async with serving() as node:
        await node.world.clock.sleep(600)
        hung, began = node.world.server(), node.world.clock.now()
        assert hung
        hung.hang()
        await node.until(lambda _: node.world.server() is not hung, seconds=60)
        await node.answers(seconds=120)
        incident = node.status.incident
        assert incident
        assert incident.cause == f"{MODEL} has stopped answering: no completion within 20 s"
        assert began <= incident.began <= began + 15
        names = [moment.name for moment in incident.moments]
        assert names == ["noticed", "decided", "stopped", "started", "loaded", "serving"]


@virtual
async def test_a_server_that_hung_before_strixd_was_restarted_is_not_taken_for_a_loading_one() -> None:
    async with serving() as node:
        hung = node.world.server()
        assert hung
        hung.hang()
        await node.restart()
        await node.until(lambda _: node.world.server() is not hung, seconds=60)
        await node.answers(seconds=120)
        assert node.status.incident
        assert node.status.incident.cause == f"{MODEL} has stopped answering: no completion within 20 s"


@virtual
async def test_a_hung_server_is_left_alone_while_the_link_is_away_and_for_a_while_after() -> None:
    """What stands still because of the link moves again by itself, and a restart could not succeed without it."""
    async with serving() as node:
        server = node.world.server()
        assert server
        node.world.network.carrier(FABRIC, present=False)
        server.hang()
        await node.world.clock.sleep(300)
        assert node.world.server() is server
        node.world.network.carrier(FABRIC, present=True)
        await node.world.clock.sleep(CALM - 5)
        assert node.world.server() is server
        await node.until(lambda _: node.world.server() is not server, seconds=30)
        await node.answers(seconds=120)


@pytest.mark.parametrize(("fault", "seconds"), [("silent", STILL), ("spinning", ONLY_WORKS)])
@virtual
async def test_a_start_that_makes_no_progress_is_begun_anew(fault: str, seconds: float) -> None:
    stalled = world()
    stalled.serving.fault = fault
    async with living(stalled) as node:
        assert node.engine
        await node.engine.serve(MODEL, (), by="uid 0: serve")
        await node.until(lambda _: starts(stalled, VLLM) == 1, seconds=120)
        await stalled.clock.sleep(seconds - 10)
        assert starts(stalled, VLLM) == 1
        stalled.serving.fault = ""
        await node.answers(seconds=180)
        assert starts(stalled, VLLM) == 2


@virtual
async def test_a_start_that_has_lost_a_rank_is_begun_anew() -> None:
    orphaned = world()
    async with living(orphaned) as node:
        assert node.engine
        await node.engine.serve(MODEL, (), by="uid 0: serve")
        await node.until(lambda _: orphaned.cluster.ranks == 2, seconds=120)
        await orphaned.clock.sleep(2)  # they are seen
        faults.inject(orphaned, "ranks lost")
        await node.until(lambda _: starts(orphaned, VLLM) == 2, seconds=RANK_LOST + 15)
        await node.answers(seconds=120)
        assert starts(orphaned, VLLM) == 2


@virtual
async def test_a_model_that_needs_twenty_minutes_is_let_load() -> None:
    slow = world()
    slow.pace.load = 1200.0
    async with living(slow) as node:
        assert node.engine
        await node.engine.serve(MODEL, (), by="uid 0: serve")
        assert await node.answers(seconds=1400) > 1200
        assert starts(slow, VLLM) == 1


@pytest.mark.parametrize("how", ["restart", "reboot"])
@virtual
async def test_an_incident_outlives_strixd_and_a_boot(how: str) -> None:
    async with serving() as node:
        await node.world.clock.sleep(600)
        await node.kill()
        node.world.kill(VLLM)
        if how == "reboot":
            node.world.reboot()
        await node.start()
        await node.until(lambda status: status.incident is not None, seconds=20)
        first = node.status.incident
        await node.restart()
        await node.answers(seconds=120)
        assert first
        assert node.status.incident
        assert (node.status.incident.id, bool(node.status.incident.ended)) == (first.id, True)
        assert first.resource == ("host" if how == "reboot" else "vllm")


@virtual
async def test_no_incident_where_strixd_only_starts_anew_or_somebody_gives_an_order() -> None:
    async with serving() as node:
        await node.world.clock.sleep(60)
        await node.restart()
        await node.answers(seconds=60)
        assert node.engine
        await node.engine.serve("strixd/other", (), by="uid 0: serve")
        await node.until(lambda status: not answering(status), seconds=20)
        await node.answers(seconds=120)
        assert node.status.incident is None


@virtual
async def test_an_order_ends_an_incident_and_says_so() -> None:
    async with serving() as node:
        node.world.serving.fault = "crash"
        node.world.kill(VLLM)
        await node.until(lambda status: status.incident is not None, seconds=20)
        assert node.engine
        await node.engine.stop("uid 0: stop")
        await node.until(lambda status: bool(status.incident and status.incident.ended), seconds=20)
        assert node.status.incident
        assert node.status.incident.moments[-1].name == "ordered"


@virtual
async def test_a_restart_of_strixd_touches_no_workload() -> None:
    async with serving() as node:
        before = node.world.snapshot()
        calls = len(node.world.calls.writes)
        await node.restart()
        await node.answers(seconds=30)
        assert node.world.snapshot()["units"] == before["units"]
        assert [call for call in node.world.calls.writes[calls:] if call.port != "ray"] == []


@virtual
async def test_a_rebooted_head_serves_again() -> None:
    async with serving() as node:
        await node.reboot()
        await node.answers(seconds=180)


@virtual
async def test_the_orders_are_kept_without_the_daemon() -> None:
    async with living(world()) as node:
        assert node.engine
        await node.engine.serve(MODEL, (), by="uid 0: serve")
        await node.restart()
        await node.answers(seconds=120)


@virtual
async def test_stop_ends_the_model_and_nothing_else() -> None:
    async with serving() as node:
        assert node.engine
        await node.engine.stop("uid 0: stop")
        await node.until(lambda status: status.model is None and status.phase == "ready", seconds=30)
        assert not node.world.systemd.active(VLLM)
        assert node.world.systemd.active(RAY)


async def _drain(node: Node, running: float) -> float:
    """Simulated seconds that it took."""
    assert node.engine
    node.world.serving.running = running
    await node.engine.drain("uid 0: drain")
    return await node.until(lambda status: status.phase == "drained", seconds=120)


@virtual
async def test_a_drained_cluster_serves_nothing_until_undrain_not_even_after_a_reboot() -> None:
    async with serving() as node:
        assert 20 < await _drain(node, running=20.0) < 40
        assert not node.world.systemd.active(VLLM)
        assert [call for call in node.world.calls.writes if (call.method, call.args) == ("stop", (VLLM,))] == []
        await node.reboot()
        await node.until(lambda status: status.phase == "drained", seconds=120)
        assert starts(node.world, VLLM) == 1
        assert node.status.model
        assert node.status.model.name == MODEL
        assert node.engine
        with pytest.raises(Refused, match="drained") as refused:
            await node.engine.serve(MODEL, (), by="uid 0: serve")
        assert "undrain" in refused.value.hint
        await node.engine.undrain("uid 0: undrain")
        await node.answers(seconds=120)
        assert node.status.incident is None


@virtual
async def test_requests_that_never_end_are_cut_off_and_that_is_said() -> None:
    async with serving() as node:
        assert 60 < await _drain(node, running=3600.0) < 80
        vllm = next(view for view in node.status.resources if view.name == "vllm")
        assert vllm.facts[-1] == "its engine had not ended after 60 s: what still ran was cut off"


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("order", ["drain", "restart vllm"])
@virtual
async def test_a_server_that_loads_has_no_requests_and_is_ended_at_once(order: str, restarted: bool) -> None:
    async with living(world()) as node:
        await node.until(lambda status: status.phase == "ready", seconds=120)
        node.world.serving.fault = "spinning"
        assert node.engine
        await node.engine.serve(MODEL, (), by="uid 0: serve")
        await node.until(lambda _: node.world.systemd.active(VLLM), seconds=60)
        await node.world.clock.sleep(10)
        if restarted:
            await node.restart()
        node.world.serving.fault = ""
        await (node.engine.drain("uid 0: drain") if order == "drain" else node.engine.restart("vllm", "uid 0: restart"))
        if order == "drain":
            await node.until(lambda status: status.phase == "drained", seconds=10)
            assert "cut off" not in explain(node.status) + str(node.status.resources[-1].facts)
        else:
            await node.answers(seconds=60)
            assert starts(node.world, VLLM) == 2


@virtual
async def test_a_restart_of_strixd_neither_forgets_a_drain_nor_repeats_it() -> None:
    async with serving() as node:
        assert node.engine
        node.world.serving.running = 30.0
        await node.engine.drain("uid 0: drain")
        await node.world.clock.sleep(10)
        await node.restart()
        await node.until(lambda status: status.phase == "drained", seconds=60)
        asked = [call for call in node.world.calls.writes if call.method == "interrupt"]
        assert len(asked) == 1


@virtual
async def test_undrain_in_the_middle_of_a_drain_is_no_incident() -> None:
    async with serving() as node:
        assert node.engine
        node.world.serving.running = 30.0
        await node.engine.drain("uid 0: drain")
        await node.world.clock.sleep(10)
        await node.engine.undrain("uid 0: undrain")
        await node.until(lambda status: not answering(status), seconds=10)
        await node.answers(seconds=120)
        assert starts(node.world, VLLM) == 2
        assert node.status.incident is None


@pytest.mark.parametrize("arguments", [("--max-model-len", "512"), ()], ids=["other words", "another model"])
@virtual
async def test_what_runs_ends_before_another_model_or_the_same_with_other_words_takes_its_place(
    arguments: tuple[str, ...],
) -> None:
    async with serving() as node:
        server = node.world.server()
        assert node.engine
        node.world.serving.running, ordered = 30.0, node.world.clock.now()
        await node.engine.serve(MODEL if arguments else "strixd/other", arguments, by="uid 0: serve")
        await node.until(lambda _: node.world.server() not in (server, None), seconds=90)
        assert 30 <= node.world.clock.now() - ordered < 60
        assert node.status.incident is None


@virtual
async def test_a_restart_of_strixd_with_other_settings_asks_the_model_before_it_ends_it() -> None:
    async with serving() as node:
        await node.kill()
        node.text += '[model]\narguments = ["--max-model-len", "512"]\n'
        node.world.serving.running, begun = 30.0, node.world.clock.now()
        server = node.world.server()
        await node.start()
        await node.until(lambda _: node.world.server() not in (server, None), seconds=90)
        assert 30 <= node.world.clock.now() - begun < 60


@virtual
async def test_a_fault_while_drained_is_no_incident() -> None:
    async with serving() as node:
        await _drain(node, running=0.0)
        node.world.kill(RAY)
        await node.until(lambda status: status.phase != "drained", seconds=30)
        await node.until(lambda status: status.phase == "drained", seconds=120)
        assert node.status.incident is None


@pytest.mark.parametrize("workload", ["vllm", "ray"])
@virtual
async def test_a_restart_by_order_is_one_and_no_incident(workload: Workload) -> None:
    async with serving() as node:
        assert node.engine
        await node.engine.restart(workload, "uid 0: restart")
        await node.until(lambda status: not answering(status), seconds=30)
        await node.answers(seconds=180)
        await node.restart()
        await node.world.clock.sleep(600)
        assert answering(node.status)
        assert starts(node.world, VLLM) == 2
        assert starts(node.world, RAY) == (2 if workload == "ray" else 1)
        assert node.status.incident is None


@virtual
async def test_incidents_are_told_the_newest_first() -> None:
    async with serving() as node:
        for _ in range(2):
            node.world.kill(VLLM)
            await node.until(lambda status: not answering(status), seconds=60)
            await node.answers(seconds=180)
        node.world.kill(VLLM)
        await node.until(lambda status: not answering(status), seconds=60)
        assert node.engine
        found = node.engine.incidents(10)
        assert [bool(each.ended) for each in found] == [False, True, True]
        assert found[1].began > found[2].began
        assert node.engine.incidents(1) == found[:1]


@virtual
async def test_what_makes_no_sense_is_refused_with_what_to_do() -> None:
    async with living(world()) as node:
        assert node.engine
        with pytest.raises(Refused, match="no model is ordered"):
            await node.engine.restart("vllm", "uid 0: restart")
        await node.engine.pause("uid 0: pause")
        for refused in (node.engine.drain, node.engine.undrain, partial(node.engine.restart, "ray")):
            with pytest.raises(Refused, match="paused"):
                await refused("uid 0: drain")
    async with living(world("halo2")) as node:
        assert node.engine
        for refused in (node.engine.drain, node.engine.undrain, partial(node.engine.restart, "vllm")):
            with pytest.raises(Refused, match="worker"):
                await refused("uid 0: drain")


@virtual
async def test_while_paused_nothing_is_mended() -> None:
    async with serving() as node:
        assert node.engine
        await node.engine.pause("uid 0: pause")
        node.world.kill(VLLM)
        await node.world.clock.sleep(600)
        assert not node.world.systemd.active(VLLM)
        await node.engine.resume("uid 0: resume")
        await node.answers(seconds=120)


@virtual
async def test_an_image_that_cannot_be_pulled_is_said_and_comes_when_it_can() -> None:
    poor = world()
    poor.registry.fault = "manifest unknown"
    async with living(poor) as node:
        assert node.engine
        await node.engine.serve(MODEL, (), by="uid 0: serve")
        await poor.clock.sleep(1800)
        assert "manifest unknown" in explain(node.status)
        assert starts(poor, IMAGE) < 30
        poor.registry.fault = ""
        await node.answers(seconds=600)


@virtual
async def test_a_gated_model_is_said_before_it_is_started() -> None:
    gated = world()
    gated.hub[MODEL] = f"Cannot fetch {MODEL}: accept its licence at https://hub/{MODEL}"
    async with living(gated) as node:
        assert node.engine
        await node.engine.serve(MODEL, (), by="uid 0: serve")
        await node.until(lambda status: "licence" in explain(status), seconds=60)
        assert starts(gated, VLLM) == 0


@virtual
async def test_a_model_that_was_fetched_is_started_whatever_the_hub_says_now() -> None:
    fetched = world()
    fetched.hub[MODEL] = f"Cannot fetch {MODEL}: accept its licence at https://hub/{MODEL}"
    fetched.disk.put(f"/var/lib/strixd/models/hub/models--{MODEL.replace('/', '--')}/refs", "")
    async with living(fetched) as node:
        assert node.engine
        await node.engine.serve(MODEL, (), by="uid 0: serve")
        await node.answers(seconds=120)


async def _ends(node: Node) -> None:
    node.world.kill(VLLM)


async def _restart(node: Node) -> None:
    assert node.engine
    await node.engine.restart("vllm", "uid 0: restart")


async def _drain_and_undrain(node: Node) -> None:
    assert node.engine
    await node.engine.drain("uid 0: drain")
    await node.world.clock.sleep(120)
    await node.engine.undrain("uid 0: undrain")


async def _stop_and_serve(node: Node) -> None:
    assert node.engine
    await node.engine.stop("uid 0: stop")
    await node.world.clock.sleep(120)
    await node.engine.serve(MODEL, (), by="uid 0: serve")


async def _apply_and_end(node: Node) -> None:
    assert node.engine
    await node.engine.apply("uid 0: apply")
    node.world.kill(VLLM)


@pytest.mark.parametrize("again", [_ends, _restart, _drain_and_undrain, _stop_and_serve, _apply_and_end])
@virtual
async def test_want_of_memory_is_tried_again_where_it_was_enough_before(
    again: Callable[[Node], Awaitable[None]],
) -> None:
    async with serving() as node:
        assert node.engine
        node.world.serving.fault = "memory"
        await again(node)
        await node.until(lambda status: "not enough memory" in explain(status), seconds=400)
        node.world.serving.fault = ""
        await node.answers(seconds=300)
        node.world.serving.fault = "memory"
        await node.engine.serve("strixd/larger", (), by="uid 0: serve")
        await node.until(lambda status: status.phase == "stuck", seconds=120)
        before = starts(node.world, VLLM)
        await node.world.clock.sleep(600)
        assert starts(node.world, VLLM) == before


@virtual
async def test_a_journal_that_cannot_be_read_keeps_no_model_down() -> None:
    async with serving() as node:
        node.world.calls.down.add("journal")
        node.world.kill(VLLM)
        await node.until(lambda status: status.incident is not None, seconds=20)
        await node.answers(seconds=120)


@virtual
async def test_a_node_with_another_image_is_named_and_nothing_is_served() -> None:
    odd = world()
    odd.cluster.others["halo2"].record["digest"] = "sha256:other"
    async with living(odd) as node:
        assert node.engine
        await node.engine.serve(MODEL, (), by="uid 0: serve")
        await node.until(lambda status: "halo2" in explain(status) and "sha256:other" in explain(status), seconds=60)
        await odd.clock.sleep(600)
        assert starts(odd, VLLM) == 0
        odd.cluster.others["halo2"].record.clear()
        await node.answers(seconds=120)


@pytest.mark.parametrize("port", ["network", "firewall", "units", "ray"])
@virtual
async def test_a_service_that_is_away_does_no_harm_and_is_picked_up_again(port: str) -> None:
    async with serving() as node:
        node.world.calls.down.add(port)
        await node.world.clock.sleep(120)
        assert port in explain(node.status)
        assert all(view.hint for view in node.status.resources if view.condition in ("blocked", "held"))
        assert node.world.systemd.active(VLLM)
        node.world.calls.down.clear()
        node.world.changed(port)
        await node.answers(seconds=60)
        assert starts(node.world, VLLM) == 1


@pytest.mark.parametrize("model", ["a/b/c", "日本/モデル"])
@virtual
async def test_an_odd_name_is_served(model: str) -> None:
    async with living(world()) as node:
        assert node.engine
        await node.engine.serve(model, (), by="uid 0: serve")
        await node.answers(seconds=120)


@virtual
async def test_the_cause_is_how_it_ended_even_if_it_was_first_seen_ending() -> None:
    async with serving() as node:
        record = node.world.systemd.records[VLLM]
        record.state = replace(record.state, active="deactivating")
        node.world.changed("it ends")
        await node.until(lambda status: status.incident is not None, seconds=10)
        node.world.kill(VLLM)
        await node.answers(seconds=180)
        incident = node.status.incident
        assert incident
        assert incident.ended
        assert incident.cause == f"{VLLM} killed by signal 9"


@virtual
async def test_the_look_for_the_image_before_ray_starts_again_is_not_its_cause() -> None:
    async with serving() as node:
        node.world.registry.look = 6.0
        node.world.kill(RAY)
        await node.until(lambda status: status.incident is not None, seconds=60)
        await node.answers(seconds=180)
        incident = node.status.incident
        assert incident
        assert (incident.resource, incident.cause) == ("ray", f"{RAY} ended with status 1")


TAKEN = "port {} is taken by nc (pid 4242, stranger.service)"


@virtual
async def test_a_stranger_on_the_port_of_the_api_is_named_and_waited_for() -> None:
    busy = world()
    busy.serving.listeners[8000] = Listener("")
    async with living(busy) as node:
        assert node.engine
        await node.engine.serve(MODEL, (), by="uid 0: serve")
        await node.until(lambda status: TAKEN.format(8000) in explain(status), seconds=60)
        await busy.clock.sleep(3600)
        assert starts(busy, VLLM) == 0
        del busy.serving.listeners[8000]
        await node.until(lambda status: starts(busy, VLLM) == 1, seconds=4)
        await node.answers(seconds=60)


@virtual
async def test_a_stranger_that_takes_the_port_of_a_killed_server_is_the_cause() -> None:
    async with serving() as node:
        node.world.kill(VLLM)
        node.world.serving.listeners[8000] = Listener("")
        await node.world.clock.sleep(600)
        assert starts(node.world, VLLM) == 1
        assert node.status.incident
        assert node.status.incident.cause == TAKEN.format(8000)
        del node.world.serving.listeners[8000]
        await node.answers(seconds=60)


@virtual
async def test_a_stranger_on_the_port_of_ray_is_named_and_waited_for() -> None:
    busy = world()
    busy.cluster.port_taken = True
    async with living(busy) as node:
        assert node.engine
        await node.engine.serve(MODEL, (), by="uid 0: serve")
        await node.until(lambda status: TAKEN.format(6379) in explain(status), seconds=60)
        await busy.clock.sleep(3600)
        assert starts(busy, RAY) == 0
        busy.cluster.port_taken = False
        await node.until(lambda status: starts(busy, RAY) == 1, seconds=4)
        await node.answers(seconds=120)


@virtual
async def test_who_listens_is_asked_before_a_start_only_and_never_on_a_worker() -> None:
    asked = AssertionError("who listens?")
    async with serving() as node:
        node.world.fail("listeners.on", asked)
        await node.world.clock.sleep(3600)
        assert answering(node.status)
        assert not node.dead
    member = world("halo2")
    member.cluster.begin()
    member.fail("listeners.on", asked)
    async with living(member) as node:
        await node.until(lambda status: status.phase == "ready", seconds=60)
        assert not node.dead


@virtual
async def test_how_long_a_start_takes_is_known_from_those_before() -> None:
    async with serving() as node:
        assert node.status.model
        first = node.status.model.usual
        assert node.world.pace.load < first < node.world.pace.load + 10
        await node.world.clock.sleep(3600)
        await node.restart()
        await node.answers(seconds=60)
        assert node.status.model.usual == first, "a run that is only asked by another strixd is no start"
        node.world.kill(VLLM)
        await node.until(lambda status: not answering(status), seconds=20)
        assert node.status.model.usual == first
        await node.answers(seconds=120)
        assert node.engine
        await node.engine.serve("strixd/other", (), by="uid 0: serve")
        await node.until(lambda status: status.model is not None and status.model.name != MODEL, seconds=20)
        assert node.status.model.usual == 0.0


@virtual
async def test_a_hang_under_which_strixd_is_restarted_is_known_by_its_stillness() -> None:
    """The new strixd has not seen this run answer: it may be loading, but then it would do something."""
    async with serving() as node:
        await node.world.clock.sleep(600)
        server = node.world.server()
        assert server
        server.hang()
        await node.restart()
        await node.answers(seconds=STILL + 120)
        assert starts(node.world, VLLM) == 2
