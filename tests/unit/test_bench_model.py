"""The model under load, against servers that stream as vLLM does, well and badly, over real sockets."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from strixd.bench import load
from strixd.bench.model import ask, levels_of
from strixd.errors import Unavailable
from strixd.ports import Served

TOKEN = {"choices": [{"text": " x", "finish_reason": None}]}
USAGE = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 64}}
FIRST = 0.05  # seconds


class Server(ThreadingHTTPServer):
    """`events`: what is streamed, or a status with a body."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Api)
        self.events: list[dict[str, Any] | str] = [TOKEN, USAGE, "[DONE]"]
        self.refusal: tuple[int, bytes] | None = None
        self.chunked = False
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []

    def served(self, key: str = "") -> Served:
        return Served(f"http://127.0.0.1:{self.server_address[1]}", "tiny", "", key)


class Api(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        self.server.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.server.keys.append(self.headers["Authorization"])
        status, body = self.server.refusal or (200, b"")
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)
        for event in self.server.events if status == 200 else ():
            time.sleep(FIRST)
            self.write(f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n".encode())

    def write(self, event: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(event), event) if self.server.chunked else event)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    Thread(target=made.serve_forever, args=(0.01,), daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def once(server: Server, key: str = "") -> load.Taken:
    return asyncio.run(ask(server.served(key), load.request("tiny", "Hello", "salt")))


@pytest.mark.parametrize("chunked", [False, True])
def test_time_to_the_first_token_and_tokens_as_the_server_counts_them(server: Server, chunked: bool) -> None:
    server.chunked = chunked
    taken = once(server)
    assert taken.tokens == 64
    assert FIRST <= taken.first < taken.seconds
    (asked,) = server.asked
    assert (asked["model"], asked["stream"], asked["temperature"], asked["cache_salt"]) == ("tiny", True, 0, "salt")


def test_the_key_of_an_open_api_is_shown(server: Server, tmp_path: Path) -> None:
    (tmp_path / "api.key").write_text("secret\n")
    once(server, str(tmp_path / "api.key"))
    assert server.keys == ["Bearer secret"]


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ([TOKEN], "the stream broke off"),
        ([USAGE, "[DONE]"], "a completion without a token"),
        ([TOKEN, "[DONE]"], "a completion without a token"),
        ([TOKEN, {"error": {"message": "EngineCore encountered an issue", "code": 500}}], "EngineCore"),
        (["{nonsense"], "not answered a request"),
        (["[]"], "not answered a request"),
    ],
)
def test_a_stream_that_is_no_completion(server: Server, events: list[dict[str, Any] | str], why: str) -> None:
    server.events = events
    with pytest.raises(Unavailable, match=why) as raised:
        once(server)
    assert "strixd-cli logs vllm" in raised.value.hint


def test_a_refusal_is_told_in_the_servers_words(server: Server) -> None:
    server.refusal = (404, b'{"error": {"message": "The model `tiny` does not exist."}}')
    with pytest.raises(Unavailable, match=r"HTTP 404: The model `tiny` does not exist\."):
        once(server)


def test_nobody_there(server: Server) -> None:
    server.shutdown()
    server.server_close()
    with pytest.raises(Unavailable, match="has not answered a request"):
        once(server)


def test_all_levels_with_one_salt_and_a_first_request_that_counts_for_nothing(server: Server) -> None:
    told: list[str] = []
    levels = asyncio.run(levels_of(server.served(), told.append))
    assert [(each.streams, each.requests) for each in levels] == [(1, 4), (4, 12), (16, 32)]
    assert all(each.first >= FIRST * 1000 and each.first_p95 >= each.first and each.rate > 0 for each in levels)
    assert told == ["1 stream", "4 streams", "16 streams"]
    assert len(server.asked) == 1 + 4 + 12 + 32
    assert len({asked["cache_salt"] for asked in server.asked}) == 1
    assert len({asked["prompt"] for asked in server.asked}) == 49
