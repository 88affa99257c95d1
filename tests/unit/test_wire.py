"""The codec: what goes in comes out, however it is cut; what is no message is refused by name."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strixd.api import wire
from strixd.errors import CannotServe, Refused

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
MESSAGES = st.dictionaries(st.text(), JSON, max_size=5)


def taken(frames: wire.Frames) -> list[wire.Message]:
    return list(iter(frames.take, None))


@given(st.lists(MESSAGES, max_size=5), st.lists(st.integers(1, 40), min_size=1))
def test_messages_survive_any_cutting(messages: list[wire.Message], cuts: list[int]) -> None:
    stream = b"".join(wire.encode(message) for message in messages)
    frames, out, turn = wire.Frames(), [], 0
    while stream:
        size = cuts[turn % len(cuts)]
        frames.feed(stream[:size])
        stream = stream[size:]
        out += taken(frames)
        turn += 1
    assert out == messages
    assert len(frames) == 0


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_refused(noise: bytes) -> None:
    frames = wire.Frames()
    frames.feed(noise + b"\0")
    with contextlib.suppress(Refused):
        assert all(isinstance(message, dict) for message in taken(frames))


@given(st.dictionaries(st.sampled_from(["method", "parameters", "more", "oneway", "upgrade", "x"]), JSON))
def test_any_object_is_a_call_or_refused(message: wire.Message) -> None:
    with contextlib.suppress(Refused):
        call = wire.Call(message)
        assert call.method == message["method"]
        assert call.parameters == (message.get("parameters") or {})


@pytest.mark.parametrize(
    "text",
    [b"", b"nonsense", b"[]", b'"x"', b'{"a": NaN}', b'{"a": -Infinity}', b"\xff", b"[" * 100_000, b'{"a":' * 50_000,
     b'{"a": ' + b"9" * 5000 + b"}"],
)  # fmt: skip
def test_what_is_no_message(text: bytes) -> None:
    with pytest.raises(Refused, match="Cannot read the message: "):
        wire.decode(text)


def test_a_message_of_just_the_limit_and_one_byte_more() -> None:
    frames = wire.Frames(most=8)
    frames.feed(b'{"a":12}\0')
    assert frames.take() == {"a": 12}
    frames.feed(b'{"a":123}')
    with pytest.raises(Refused, match="larger than 8 bytes"):
        frames.take()


def test_a_whole_message_over_the_limit() -> None:
    frames = wire.Frames(most=8)
    frames.feed(b'{"a":123}\0')
    with pytest.raises(Refused, match="larger than 8 bytes"):
        frames.take()


def test_an_error_tells_message_hint_and_exit_status() -> None:
    text = wire.failure(CannotServe("Cannot serve x: ray: why", hint="look"))
    parameters = {"message": "Cannot serve x: ray: why", "hint": "look", "exitStatus": 3}
    assert json.loads(text[:-1]) == {"error": "io.strixd.CannotServe", "parameters": parameters}


def test_a_fault_is_one_of_the_protocol() -> None:
    text = wire.failure(wire.Fault("MethodNotFound", method="io.strixd.Dance"))
    assert json.loads(text[:-1]) == {
        "error": "org.varlink.service.MethodNotFound",
        "parameters": {"method": "io.strixd.Dance"},
    }


def test_replies_are_ascii_so_that_no_surrogate_can_break_them() -> None:
    assert wire.reply({"text": "\ud800 ü"}, continues=True) == (
        b'{"parameters":{"text":"\\ud800 \\u00fc"},"continues":true}\0'
    )
