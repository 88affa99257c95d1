"""The port Model against servers that behave like vLLM, well and badly, over real sockets."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest

from strixd.host.vllm import Load, Pace, Run, VllmApi, complaint, fetch, read_load, tokens
from strixd.ports import Answer, Served

PACE = Pace(
    reading=1.2, first=0.05, again=0.05, busy=0.05, idle=0.05, ask=0.3, completion=0.4, metrics=0.4, patience=0.4
)
METRICS = """# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{engine="0",model_name="tiny {{x}}"}} {running}
vllm:num_requests_waiting{{engine="0",model_name="tiny"}} {waiting}
vllm:kv_cache_usage_perc{{engine="0"}} {cache}
vllm:time_to_first_token_seconds_count{{engine="0"}} {first}
vllm:generation_tokens_total{{engine="0"}} {made}
vllm:generation_tokens_total{{engine="1"}} 5
vllm:generation_tokens_created{{engine="0"}} 1.79e+09
vllm:e2e_request_latency_seconds_bucket{{le="+Inf"}} 4.0
process_start_time_seconds 1.795e+09
"""


class Vllm(ThreadingHTTPServer):
    """`mode`: what becomes of a completion. /health is 200 whatever happens."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Api)
        self.mode = "answer"
        self.running, self.waiting, self.cache, self.made = 0, 0, 0.0, 10
        self.first, self.reading = 0, 0  # of those, requests that have no first token yet
        self.left = 0  # clients that have gone after theirs: vLLM counts them nowhere
        self.generates = False  # requests of others make tokens
        self.metrics = True
        self.asked: list[dict[str, object]] = []
        self.keys: list[str | None] = []
        self.release, self.gone = Event(), Event()

    @property
    def served(self) -> Served:
        return Served(f"http://127.0.0.1:{self.server_address[1]}", "tiny", "run-1")

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that has gone is no news."""


class Api(BaseHTTPRequestHandler):
    server: Vllm

    def do_GET(self) -> None:
        if self.path == "/metrics" and self.server.metrics:
            self.server.made += self.server.generates
            self.server.first = self.server.running - self.server.reading + self.server.left
            return self.reply(200, METRICS.format_map(vars(self.server)).encode())
        return self.reply(200 if self.path == "/health" else 404, b"")

    def do_POST(self) -> None:
        self.server.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.server.keys.append(self.headers["Authorization"])
        getattr(self, self.server.mode)()

    def answer(self) -> None:
        self.reply(200, json.dumps({"choices": [{"text": " x"}], "usage": {"completion_tokens": 4}}).encode())

    def empty(self) -> None:
        self.reply(200, json.dumps({"choices": [{"text": ""}], "usage": {"completion_tokens": 0}}).encode())

    def fail(self) -> None:
        self.reply(500, b'{"error": {"message": "EngineCore encountered an issue.\\nSee stack trace", "code": 500}}')

    def hang(self) -> None:
        self.server.release.wait(20)

    def notice(self) -> None:
        with suppress(ConnectionError):
            assert self.connection.recv(1) == b""
        self.server.gone.set()

    def close(self) -> None:
        self.close_connection = True

    def trickle(self) -> None:
        self.send_response(200)
        self.end_headers()
        while not self.server.release.wait(0.05):
            self.wfile.write(b" ")

    def flood(self) -> None:
        self.send_response(200)
        self.end_headers()
        while not self.server.release.is_set():
            self.wfile.write(b" " * (1 << 20))

    def nonsense(self) -> None:
        self.wfile.write(b"SSH-2.0-OpenSSH_10.0\r\n")

    def reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serving() -> Iterator[Vllm]:
    server = Vllm()
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.release.set()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def server() -> Iterator[Vllm]:
    with serving() as server:
        yield server


class Watcher:
    """The port with its watcher running, and what it woke for."""

    def __init__(self, served: Served | None, pace: Pace) -> None:
        self.served = served
        self.api = VllmApi(pace)
        self.wakes: list[str] = []

    async def see(self, wanted: Callable[[Answer], object], seconds: float = 5.0) -> Answer:
        deadline = time.monotonic() + seconds
        while not wanted(answer := await self.api.look(self.served)):
            assert time.monotonic() < deadline, answer
            await asyncio.sleep(0.01)
        return answer


def play(served: Served | None, script: Callable[[Watcher], Awaitable[None]], pace: Pace = PACE) -> None:
    async def main() -> None:
        watcher = Watcher(served, pace)
        await watcher.api.look(served)
        watching = asyncio.create_task(watcher.api.watch(watcher.wakes.append))
        try:
            await script(watcher)
        finally:
            watching.cancel()
            began = time.monotonic()
            await asyncio.wait([watching])
            assert time.monotonic() - began < 0.3, "the end waits for no server"

    asyncio.run(main())


def answers(answer: Answer) -> bool:
    return answer.at > 0 and not answer.error


def failed(answer: Answer) -> bool:
    return bool(answer.error)


def test_a_completion_is_the_proof(server: Vllm) -> None:
    async def script(watcher: Watcher) -> None:
        answer = await watcher.see(answers)
        assert abs(answer.at - time.time()) < 2
        assert 0 < answer.seconds < 1
        assert answer.failed_at == 0
        assert watcher.wakes == ["the model answers"]
        [asked] = server.asked
        assert (asked["model"], asked["max_tokens"], asked["ignore_eos"]) == ("tiny", 4, True)

    play(server.served, script)


def test_an_idle_server_is_asked_rarely(server: Vllm) -> None:
    async def script(watcher: Watcher) -> None:
        first = await watcher.see(answers)
        await watcher.see(lambda answer: answer.at > first.at)
        assert len(server.asked) == 2
        await asyncio.sleep(0.7)
        assert 3 <= len(server.asked) <= 5
        assert len(watcher.wakes) == 1

    play(server.served, script)


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("fail", "HTTP 500 to a completion: EngineCore encountered an issue."),
        ("empty", "a completion without a token"),
        ("hang", "no completion within 0.4 s"),
        ("trickle", "no completion within 0.4 s"),
        ("flood", "no completion: an answer of more than 8 MiB"),
        ("close", "no completion: the server closed the connection"),
        ("nonsense", "no completion: the answer is not HTTP"),
    ],
)
def test_what_is_no_answer(server: Vllm, mode: str, words: str) -> None:
    async def script(watcher: Watcher) -> None:
        answer = await watcher.see(failed)
        assert (answer.at, answer.error) == (0, words)
        assert abs(answer.failed_at - time.time()) < 2
        await watcher.see(lambda later: later.failed_at > answer.failed_at)
        assert watcher.wakes == [words], "the same failure wakes once"
        server.mode = "answer"
        server.release.set()
        assert (await watcher.see(answers)).failed_at == 0
        server.mode, before = mode, len(server.asked)
        server.release.clear()
        assert (await watcher.see(failed)).at > 0
        assert len(server.asked) > before
        assert watcher.wakes == [words, "the model answers", words]

    server.mode = mode
    play(server.served, script, replace(PACE, completion=5.0 if mode == "flood" else 0.4))


def test_nobody_listens() -> None:
    async def script(watcher: Watcher) -> None:
        assert (await watcher.see(failed)).error == "no completion: Connection refused"

    with serving() as gone:
        served = gone.served
    play(served, script)


def test_a_server_that_comes_and_goes() -> None:
    async def script(watcher: Watcher) -> None:
        with serving() as server:
            watcher.served = server.served
            await watcher.see(answers)
        answer = await watcher.see(failed)
        assert answer.at > 0

    play(None, script)


def test_moving_counters_are_an_answer(server: Vllm) -> None:
    async def script(watcher: Watcher) -> None:
        first = await watcher.see(answers)
        server.mode, server.running, server.generates = "hang", 1, True
        later = await watcher.see(lambda answer: answer.at > first.at + 1)
        assert later.seconds == first.seconds
        assert len(server.asked) == 1, "a busy server is not asked"
        assert watcher.wakes == ["the model answers"]

    play(server.served, script)


def test_a_long_prompt_being_read_is_an_answer(server: Vllm) -> None:
    async def script(watcher: Watcher) -> None:
        first = await watcher.see(answers)
        server.mode, server.running, server.reading = "hang", 1, 1
        for step in range(1, 15):
            server.cache = step / 100
            await asyncio.sleep(0.1)
        answer = await watcher.api.look(watcher.served)
        assert answer.at > first.at + 0.8
        assert not answer.error

    play(server.served, script)


def test_counters_that_stand_still_are_a_failure(server: Vllm) -> None:
    async def script(watcher: Watcher) -> None:
        await watcher.see(answers)
        server.running, server.waiting, began = 1, 2, time.monotonic()
        answer = await watcher.see(failed)
        assert 0.4 <= time.monotonic() - began < 1.5
        assert answer.error == "3 requests run or wait and no counter moves"
        assert len(server.asked) <= 2
        server.generates = True
        assert (await watcher.see(answers)).at > answer.at
        assert watcher.wakes == ["the model answers", answer.error, "the model answers"]

    play(server.served, script)


def test_requests_that_wait_are_no_prompts_that_are_read(server: Vllm) -> None:
    async def script(watcher: Watcher) -> None:
        await watcher.see(answers)
        server.running, server.waiting, began = 64, 10, time.monotonic()
        await watcher.see(failed)
        assert time.monotonic() - began < PACE.reading

    play(server.served, script)


def test_requests_that_have_just_come_get_their_time(server: Vllm) -> None:
    async def script(watcher: Watcher) -> None:
        await watcher.see(answers)
        await asyncio.sleep(0.6)
        server.running = 1
        await asyncio.sleep(0.25)
        assert not (await watcher.api.look(watcher.served)).error
        server.running = 0
        await asyncio.sleep(0.5)
        assert not (await watcher.api.look(watcher.served)).error

    play(server.served, script)


def test_a_prompt_that_is_read_has_longer(server: Vllm) -> None:
    """One step of it moves no counter."""

    async def script(watcher: Watcher) -> None:
        await watcher.see(answers)
        server.running = server.reading = 1
        await asyncio.sleep(2 * PACE.patience)
        assert not (await watcher.api.look(watcher.served)).error
        answer = await watcher.see(failed)
        assert answer.failed_at - answer.failing >= PACE.reading

    play(server.served, script)


@pytest.mark.parametrize("while_read", [False, True], ids=["before", "while it is read"])
def test_a_prompt_is_given_its_time_although_a_client_has_left(server: Vllm, *, while_read: bool) -> None:
    async def script(watcher: Watcher) -> None:
        await watcher.see(answers)
        server.mode, server.running, server.generates = "hang", 2, True
        await asyncio.sleep(0.2)
        server.running, server.reading = 2 + while_read, int(while_read)
        await asyncio.sleep(0.2)
        server.running, server.left = server.running - 1, 1
        await asyncio.sleep(0.2)
        server.running, server.reading, server.generates = 2, 1, False
        await asyncio.sleep(2 * PACE.patience)
        assert not (await watcher.api.look(watcher.served)).error
        await watcher.see(failed)

    play(server.served, script)


def test_a_row_of_failures_begins_with_what_the_first_has_seen(server: Vllm) -> None:
    async def script(watcher: Watcher) -> None:
        first = await watcher.see(answers)
        assert first.at - 1 < first.heard_at <= first.at
        server.mode = "hang"
        hung = await watcher.see(failed)
        assert hung.failed_at - hung.failing >= PACE.completion
        later = await watcher.see(lambda answer: answer.failed_at > hung.failed_at)
        assert (later.failing, later.heard_at) == (hung.failing, first.heard_at)

    play(server.served, script)


def test_nobody_is_heard_where_nobody_listens(server: Vllm) -> None:
    async def script() -> None:
        run = Run(replace(server.served, url="http://127.0.0.1:1"), PACE)
        assert (await run.look(Answer())).heard_at == 0.0

    asyncio.run(script())


def test_a_late_completion_beside_others_that_move_is_no_failure(server: Vllm) -> None:
    async def script() -> None:
        run = Run(server.served, PACE)
        last = await run.look(Answer())
        server.mode, server.running = "hang", 0
        server.metrics = False
        await asyncio.sleep(PACE.ask)
        assert failed(await run.look(last)), "without metrics a late completion is a failure"
        server.metrics, server.running, server.generates = True, 1, True
        assert (await run.look(last)).at == last.at, "the first reading proves nothing"
        assert (await run.look(last)).at > last.at

    asyncio.run(script())


def test_a_busy_server_that_strixd_first_looks_at_is_not_asked(server: Vllm) -> None:
    """As after a restart of strixd: with a long queue a completion would come too late, and prove nothing."""

    async def script(watcher: Watcher) -> None:
        answer = await watcher.see(answers)
        assert not answer.failed_at
        assert not server.asked

    server.mode, server.running, server.waiting, server.generates = "hang", 8, 200, True
    play(server.served, script)


@pytest.mark.parametrize("requests", [0, 3])
def test_a_server_that_hangs_when_strixd_first_looks_has_answered_before(server: Vllm, requests: int) -> None:
    """Its own counters say so: it is not loading."""

    async def script(watcher: Watcher) -> None:
        answer = await watcher.see(failed)
        assert (answer.at, answer.proven) == (0.0, True)
        assert answer.failed_at - answer.failing >= 0.4

    server.mode, server.running = "hang", requests
    play(server.served, script)


def test_a_server_whose_first_answer_was_somebody_elses_has_not_failed(server: Vllm) -> None:
    """The refusals of its start are no failures of a server that answers, whoever asked first."""

    async def script() -> None:
        served = server.served
        refused = await Run(replace(served, url="http://127.0.0.1:1"), PACE).look(Answer())
        assert refused.error
        run = Run(served, PACE)
        first = await run.look(refused)
        assert (first.proven, first.error, first.failed_at, first.failing) == (True, "", 0.0, 0.0)
        assert first.heard_at
        assert answers(await run.look(first))

    server.mode, server.running, server.generates = "hang", 1, True
    asyncio.run(script())


def test_a_server_that_has_made_no_token_is_not_proven(server: Vllm) -> None:
    async def script(watcher: Watcher) -> None:
        assert not (await watcher.see(failed)).proven

    server.mode, server.metrics = "hang", False
    play(server.served, script)


def test_others_that_have_come_beside_a_late_completion_are_watched_by_their_counters(server: Vllm) -> None:
    async def script() -> None:
        run = Run(server.served, PACE)
        last = await run.look(Answer())
        server.mode = "hang"
        await asyncio.sleep(PACE.ask)
        late = asyncio.create_task(run.look(last))
        await asyncio.sleep(PACE.completion / 2)
        server.running = server.reading = 1
        assert not failed(await late), "a step of a long prompt moves nothing"
        await asyncio.sleep(PACE.patience * 2)
        assert not failed(await run.look(last))
        await asyncio.sleep(PACE.reading)
        assert failed(await run.look(last))

    asyncio.run(script())


def test_a_server_without_metrics_is_asked(server: Vllm) -> None:
    async def script(watcher: Watcher) -> None:
        first = await watcher.see(answers)
        await watcher.see(lambda answer: answer.at > first.at)
        assert len(server.asked) == 2

    server.metrics = False
    play(server.served, script)


def test_a_server_without_metrics_has_the_time_of_a_long_prompt(server: Vllm) -> None:
    """Others may be before strixd's own completion, and no counter tells."""

    async def script(watcher: Watcher) -> None:
        await watcher.see(answers)
        server.mode = "hang"
        await asyncio.sleep(PACE.ask + 2 * PACE.completion)
        assert not (await watcher.api.look(watcher.served)).error
        assert (await watcher.see(failed)).error == f"no completion within {PACE.reading:g} s"

    server.metrics = False
    play(server.served, script)


def test_an_answer_belongs_to_its_run(server: Vllm) -> None:
    async def script(watcher: Watcher) -> None:
        await watcher.see(answers)
        server.mode = "hang"
        watcher.served = replace(server.served, invocation="run-2")
        assert await watcher.api.look(watcher.served) == Answer()
        await watcher.see(failed)
        assert await watcher.api.look(None) == Answer()
        watcher.served, before = None, len(server.asked)
        await asyncio.sleep(0.3)
        assert len(server.asked) == before, "nobody is asked when nothing is served"

    play(server.served, script)


def test_retargeting_does_not_wait_for_a_hung_server(server: Vllm) -> None:
    async def script(watcher: Watcher) -> None:
        await asyncio.sleep(0.1)
        with serving() as other:
            watcher.served = other.served
            await watcher.see(answers, seconds=2)

    server.mode = "hang"
    play(server.served, script, replace(PACE, completion=20.0))


def test_the_key_is_read_from_its_file(server: Vllm, tmp_path: Path) -> None:
    async def script(watcher: Watcher) -> None:
        assert str(key) in (await watcher.see(failed)).error
        key.write_text("secret\n")
        await watcher.see(answers)
        assert server.keys == ["Bearer secret"]

    key = tmp_path / "key"
    play(replace(server.served, api_key_file=str(key)), script)


def test_metrics() -> None:
    text = METRICS.format(running=2.0, waiting=1.0, cache=0.25, made=7.0, first=2)
    progress = (("generation_tokens_total", 12.0), ("kv_cache_usage_perc", 0.25))
    assert read_load(text.encode()) == Load(3, 2, 0, progress, proven=True)
    assert read_load(b"process_start_time_seconds 1\n") is None
    assert read_load(b"vllm:num_requests_running 0.0\nvllm:generation_tokens_total x\n") == Load(
        0, 0, 0, (), proven=False
    )


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf"])
def test_what_is_no_number_is_no_news(value: str) -> None:
    text = METRICS.format(running=value, waiting=value, cache=value, made=value, first=value).encode()
    load = read_load(text)
    assert load == read_load(text)
    assert load == Load(0, 0, 0, (("generation_tokens_total", 5.0), ("kv_cache_usage_perc", 0.0)), proven=True)


def test_metrics_are_read_cheaply() -> None:
    line = b'vllm:request_prefill_time_seconds_bucket{engine="0",le="20480.0",model_name="tiny"} 1234.0\n'
    text = METRICS.format(running=2.0, waiting=1.0, cache=0.25, made=7.0, first=3).encode() + line * 2000
    began = time.process_time()
    for _ in range(10):
        assert read_load(text)
    assert time.process_time() - began < 0.2, f"20 ms for {len(text)} bytes, ten times"


def test_bodies() -> None:
    assert [tokens(text) for text in (b"", b"{}", b"[]", b'{"usage": {"completion_tokens": 3}}')] == [0, 0, 0, 3]
    endless = b'{"usage": {"completion_tokens": Infinity}}'
    assert [tokens(text) for text in (endless, endless.replace(b"Infinity", b"NaN"))] == [0, 0]
    assert complaint(b'{"error": {"message": "a\\nb"}}') == "a"
    assert complaint(b'{"message": "old"}') == "old"
    assert complaint(b"<html>\nx") == "<html>"
    assert complaint(b'{"error": "words"}') == '{"error": "words"}'
    assert complaint(b"x" * 999) == "x" * 200


def test_a_given_up_request_leaves_no_connection(server: Vllm) -> None:
    """vLLM ends the generation of a client that has gone."""

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await fetch(server.served, "POST", "/v1/completions", b"{}")
        assert await asyncio.to_thread(server.gone.wait, 2)

    server.mode = "notice"
    asyncio.run(main())
