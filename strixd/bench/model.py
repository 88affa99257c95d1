"""bench model: the served model under a fixed load, over its HTTP API."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from strixd.bench import history, load, scene
from strixd.desired import API_KEY
from strixd.errors import Refused, Unavailable
from strixd.host.files import read_text
from strixd.host.vllm import complaint, request, status_of
from strixd.ports import Served
from strixd.resources import image

WITHIN = 180.0  # seconds for one request
LINE = 1 << 20  # bytes of an event
LOGS = "strixd-cli status; strixd-cli logs vllm"


@dataclass(frozen=True, slots=True)
class Outcome:
    """`at`: seconds since the epoch."""

    at: float
    model: str
    digest: str
    levels: tuple[load.Level, ...]
    worse: tuple[history.Worse, ...]


def measure(socket: str, tell: Callable[[str], None]) -> Outcome:
    """Raises StrixdError."""
    told = scene.status(socket)
    served = target(told, API_KEY if Path(API_KEY).exists() else "")
    digest = image.report(read_text(image.REPORT)).digest
    levels = asyncio.run(levels_of(served, tell))
    run = history.Run(time.time(), key(served.model, digest, over(told["model"])), load.values(levels))
    earlier = history.load()
    history.keep(run, earlier)
    return Outcome(run.at, served.model, digest, levels, history.worse(run, earlier))


def key(model: str, digest: str, over: str) -> str:
    """Runs of another model or image, or over another rung, are no measure for this one."""
    return f"model {model} {digest} {over}".rstrip()


def over(model: dict[str, Any]) -> str:
    """The rung that status names ("RDMA (RoCE v2, …)", "TCP over …"), as "rdma" or "tcp"; "" when it names none."""
    return str(model.get("over", "")).partition(" ")[0].lower()


def target(told: dict[str, Any], api_key: str) -> Served:
    """Whom to ask, by the status of this node. Raises Refused."""
    if told["role"] == "worker":
        where = f"{told['head']} ({told['headAddress']})"
        raise Refused(f"Cannot measure the model here: the head serves it, {where}", hint=f"on {told['head']}")
    model = told["model"]
    if model is None:
        raise Refused("Cannot measure the model: none is ordered", hint="strixd-cli serve MODEL")
    if told["drained"] or not model["answeredAt"]:
        raise Refused(f"Cannot measure {model['name']}: it does not answer now", hint="strixd-cli status")
    return Served(model["url"], model["name"], "", api_key)


async def levels_of(served: Served, tell: Callable[[str], None]) -> tuple[load.Level, ...]:
    """One number of streams after the other. The first request of all counts for nothing: it may compile."""
    salt = secrets.token_hex(8)
    await ask(served, load.request(served.model, "Hello", salt))
    levels = []
    for streams in load.ROUNDS:
        tell(f"{streams} stream{'s' if streams > 1 else ''}")
        levels.append(await _level(served, streams, salt))
    return tuple(levels)


async def _level(served: Served, streams: int, salt: str) -> load.Level:
    async def one(prompts: tuple[str, ...]) -> list[load.Taken]:
        return [await ask(served, load.request(served.model, prompt, salt)) for prompt in prompts]

    began = time.monotonic()
    taken = await asyncio.gather(*map(one, load.prompts(streams)))
    return load.level(streams, [each for stream in taken for each in stream], time.monotonic() - began)


async def ask(served: Served, body: bytes) -> load.Taken:
    """One request. Raises Unavailable with what came instead of tokens."""
    try:
        async with asyncio.timeout(WITHIN):
            return await _ask(served, body)
    except TimeoutError:
        raise Unavailable(f"{served.model} has not answered a request within {WITHIN:.0f} s", hint=LOGS) from None
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise Unavailable(f"{served.model} has not answered a request: {error}", hint=LOGS) from None


async def _ask(served: Served, body: bytes) -> load.Taken:
    url = urlsplit(served.url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port or 80, limit=LINE)
    began = time.monotonic()
    try:
        writer.write(request(served, "POST", "/v1/completions", body))
        head = await reader.readuntil(b"\r\n\r\n")
        if status_of(head) != 200:
            raise ValueError(f"HTTP {status_of(head)}: {complaint(await reader.read(LINE))}")
        return await _events(reader, began)
    except asyncio.IncompleteReadError:
        raise ValueError("the server closed the connection") from None
    finally:
        writer.transport.abort()


async def _events(reader: asyncio.StreamReader, began: float) -> load.Taken:
    """Until [DONE]. Whatever else stands between the events (the sizes of chunks) is passed over."""
    first, made = 0.0, 0
    while line := await reader.readline():
        event = line.removeprefix(b"data: ").strip() if line.startswith(b"data: ") else b""
        if event == b"[DONE]":
            break
        told = dict(json.loads(event)) if event else {}
        if "error" in told:
            raise ValueError(complaint(event))
        first = first or (time.monotonic() - began if told.get("choices") else 0.0)
        made = (told.get("usage") or {}).get("completion_tokens", made)
    else:
        raise ValueError("the stream broke off")
    if not first or not made:
        raise ValueError("a completion without a token")
    return load.Taken(first, time.monotonic() - began, int(made))
