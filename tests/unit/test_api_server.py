"""The control socket: what it describes, answers and names as errors."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from api_lab import Lab, idl, run
from recorded_door import MTU, change, status
from varlink_idl import parse

from strixd import __version__, errors
from strixd.api import wire
from strixd.api.applying import ApplyStage
from strixd.api.commands import COMMANDS
from strixd.api.introspection import INTERFACES, METHODS
from strixd.api.progress import Stage
from strixd.engine.status import Phase
from strixd.orders import Workload
from strixd.plan import Condition, Effect

# The description, the table and the errors agree.


def test_description_and_table_name_the_same_methods() -> None:
    assert set(idl("io.strixd").methods) == set(COMMANDS)
    assert set(idl("org.varlink.service").methods) == set(METHODS)
    assert {command.need for command in COMMANDS.values()} == {"look", "change"}
    assert all(command.act or command.follow for command in COMMANDS.values())


def test_parameters_are_those_of_the_description() -> None:
    for name, command in COMMANDS.items():
        takes, _ = idl("io.strixd").methods[name]
        assert takes == ("struct", _described(command.takes)), name


def _described(kind: type) -> dict[str, object]:
    words = {
        "str": "string",
        "Phase": "Phase",
        "Workload | None": ("?", "Workload"),
        "tuple[str, ...] | None": ("?", ("[]", "string")),
    }
    words |= dict.fromkeys(("Annotated[int, _waitable] | None", "Annotated[int, _countable] | None"), ("?", "int"))
    return {name: words[annotation] for name, annotation in kind.__annotations__.items()}


def test_every_named_error_is_described() -> None:
    def below(kind: type[errors.StrixdError]) -> set[str]:
        return {kind.code}.union(*(below(each) for each in kind.__subclasses__()))

    assert set(idl("io.strixd").errors) == below(errors.StrixdError) - {"Failed"}


def test_the_words_of_enumerations_agree() -> None:
    types = idl("io.strixd").types
    literals = {"Phase": Phase, "Condition": Condition, "Stage": Stage, "ApplyStage": ApplyStage, "Workload": Workload}
    for name, literal in literals.items():
        assert types[name] == ("enum", get_args(literal))
    assert types["Effect"] == ("enum", tuple(each.value for each in Effect))


# Every method, with a reply that fits its description.

CALLS: dict[str, tuple[dict[str, object], tuple[object, ...] | None]] = {
    "Version": ({}, None),
    "Status": ({}, None),
    "Wait": ({"phase": "ready", "timeout": 1}, None),
    "Plan": ({}, ("preview",)),
    "History": ({"count": 5}, None),
    "Incidents": ({"count": 1}, None),
    "Apply": ({}, ("apply",)),
    "Undo": ({}, ("undo",)),
    "Serve": ({"model": "tiny", "arguments": ["--seed", "1"]}, ("serve", "tiny", "--seed", "1")),
    "Stop": ({}, ("stop",)),
    "Drain": ({}, ("drain",)),
    "Undrain": ({}, ("undrain",)),
    "Restart": ({"workload": "ray"}, ("restart", "ray")),
    "Pause": ({}, ("pause",)),
    "Resume": ({}, ("resume",)),
    "UpdateImage": ({}, ("update_image",)),
}


def test_every_method_is_called_here() -> None:
    assert set(CALLS) == set(COMMANDS) - {"Watch"}


@pytest.mark.parametrize("method", sorted(CALLS))
def test_a_reply_fits_the_description(tmp_path: Path, method: str) -> None:
    parameters, asked = CALLS[method]

    async def scenario(lab: Lab) -> None:
        lab.door.changes = [change(outcome="left over", why="no room"), change()]
        lab.door.past = [incident] if (incident := status().incident) else []
        async with lab.client() as client:
            reply = await client.ask(method, parameters)
        interface = idl("io.strixd")
        assert set(reply) == {"parameters"}
        assert interface.complaint(interface.methods[method][1], reply["parameters"]) == ""
        assert lab.door.asked == ([asked] if asked else [])

    run(tmp_path, scenario)


def test_status_without_a_model_fits_too(tmp_path: Path) -> None:
    async def scenario(lab: Lab) -> None:
        lab.door.now = replace(status(), model=None, incident=None)
        async with lab.client() as client:
            reply = await client.ask("Status")
        interface = idl("io.strixd")
        assert interface.complaint(interface.methods["Status"][1], reply["parameters"]) == ""
        assert reply["parameters"]["status"]["model"] is None

    run(tmp_path, scenario)


def test_a_change_under_way_fits_too(tmp_path: Path) -> None:
    async def scenario(lab: Lab) -> None:
        lab.door.now = replace(status(), change=change(outcome="running", ended=0.0, taken=1), released=("cmdline",))
        async with lab.client() as client:
            reply = await client.ask("Status")
        interface = idl("io.strixd")
        assert interface.complaint(interface.methods["Status"][1], reply["parameters"]) == ""
        assert reply["parameters"]["status"]["change"]["steps"][1]["undo"] == MTU.undo
        assert reply["parameters"]["status"]["released"] == ["cmdline"]

    run(tmp_path, scenario)


def test_whoever_changes_something_is_named_with_the_command(tmp_path: Path) -> None:
    async def scenario(lab: Lab) -> None:
        lab.door.changes = [change()]
        async with lab.client() as client:
            for method, (parameters, _) in CALLS.items():
                await client.ask(method, parameters)
        words = (
            *("apply", "undo", "serve", "stop", "drain", "undrain", "restart"),
            *("pause", "resume", "image update"),
        )
        assert lab.door.by == [f"uid {os.getuid()}: {word}" for word in words]

    run(tmp_path, scenario)


def test_every_command_that_changes_something_has_its_word() -> None:
    named = {method for method, command in COMMANDS.items() if command.word}
    assert named == {method for method, command in COMMANDS.items() if command.need == "change"}


def test_history_is_as_long_as_asked_and_undo_says_what_became_of_the_change(tmp_path: Path) -> None:
    async def scenario(lab: Lab) -> None:
        lab.door.changes = [change(id=str(number)) for number in range(12)]
        async with lab.client() as client:
            assert len((await client.ask("History"))["parameters"]["changes"]) == 10
            newest = (await client.ask("History", {"count": 2}))["parameters"]["changes"]
            assert [each["id"] for each in newest] == ["0", "1"]
            undone = (await client.ask("Undo"))["parameters"]["change"]
            assert (undone["id"], undone["outcome"], undone["why"]) == ("0", "undone", "c2")
            lab.door.changes = []
            refused = await client.ask("Undo")
        assert refused["error"] == "io.strixd.NothingToUndo"
        assert refused["parameters"]["hint"] == "strixd-cli history"

    run(tmp_path, scenario)


def test_introspection(tmp_path: Path) -> None:
    async def scenario(lab: Lab) -> None:
        async with lab.client() as client:
            info = (await client.ask("org.varlink.service.GetInfo"))["parameters"]
            assert info["interfaces"] == sorted(INTERFACES)
            assert info["version"] == __version__
            for name in INTERFACES:
                reply = await client.ask("org.varlink.service.GetInterfaceDescription", {"interface": name})
                assert parse(reply["parameters"]["description"]).name == name

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("call", "error", "parameters"),
    [
        ({"method": "io.strixd.Dance"}, "MethodNotFound", {"method": "io.strixd.Dance"}),
        ({"method": "org.varlink.service.X"}, "MethodNotFound", {"method": "org.varlink.service.X"}),
        ({"method": "io.other.Dance"}, "InterfaceNotFound", {"interface": "io.other"}),
        ({"method": "Dance"}, "InterfaceNotFound", {"interface": ""}),
        ({"method": "io.strixd.Status", "upgrade": True}, "MethodNotImplemented", {"method": "io.strixd.Status"}),
        ({"method": "io.strixd.Watch"}, "ExpectedMore", {}),
        ({"method": "io.strixd.Serve"}, "InvalidParameter", {"parameter": "model"}),
        ({"method": "io.strixd.Serve", "parameters": {"model": 1}}, "InvalidParameter", {"parameter": "model"}),
        ({"method": "io.strixd.Status", "parameters": {"x": 1}}, "InvalidParameter", {"parameter": "x"}),
        ({"method": "io.strixd.Wait", "parameters": {"phase": "x"}}, "InvalidParameter", {"parameter": "phase"}),
        (
            {"method": "io.strixd.Wait", "parameters": {"phase": "ready", "timeout": 10**400}},
            "InvalidParameter",
            {"parameter": "timeout"},
        ),
        ({"method": "io.strixd.History", "parameters": {"count": 0}}, "InvalidParameter", {"parameter": "count"}),
        ({"method": "io.strixd.History", "parameters": {"count": 10**400}}, "InvalidParameter", {"parameter": "count"}),
        ({"method": "org.varlink.service.GetInfo", "parameters": {"x": 1}}, "InvalidParameter", {"parameter": "x"}),
        (
            {"method": "org.varlink.service.GetInterfaceDescription"},
            "InvalidParameter",
            {"parameter": "interface"},
        ),
        (
            {"method": "org.varlink.service.GetInterfaceDescription", "parameters": {"interface": "a.b"}},
            "InterfaceNotFound",
            {"interface": "a.b"},
        ),
    ],
)
def test_faults_have_the_names_of_the_protocol(
    tmp_path: Path, call: dict[str, object], error: str, parameters: dict[str, str]
) -> None:
    async def scenario(lab: Lab) -> None:
        async with lab.client() as client:
            client.writer.write(wire.encode(call))
            assert await client.reply() == {"error": f"org.varlink.service.{error}", "parameters": parameters}
            assert (await client.ask("Version"))["parameters"]["version"] == __version__

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"model": ""}, "Cannot serve '': that is no model's name"),
        ({"model": "-x"}, "Cannot serve '-x': that is no model's name"),
        ({"model": "/etc"}, "that is no model's name"),
        ({"model": "../x"}, "that is no model's name"),
        ({"model": "a/../../etc"}, "that is no model's name"),
        ({"model": "a//b"}, "that is no model's name"),
        ({"model": "a/."}, "that is no model's name"),
        ({"model": "a/"}, "that is no model's name"),
        ({"model": "https://huggingface.co/a/b"}, "that is no model's name"),
        ({"model": "a b"}, "Cannot serve 'a b': that is no model's name"),
        ({"model": "\ud800"}, "Cannot serve '\\ud800': that is no model's name"),
        ({"model": "m", "arguments": ["a\0b"]}, "characters that do not print"),
        ({"model": "m", "arguments": ["a"] * 300}, "more than 256 arguments"),
        ({"model": "m", "arguments": ["--seed", "1", "--port=9"]}, 'the argument "--port" belongs to model.port'),
        ({"model": "m", "arguments": ["--tensor_parallel_size", "4"]}, "belongs to model.tensor-parallel"),
        ({"model": "m" * 5000}, "over 4096 letters"),
    ],
)
def test_a_model_that_makes_no_sense_is_refused(tmp_path: Path, parameters: dict[str, object], words: str) -> None:
    async def scenario(lab: Lab) -> None:
        async with lab.client() as client:
            reply = await client.ask("Serve", parameters)
        assert reply["error"] == "io.strixd.Refused"
        assert words in reply["parameters"]["message"]
        assert lab.door.asked == []

    run(tmp_path, scenario)


def test_an_error_of_the_engine_goes_out_by_name(tmp_path: Path) -> None:
    async def scenario(lab: Lab) -> None:
        lab.door.refusal = errors.ConfigError(("a.toml:1: x: wrong", "a.toml:2: y: wrong"))
        async with lab.client() as client:
            reply = await client.ask("Apply")
        parameters = {"message": "a.toml:1: x: wrong\na.toml:2: y: wrong", "hint": "", "exitStatus": 78}
        assert reply == {"error": "io.strixd.ConfigError", "parameters": parameters}

    run(tmp_path, scenario)


def test_pipelined_calls_are_answered_in_order(tmp_path: Path) -> None:
    async def scenario(lab: Lab) -> None:
        async with lab.client() as client:
            for name in ("Stop", "Pause", "Resume"):
                client.send(name)
                client.send("Version", oneway=True)
            assert [await client.reply() for _ in range(3)] == [{"parameters": {}}] * 3
        assert lab.door.asked == [("stop",), ("pause",), ("resume",)]

    run(tmp_path, scenario)


def test_a_oneway_call_has_no_reply_not_even_an_error(tmp_path: Path) -> None:
    async def scenario(lab: Lab) -> None:
        async with lab.client() as client:
            client.send("Stop", oneway=True)
            client.send("Dance", oneway=True)
            client.send("Wait", {"phase": "stuck"}, oneway=True)
            client.send("Serve", {"model": "tiny"}, oneway=True)
            assert (await client.ask("Version"))["parameters"] == {"version": __version__}
        assert lab.door.asked == [("stop",), ("serve", "tiny")]

    run(tmp_path, scenario)
