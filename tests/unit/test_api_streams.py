"""Replies that go on: Watch, Wait and Serve."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from api_lab import Lab, idl, run, until
from recorded_door import MOVE, MTU, NOON, change, resource, status

from strixd import __version__
from strixd.engine.status import Phase


def test_watch_tells_at_once_and_at_each_change(tmp_path: Path) -> None:
    async def scenario(lab: Lab) -> None:
        async with lab.client() as client:
            first = await client.ask("Watch", more=True)
            await lab.door.say(replace(status(), phase="degraded"))
            second = await client.reply()
        phases = [reply["parameters"]["status"]["phase"] for reply in (first, second)]
        assert phases == ["ready", "degraded"]
        assert first["continues"] is True

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("method", "parameters"), [("Watch", {}), ("Wait", {"phase": "stuck"}), ("Serve", {"model": "tiny"}), ("Apply", {})]
)
def test_a_stream_ends_when_its_client_goes(tmp_path: Path, method: str, parameters: dict[str, object]) -> None:
    async def scenario(lab: Lab) -> None:
        async with lab.client() as client:
            client.send(method, parameters, more=True)
            await until(lambda: lab.door.watchers > 0)
            client.send("Status")  # unread input must not hide the end
        await until(lambda: lab.door.watchers == 0)

    run(tmp_path, scenario)


def test_calls_made_during_a_stream_are_answered_after_it(tmp_path: Path) -> None:
    async def scenario(lab: Lab) -> None:
        async with lab.client() as client:
            client.send("Wait", {"phase": "stuck"})
            await until(lambda: lab.door.watchers > 0)
            client.send("Version")
            await asyncio.sleep(0.05)
            await lab.door.say(replace(status(), phase="stuck"))
            assert (await client.reply())["parameters"]["status"]["phase"] == "stuck"
            assert (await client.reply())["parameters"] == {"version": __version__}

    run(tmp_path, scenario)


def test_sending_a_mebibyte_during_a_stream_ends_it(tmp_path: Path) -> None:
    async def scenario(lab: Lab) -> None:
        async with lab.client() as client:
            await client.ask("Watch", more=True)
            client.writer.write(b" " * (2 << 20))
            assert await client.closed()
        await until(lambda: lab.door.watchers == 0)

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("phase", "words"),
    [
        ("converging", "it waits for ray is waiting: 1 of 2 members"),  # kernel arguments change no phase
        ("paused", "it waits for strixd-cli resume"),
    ],
)
def test_wait_names_what_is_in_the_way(tmp_path: Path, phase: Phase, words: str) -> None:
    async def scenario(lab: Lab) -> None:
        resources = resource("cmdline", "reboot", "not yet running"), resource("ray", "waiting", "1 of 2 members")
        lab.door.now = replace(status(*resources), phase=phase)
        async with lab.client() as client:
            reply = await client.ask("Wait", {"phase": "ready", "timeout": 0})
        assert reply["parameters"]["message"] == f"Cannot wait longer: halo1 is {phase} after 0 s, not ready; {words}"

    run(tmp_path, scenario)


def test_wait_runs_out(tmp_path: Path) -> None:
    async def scenario(lab: Lab) -> None:
        lab.door.now = replace(status(resource("ray", "waiting", "1 of 2 members")), phase="converging")
        async with lab.client() as client:
            reply = await client.ask("Wait", {"phase": "ready", "timeout": 0})
        assert reply["error"] == "io.strixd.TimedOut"
        assert reply["parameters"] == {
            "message": "Cannot wait longer: halo1 is converging after 0 s, not ready; "
            "it waits for ray is waiting: 1 of 2 members",
            "hint": "strixd-cli status",
            "exitStatus": 75,
        }

    run(tmp_path, scenario)


def test_serve_tells_how_far_it_is_until_the_first_completion(tmp_path: Path) -> None:
    async def scenario(lab: Lab) -> None:
        lab.door.after_serve = [
            replace(status(resource("image", "waiting", "pulling, 12 %"), resource("vllm", "waiting"))),
            replace(status(resource("vllm", "waiting", "loading weights"))),
            status(),
        ]
        async with lab.client() as client:
            replies = [await client.ask("Serve", {"model": "tiny"}, more=True)]
            while replies[-1].get("continues"):
                replies.append(await client.reply())
        interface = idl("io.strixd")
        for reply in replies:
            assert interface.complaint(interface.methods["Serve"][1], reply["parameters"]) == ""
        assert [tuple(reply["parameters"].values()) for reply in replies] == [
            ("order", True, "tiny"),
            ("image", False, "image: pulling, 12 %"),
            ("image", True, "fact of image"),
            ("ray", True, "fact of ray"),
            ("load", False, "vllm: loading weights"),
            ("load", True, "tiny"),
            ("completion", True, "http://127.0.0.1:8000 answers, in 0.4 s"),
        ]

    run(tmp_path, scenario)


def test_serve_ends_with_the_layer_in_the_way(tmp_path: Path) -> None:
    async def scenario(lab: Lab) -> None:
        lab.door.after_serve = [status(resource("vllm", "stuck", "unknown flag --foo", hint="take it out"))]
        async with lab.client() as client:
            assert (await client.ask("Serve", {"model": "tiny"}, more=True))["continues"]
            reply = await client.reply()
        parameters = {"message": "Cannot serve tiny: vllm: unknown flag --foo", "hint": "take it out", "exitStatus": 3}
        assert reply == {"error": "io.strixd.CannotServe", "parameters": parameters}

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("method", "parameters", "model", "errand"),
    [
        ("Undrain", {}, True, "undrain"),
        ("Undrain", {}, False, "undrain"),
        ("Restart", {"workload": "ray"}, True, "restart ray"),
        ("Restart", {"workload": "ray"}, False, "restart ray"),
        ("Restart", {"workload": "vllm"}, True, "restart vllm"),
        ("Restart", {}, True, "restart vllm"),
    ],
)
def test_an_order_that_comes_to_nothing_is_named_as_it_was_given(
    tmp_path: Path, method: str, parameters: dict[str, object], model: bool, errand: str
) -> None:
    async def scenario(lab: Lab) -> None:
        before = status() if model else replace(status(), model=None)
        lab.door.after_serve = [replace(before, resources=(resource("ray", "stuck", "no such image"),))]
        await lab.door.say(before)
        async with lab.client() as client:
            reply = await client.ask(method, parameters, more=True)
            while "error" not in reply:
                reply = await client.reply()
        assert reply["parameters"]["message"] == f"Cannot {errand}: ray: no such image"

    run(tmp_path, scenario)


def test_apply_tells_each_step_and_the_end(tmp_path: Path) -> None:
    async def scenario(lab: Lab) -> None:
        running = change(began=8.0, ended=0.0, outcome="running", taken=0)
        earlier = (7.0, NOON + 3600)  # the latter before the clock was set back
        older = [change(id=f"c at {at}", began=at, outcome="failed", why="an older one") for at in earlier]
        lab.door.changes = [change(began=8.0), *older]
        lab.door.after_apply = [
            replace(status(), change=running),
            replace(status(), change=replace(running, taken=1)),
            status(),
        ]
        async with lab.client() as client:
            replies = [await client.ask("Apply", more=True)]
            while replies[-1].get("continues"):
                replies.append(await client.reply())
        interface = idl("io.strixd")
        for reply in replies:
            assert interface.complaint(interface.methods["Apply"][1], reply["parameters"]) == ""
        assert [tuple(reply["parameters"].values()) for reply in replies] == [
            (),
            ("step", False, f"1 of 2: {MOVE.text}"),
            ("step", True, f"1 of 2: {MOVE.text}"),
            ("step", False, f"2 of 2: {MTU.text}"),
            ("step", True, f"2 of 2: {MTU.text}"),
            ("end", True, "2 steps taken"),
        ]

    run(tmp_path, scenario)


def test_apply_without_more_replies_after_the_pass(tmp_path: Path) -> None:
    async def scenario(lab: Lab) -> None:
        lab.door.after_apply = [replace(status(), change=change(outcome="running")), replace(status(), passes=20)]
        async with lab.client() as client:
            assert await client.ask("Apply") == {"parameters": {}}
            assert (await client.ask("Status"))["parameters"]["status"]["passes"] == 20

    run(tmp_path, scenario)


@pytest.mark.parametrize("ordered", [8.0, 3600.0])
def test_a_pass_that_may_have_begun_before_the_order_proves_nothing(tmp_path: Path, ordered: float) -> None:
    """Whatever its order is dated: the clock may have been set back since."""

    async def scenario(lab: Lab) -> None:
        async with lab.client() as client:
            await client.ask("Serve", {"model": "tiny"}, more=True)
            old = status(resource("vllm", "stuck", "a flag of the old order"), passes=8)
            await lab.door.say(replace(old, ordered=ordered))
            await asyncio.sleep(0.05)
            await lab.door.say(status(passes=9))
            assert (await client.reply())["parameters"]["stage"] == "image"

    run(tmp_path, scenario)


def test_wait_does_not_take_the_status_from_before_an_order_for_an_answer(tmp_path: Path) -> None:
    async def scenario(lab: Lab) -> None:
        async with lab.client() as client:
            await client.ask("Serve", {"model": "tiny"})
            client.send("Wait", {"phase": "ready", "timeout": 20})
            await asyncio.sleep(0.05)
            await lab.door.say(status(passes=9))
            assert (await client.reply())["parameters"]["status"]["ordered"] == 9.0

    run(tmp_path, scenario)
