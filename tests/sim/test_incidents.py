"""An incident is over when the model answers again, or when another answer is wanted: not before, and told with the
times that were, whatever was ordered, set or full meanwhile."""

from __future__ import annotations

import pytest

from strixd.engine.status import Incident
from strixd.sim.world import FABRIC, RAY, VLLM
from tests.sim.node import MODEL, Node, answering, serving, virtual
from tests.sim.test_clock_set import HOUR, setting


async def broken(node: Node, *, seconds: float = 3.0) -> Incident:
    """The model has gone, and does not come again for now."""
    node.world.serving.fault = "crash"
    node.world.kill(VLLM)
    await node.until(lambda status: bool(status.incident and not status.incident.ended), seconds=20)
    await node.world.clock.sleep(seconds)
    assert node.status.incident
    return node.status.incident


async def mended(node: Node) -> tuple[Incident, ...]:
    node.world.serving.fault = ""
    await node.answers(seconds=600)
    assert node.engine
    return node.engine.incidents(10)


async def order(node: Node, words: str) -> None:
    assert node.engine
    match words:
        case "restart vllm":
            await node.engine.restart("vllm", "uid 0: restart")
        case "restart ray":
            await node.engine.restart("ray", "uid 0: restart")
        case "pause and resume":
            await node.engine.pause("uid 0: pause")
            await node.world.clock.sleep(5)
            await node.engine.resume("uid 0: resume")
        case "image update":
            await node.engine.update_image("uid 0: image update")
        case "apply another file":
            node.text += "\n[model]\ndrain = 30\n"
            await node.engine.apply("uid 0: apply")
        case "serve it again":
            await node.engine.serve(MODEL, (), by="uid 0: serve")


ORDERS = ["restart vllm", "restart ray", "pause and resume", "image update", "apply another file", "serve it again"]


@pytest.mark.parametrize("words", ORDERS)
@virtual
async def test_what_a_person_does_about_an_outage_does_not_end_it(words: str) -> None:
    async with serving() as node:
        begun = await broken(node, seconds=20)
        await order(node, words)
        await node.world.clock.sleep(10)
        assert node.engine
        (lasts,) = node.engine.incidents(10)
        assert (lasts.id, lasts.ended) == (begun.id, 0.0)
        (over,) = await mended(node)
        assert (over.id, over.moments[-1].name) == (begun.id, "serving")


@pytest.mark.parametrize("words", [words for words in ORDERS if words != "restart ray"])
@virtual
async def test_what_a_person_does_to_a_model_that_answers_is_no_incident(words: str) -> None:
    async with serving() as node:
        await node.world.clock.sleep(60)
        await order(node, words)
        await node.world.clock.sleep(120)
        await node.answers(seconds=300)
        assert node.status.incident is None


@virtual
async def test_an_outage_while_strixd_is_paused_is_one() -> None:
    async with serving() as node:
        assert node.engine
        await node.engine.pause("uid 0: pause")
        await node.world.clock.sleep(60)
        await broken(node, seconds=600)
        await node.engine.resume("uid 0: resume")
        (over,) = await mended(node)
        assert over.ended - over.began > 600


@pytest.mark.parametrize("room", ["comes back", "does not come back"])
@virtual
async def test_an_end_that_found_no_room_on_the_disk_does_not_come_back_as_open(room: str) -> None:
    """With room again the end is written as it was. Without, the next strixd finds an incident open and the model
    answering at its first look: it was over when that run had loaded as long as runs of this model do."""
    async with serving() as node:
        await broken(node)
        node.world.disk.full = True
        (true,) = await mended(node)
        await node.world.clock.sleep(60)
        node.world.disk.full = room == "does not come back"
        await node.world.clock.sleep(5 * HOUR)
        await node.restart()
        await node.answers(seconds=60)
        await node.world.clock.sleep(5)
        assert node.engine
        (told,) = node.engine.incidents(10)
        assert told.id == true.id
        assert abs(told.ended - true.ended) < (0.001 if room == "comes back" else 10)


@pytest.mark.parametrize("seconds", [-2 * HOUR, 2 * HOUR])
@virtual
async def test_a_clock_that_is_set_changes_no_duration(seconds: float) -> None:
    async with serving() as node:
        clock = node.world.clock
        begun = clock.steady()
        await broken(node)
        setting(clock, seconds)
        (over,) = await mended(node)
        lasted = clock.steady() - begun
        assert lasted - 5 < over.ended - over.began < lasted + 5
        assert clock.now() - 5 < over.ended <= clock.now()
        assert all(0 <= each.at - over.began <= lasted for each in over.moments)
        assert {"noticed", "started", "loaded", "serving"} <= {each.name for each in over.moments}
        assert node.loop
        await clock.sleep(5)
        assert abs(node.loop.tally.recoveries.total - lasted) < 5


@pytest.mark.parametrize("seconds", [-2 * HOUR, 2 * HOUR])
@virtual
async def test_nor_is_one_negative_that_began_before_strixd_did(seconds: float) -> None:
    async with serving() as node:
        await broken(node)
        await node.kill()
        setting(node.world.clock, seconds)
        await node.start()
        await node.until(lambda status: not answering(status), seconds=60)
        (over,) = await mended(node)
        assert 0 < over.ended - over.began < (60 if seconds < 0 else 60 + seconds)
        assert [each.at for each in over.moments] == sorted(each.at for each in over.moments)
        assert all(over.began <= each.at <= over.ended for each in over.moments)


async def _interrupted(node: Node) -> None:
    """For so short that no member is lost: the model answers again by itself."""
    listener = node.world.serving.listeners[8000]
    listener.hung = True
    node.world.network.carrier(FABRIC, present=False)
    await node.until(lambda status: bool(status.incident), seconds=60)
    listener.hung = False
    node.world.network.carrier(FABRIC, present=True)
    await node.answers(seconds=60)


@pytest.mark.parametrize("unit", [RAY, VLLM])
@virtual
async def test_an_answer_that_was_not_the_end_of_a_fault_ends_no_incident(unit: str) -> None:
    """Ray ended 7 s after the first answer over a cable that had been out for 60 s (seen): one fault, one incident."""
    async with serving() as node:
        await node.world.clock.sleep(60)
        await _interrupted(node)
        await node.world.clock.sleep(7)
        node.world.kill(unit)
        await node.until(lambda status: not answering(status), seconds=30)
        (over,) = await mended(node)
        assert over.resource == "network"
        assert [each.name for each in over.moments][-2:] == ["loaded", "serving"]
        assert {"decided", "stopped", "started"} <= {each.name for each in over.moments}


@pytest.mark.parametrize("seconds", [20, 60])
@virtual
async def test_without_a_start_it_was_over_with_the_first_answer(seconds: float) -> None:
    async with serving() as node:
        await node.world.clock.sleep(60)
        await _interrupted(node)
        answered = node.world.clock.now()
        await node.world.clock.sleep(seconds)
        if seconds < 60:
            assert node.status.incident
            assert not node.status.incident.ended
            await node.world.clock.sleep(40)
        assert node.engine
        (over,) = node.engine.incidents(10)
        assert answered - 5 < over.ended <= answered
        node.world.kill(VLLM)
        await node.until(lambda status: not answering(status), seconds=30)
        assert len(node.engine.incidents(10)) == 2


@virtual
async def test_what_ended_while_the_model_still_answered_is_the_cause() -> None:
    """systemd ends the server a moment after Ray; by then Ray is on its way again ("is activating", seen)."""
    async with serving() as node:
        await node.world.clock.sleep(60)
        server, ray = (node.world.systemd.records[name].run for name in (VLLM, RAY))
        assert server
        assert ray
        server.text = server.text.replace("BindsTo=", "Wants=")
        ray.exit(1)
        await node.until(lambda status: status.incident is not None, seconds=60)
        assert node.status.incident
        assert node.status.incident.cause == "strixd-ray.service ended with status 1"


@virtual
async def test_what_the_model_has_answered_after_explains_nothing_later() -> None:
    async with serving() as node:
        node.world.network.carrier(FABRIC, present=False)
        await node.world.clock.sleep(2)
        node.world.network.carrier(FABRIC, present=True)
        await node.world.clock.sleep(120)
        assert node.status.incident is None
        node.world.kill(VLLM)
        await node.until(lambda status: status.incident is not None, seconds=60)
        (over,) = await mended(node)
        assert (over.resource, over.cause) == ("vllm", "strixd-vllm.service killed by signal 9")


@virtual
async def test_a_layer_below_that_ended_a_moment_later_is_told_by_its_end_and_not_by_its_new_start() -> None:
    """The server was seen to end before its Ray, which by the end of that pass "is activating" (podman rm -f, seen)."""
    async with serving() as node:
        await node.world.clock.sleep(60)
        server, run = node.world.server(), node.world.systemd.records[RAY].run
        assert server
        assert run
        run.after(0.5, lambda: run.exit(1))
        server.fail(0.3)
        await node.until(lambda status: status.incident is not None and status.incident.resource == "ray", seconds=60)
        assert node.status.incident
        assert node.status.incident.cause == "strixd-ray.service ended with status 1"


@virtual
async def test_a_server_that_went_with_its_ray_is_told_by_that() -> None:
    """The kernel kills what is in the PID namespace of Ray's container; Ray's unit is seen to end a moment later."""
    async with serving() as node:
        await node.world.clock.sleep(60)
        node.world.kill(RAY)
        await node.until(lambda status: status.incident is not None, seconds=60)
        assert node.status.incident
        assert node.status.incident.cause == "strixd-vllm.service killed by signal 9"
        (over,) = await mended(node)
        assert (over.resource, over.cause) == ("ray", "strixd-ray.service ended with status 1")
