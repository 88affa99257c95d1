"""vLLM's HTTP API: does the model answer? The proof is a completion of a few tokens in bounded time, never /health.

A server with requests of its own is not asked for another: while its counters move, that is the answer, and when they
stand still for `patience` seconds, that is the failure; for `reading` seconds while a prompt may be read, since one
step of that can take long and moves nothing. The client speaks HTTP/1.0 over asyncio streams (one connection a
request, read to its end), so that a hung server costs a timeout and no thread.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from urllib.parse import urlsplit

from strixd.ports import Answer, Served, Wake

logger = logging.getLogger(__name__)

BODY_BYTES = 8 << 20
QUESTION = {"prompt": "Hello", "max_tokens": 4, "temperature": 0, "ignore_eos": True}
METRIC = re.compile(
    rb"^vllm:(num_requests_running|num_requests_waiting|generation_tokens_total|prompt_tokens_total|request_success_total"
    rb"|time_to_first_token_seconds_count|kv_cache_usage_perc|gpu_cache_usage_perc)(?:\{.*\})? (\S+)",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between looks: before the first answer, after a failure, with requests running, idle; between two
    completions of an idle server; how long a completion and the metrics may take; how long counters may stand while
    tokens are made, and while prompts are read."""

    first: float = 1.0
    again: float = 2.0
    busy: float = 2.0
    idle: float = 10.0
    ask: float = 30.0
    completion: float = 20.0
    metrics: float = 5.0
    patience: float = 16.0
    reading: float = 120.0


@dataclass(frozen=True, slots=True)
class Load:
    """A reading of /metrics. `progress` differs from the last one's when the engine has done a step: tokens made,
    prompts read, and (in the middle of a long prompt) the growth of its cache. `first`: first tokens made; `begun`:
    running requests without one yet (no prompt that waits is read), less those whose clients left after theirs: vLLM
    counts no client that leaves (0.32). `proven`: tokens were made."""

    requests: int
    first: int
    begun: int
    progress: tuple[tuple[str, float], ...]
    proven: bool


class NoAnswer(Exception):
    """Why there was none, in words that stay the same while the cause does. `after`: seconds for which it had been so
    when it was certain; `heard`: something listened."""

    def __init__(self, words: str, *, after: float = 0.0, heard: bool = True) -> None:
        super().__init__(words)
        self.after = after
        self.heard = heard


class VllmApi:
    """The port Model."""

    def __init__(self, pace: Pace | None = None) -> None:
        self._pace = pace or Pace()
        self._served: Served | None = None
        self._changed = asyncio.Event()
        self._answer = Answer()

    async def look(self, served: Served | None) -> Answer:
        if served != self._served:
            self._served, self._answer = served, Answer()
            self._changed.set()
        return self._answer

    async def watch(self, wake: Wake) -> None:
        """Asks whom `look` named, for ever."""
        while True:
            self._changed.clear()
            async with asyncio.TaskGroup() as group:
                following = group.create_task(self._follow(self._served, wake))
                await self._changed.wait()
                following.cancel()

    async def _follow(self, served: Served | None, wake: Wake) -> None:
        if served is None:
            return
        run = Run(served, self._pace)
        while True:
            answer = await run.look(self._answer)
            if served != self._served:
                return
            before, self._answer = self._answer, answer
            if (before.error, before.at > 0) != (answer.error, answer.at > 0):
                logger.debug("%s: %s", served.model, answer.error or "answers")
                wake(answer.error or "the model answers")
            await asyncio.sleep(run.pause(answer))


class Run:
    """The looks at one run of the server."""

    def __init__(self, served: Served, pace: Pace) -> None:
        self._served = served
        self._pace = pace
        self._load: Load | None = None
        self._moved = 0.0  # by time.monotonic(), like the next
        self._asked = 0.0
        self._left = 0.0  # when a client was last seen to have left, 0: not since the server was idle
        self._least = 0  # what `begun` is when no prompt is read
        self._blind = False  # this server gives no metrics

    def pause(self, answer: Answer) -> float:
        if not answer.at:
            return self._pace.first
        if answer.error:
            return self._pace.again
        return self._pace.busy if self._load and self._load.requests else self._pace.idle

    async def look(self, last: Answer) -> Answer:
        """The answer after one more look; `last` when there was nothing to see yet."""
        moved = await self._progress()
        if not last.proven and self._load and self._load.proven:
            last = served_others(last, time.time())
        try:
            seconds = 0.0 if moved else await self._try(last)
        except NoAnswer as error:
            return failed(last, error, time.time())
        if seconds is None:
            return last
        now = time.time()
        return Answer(at=now, seconds=seconds or last.seconds, heard_at=last.heard_at or now - seconds, proven=True)

    async def _try(self, last: Answer) -> float | None:
        """How long a completion took; 0 when counters have moved; None when it is too early to say."""
        now = time.monotonic()
        if last.proven and self._load and self._load.requests:
            if now - self._moved < (self._pace.reading if self._reads(self._load, now) else self._pace.patience):
                return None
            words = f"{self._load.requests} requests run or wait and no counter moves"
            raise NoAnswer(words, after=now - self._moved)
        if last.at and not last.error and now - self._asked < self._pace.ask:
            return None
        return await self._complete()

    def _reads(self, load: Load, now: float) -> bool:
        """A prompt may be read now. A client that left may have had its first token, which hides one that waits."""
        return load.begun > self._least or bool(self._left and now - self._left < self._pace.reading)

    async def _progress(self) -> bool:
        """Reads the metrics. Requests that were not there at the last reading have their patience from now on."""
        before, self._load = self._load, await self._read_load()
        moved = bool(before and self._load and self._load.progress != before.progress)
        if moved or not before or not before.requests:
            self._moved = time.monotonic()
        if not before or not before.requests:
            self._least, self._left = before.begun if before else 0, 0.0
        elif self._load:
            self._least = min(self._least, self._load.begun)
            left = self._load.begun - before.begun < before.first - self._load.first
            self._left = time.monotonic() if left else self._left
        return moved and bool(self._load and self._load.requests)

    async def _read_load(self) -> Load | None:
        """None when this server gives no metrics (--disable-log-stats); then completions alone are the proof, and have
        the time of a long prompt, since others may be before them."""
        try:
            async with asyncio.timeout(self._pace.metrics):
                status, body = await fetch(self._served, "GET", "/metrics")
        except (OSError, ValueError):
            return None
        load = read_load(body) if status == 200 else None
        self._blind = load is None
        return load

    async def _complete(self) -> float | None:
        self._asked = start = time.monotonic()
        within = self._pace.reading if self._blind else self._pace.completion
        question = json.dumps({"model": self._served.model, **QUESTION}).encode()
        try:
            async with asyncio.timeout(within):
                status, body = await fetch(self._served, "POST", "/v1/completions", question)
        except TimeoutError as error:
            if await self._progress():  # it is late because others are served
                return 0.0
            if self._load and self._load.proven and self._load.requests:  # others have come: their counters tell
                return None
            words = f"no completion within {within:g} s"
            raise NoAnswer(words, after=time.monotonic() - start) from error
        except ConnectionError as error:  # asyncio's own text of it names no cause
            words = f"no completion: {os.strerror(error.errno) if error.errno else error}"
            raise NoAnswer(words, heard=not isinstance(error, ConnectionRefusedError)) from error
        except (OSError, ValueError) as error:
            raise NoAnswer(f"no completion: {error}") from error
        if status != 200:
            raise NoAnswer(f"HTTP {status} to a completion: {complaint(body)}")
        if not tokens(body):
            raise NoAnswer("a completion without a token")
        return time.monotonic() - start


def served_others(last: Answer, now: float) -> Answer:
    """Somebody else was answered before strixd had asked: what it met until then were the refusals of a start."""
    return Answer(heard_at=last.heard_at or now, proven=True)


def failed(last: Answer, why: NoAnswer, now: float) -> Answer:
    """A row of failures begins with what the first of them has seen."""
    begun = now - why.after
    heard = last.heard_at or (begun if why.heard else 0.0)
    return replace(last, failed_at=now, error=str(why), failing=last.failing or begun, heard_at=heard)


async def fetch(served: Served, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
    """Status and body. OSError: no connection; ValueError: not HTTP, or more than 8 MiB."""
    url = urlsplit(served.url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port or 80)
    try:
        writer.write(request(served, method, path, body))
        text = bytearray()
        while piece := await reader.read(1 << 16):
            text += piece
            if len(text) > BODY_BYTES:
                raise ValueError("an answer of more than 8 MiB")
    finally:
        writer.transport.abort()
    head, _, content = bytes(text).partition(b"\r\n\r\n")
    return status_of(head), content


def request(served: Served, method: str, path: str, body: bytes) -> bytes:
    """HTTP/1.0: the server neither sends chunks nor keeps the connection."""
    lines = [f"{method} {path} HTTP/1.0", f"Host: {urlsplit(served.url).netloc}", f"Content-Length: {len(body)}"]
    if body:
        lines.append("Content-Type: application/json")
    if served.api_key_file:
        lines.append(f"Authorization: Bearer {Path(served.api_key_file).read_text().strip()}")
    return "\r\n".join((*lines, "", "")).encode() + body


def status_of(head: bytes) -> int:
    words = head.split(None, 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/"):
        raise ValueError("the server closed the connection" if not head else "the answer is not HTTP")
    return int(words[1])


def read_load(text: bytes) -> Load | None:
    """Sums each metric over its label sets, what is no number left out: NaN would differ from itself, and so move.
    None when vLLM's are not among them."""
    sums: dict[str, float] = {}
    for name, value in METRIC.findall(text):
        with suppress(ValueError):
            number = float(value)
            sums[name.decode()] = sums.get(name.decode(), 0.0) + (number if isfinite(number) else 0.0)
    if "num_requests_running" not in sums:
        return None
    running = sums.pop("num_requests_running")
    requests = int(running + sums.pop("num_requests_waiting", 0.0))
    first_tokens = sums.pop("time_to_first_token_seconds_count", None)
    begun = 0.0 if first_tokens is None else running + sums.get("request_success_total", 0.0) - first_tokens
    proven = sums.get("generation_tokens_total", 0.0) > 0
    return Load(requests, int(first_tokens or 0), int(begun), tuple(sorted(sums.items())), proven=proven)


def tokens(body: bytes) -> int:
    with suppress(ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError):
        return int(json.loads(body)["usage"]["completion_tokens"])
    return 0


def complaint(body: bytes) -> str:
    """The error's message, in its first line's first 200 characters."""
    with suppress(ValueError, LookupError, TypeError, AttributeError, RecursionError):
        told = json.loads(body)
        return str(told.get("error", told).get("message", "")).partition("\n")[0][:200]
    return body.decode(errors="replace").partition("\n")[0][:200]
