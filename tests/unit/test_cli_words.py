"""What is said to strixd-cli: every wrong word has its sentence, every command its help."""

from __future__ import annotations

import importlib

import pytest
from cli_process import cli
from recorded_door import LAYERS

from strixd import errors
from strixd.cli import main
from strixd.cli.grammar import Command
from strixd.cli.parse import parse
from strixd.cli.words import COMMANDS, EXIT_STATUSES, PHASES, UNITS
from strixd.engine.status import Phase

ALL = '"strixd-cli help" lists all commands'
SERVE = "for example: strixd-cli serve Qwen/Qwen3-235B-A22B-GPTQ-Int4"
WAIT = "for example: strixd-cli wait ready --timeout 600"
LOGS = "for example: strixd-cli logs vllm -f"
BENCH = "for example: sudo strixd-cli bench"
STATUS = "for example: strixd-cli status"
PHASE_LIST = "starting, converging, ready, degraded, drained, paused, stuck"

WRONG = {
    "": ("no command is given", '"strixd-cli help" lists them; "strixd-cli status" is a good first one'),
    "statsu": ('there is no command "statsu"; did you mean "status"?', ALL),
    "sevre tiny": ('there is no command "sevre"; did you mean "serve"?', ALL),
    "xyzzy": ('there is no command "xyzzy"', ALL),
    "serve": ("serve: MODEL is missing (a model of the hub, or a folder below the model folder)", SERVE),
    "serve a b": ('serve: "b" is one word too many; arguments for vllm come after "--"', SERVE),
    "serve a --seed 1": (
        'serve: there is no option "--seed"; options for vllm come after "--": strixd-cli serve MODEL -- --seed',
        SERVE,
    ),
    "status --jsno": ('status: there is no option "--jsno"; did you mean "--json"?', STATUS),
    "status now": ('status: "now" is one word too many', STATUS),
    "status --json=yes": ('status: --json takes no value, so not "yes"', STATUS),
    "status -- x": ('status: takes nothing after "--", so not "x"', STATUS),
    "--json status": ('the option "--json" comes after its command', '"strixd-cli help" lists commands and options'),
    "--sokcet /x status": (
        'there is no option "--sokcet"; did you mean "--socket"?',
        '"strixd-cli help" lists commands and options',
    ),
    "status --socket": ("status: --socket needs a value: --socket PATH", STATUS),
    "logs vlm": ('logs: "vlm" is none of daemon, ray, vllm; did you mean "vllm"?', LOGS),
    "logs -n many": ('logs: --lines needs a whole number, not "many"', LOGS),
    "logs --folow": ('logs: there is no option "--folow"; did you mean "--follow"?', LOGS),
    "wait redy": (f'wait: "redy" is none of {PHASE_LIST}; did you mean "ready"?', WAIT),
    "wait": ("wait: PHASE is missing (the phase to wait for)", WAIT),
    "wait ready --timeout soon": ('wait: --timeout needs a whole number, not "soon"', WAIT),
    "wait ready --timeout": ("wait: --timeout needs a value: --timeout SECONDS", WAIT),
    "config": ('"config" needs one more word: check or show', '"strixd-cli config check" or "strixd-cli config show"'),
    "config chek": (
        'there is no command "config chek"; did you mean "check"?',
        '"strixd-cli config check" or "strixd-cli config show"',
    ),
    "key make": ('there is no command "key make"', '"strixd-cli key new" or "strixd-cli key import"'),
    "image": ('"image" needs one more word: update', '"strixd-cli image update"'),
    "histroy": ('there is no command "histroy"; did you mean "history"?', ALL),
    "undu": ('there is no command "undu"; did you mean "undo"?', ALL),
    "history many": ('history: N needs a whole number, not "many"', "for example: strixd-cli history"),
    "undo it": ('undo: "it" is one word too many', "for example: strixd-cli undo"),
    "help statsu": ('there is no command "statsu"; did you mean "status"?', ALL),
}


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_word_has_its_sentence(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    problem, hint = WRONG[line]
    assert main(line.split()) == 2
    said = capsys.readouterr()
    assert said.err == f"strixd-cli: {problem}\n  {hint}\n"
    assert said.out == ""


def test_the_real_process_says_the_same() -> None:
    done = cli("statsu")
    problem, hint = WRONG["statsu"]
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"strixd-cli: {problem}\n  {hint}\n")


def test_options_may_stand_anywhere_and_socket_has_an_order(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parse(["status"]).socket == "/run/strixd/io.strixd"
    monkeypatch.setenv("STRIXD_SOCKET", "/from/environment")
    assert parse(["status"]).socket == "/from/environment"
    assert parse(["--socket", "/a", "status"]).socket == "/a"
    assert parse(["status", "--socket=/b", "--json"]).socket == "/b"


def test_what_follows_the_dashes_is_left_alone() -> None:
    asked = parse(["serve", "tiny", "--", "--help", "--", "-x"])
    assert (asked.words, asked.rest) == ({"MODEL": "tiny"}, ("--help", "--", "-x"))


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_runs_something_and_has_complete_help(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    module, _, function = command.run.partition(":")
    assert callable(getattr(importlib.import_module(f"strixd.cli.{module}"), function))
    assert main([*command.name.split(), "--help"]) == 0
    said = capsys.readouterr().out
    if command.name != "help":
        assert said.startswith(f"strixd-cli {command.name}")
        assert all(example in said for example in command.examples)
        assert all(option.name in said and option.about for option in command.options)
    assert all(len(line) <= 80 for line in said.splitlines())
    assert command.examples


@pytest.mark.parametrize("line", ["config --help", "config -h", "help config"])
def test_a_group_has_its_own_help(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == 0
    said = capsys.readouterr().out
    assert said.startswith("strixd-cli config check [FILE]\n")
    assert "\nstrixd-cli config show [FILE]\n" in said
    assert "Exit statuses" not in said


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_the_examples_parse(command: Command) -> None:
    for example in command.examples:
        line = example.partition("strixd-cli ")[2].partition(" |")[0].partition(" <")[0]
        assert parse(line.split()).command is command


def test_the_overview_names_every_command_and_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    said = capsys.readouterr().out
    assert all(f"  {command.name} " in said for command in COMMANDS)
    assert all(f"  {code} " in said for code in EXIT_STATUSES)
    assert all(len(line) <= 80 for line in said.splitlines())


def test_every_exit_status_of_an_error_is_documented() -> None:
    def below(kind: type[errors.StrixdError]) -> set[int]:
        return {kind.exit_status}.union(*(below(each) for each in kind.__subclasses__()))

    assert below(errors.StrixdError) <= set(EXIT_STATUSES)


def test_words_agree_with_the_daemon() -> None:
    assert Phase.__args__ == PHASES  # type: ignore[attr-defined]
    assert set(UNITS) - {"daemon"} <= set(LAYERS)
