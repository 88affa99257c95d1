"""The load that the model is measured with: always the same, and what came of it as numbers. Pure.

Prompts are words drawn by a fixed seed. The server's prefix cache would know them from the last run and read none of
them: a salt of each run keeps it from that (vLLM 0.9 and later; an earlier one passes it over).
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from strixd.bench.readings import percentile

SEED = 20251130
TOKENS = 64  # made for each request
WORDS = 80  # of each prompt: 100 to 160 tokens
ROUNDS = {1: 4, 4: 3, 16: 2}
"""Requests of each stream, by the number of streams."""
_SYLLABLES = ("ka", "lo", "mi", "ne", "pu", "ra", "si", "to", "ve", "xu")


@dataclass(frozen=True, slots=True)
class Taken:
    """One request: seconds to its first token, and to its end; tokens made."""

    first: float
    seconds: float
    tokens: int


@dataclass(frozen=True, slots=True)
class Level:
    """One number of streams. Times to the first token in ms; tokens per second of all streams together."""

    streams: int
    requests: int
    first: float
    first_p95: float
    rate: float


def prompts(streams: int) -> tuple[tuple[str, ...], ...]:
    """For each stream its prompts, all different."""
    draw = random.Random(SEED + streams)
    return tuple(tuple(_prompt(draw) for _ in range(ROUNDS[streams])) for _ in range(streams))


def _prompt(draw: random.Random) -> str:
    return " ".join("".join(draw.choices(_SYLLABLES, k=2)) for _ in range(WORDS))


def request(model: str, prompt: str, salt: str) -> bytes:
    """A completion as a stream of events, which ends with what was used. Greedy, so that all runs do the same."""
    body: dict[str, Any] = {"model": model, "prompt": prompt, "max_tokens": TOKENS, "temperature": 0, "seed": SEED}
    body |= {"ignore_eos": True, "stream": True, "stream_options": {"include_usage": True}, "cache_salt": salt}
    return json.dumps(body).encode()


def level(streams: int, taken: Sequence[Taken], seconds: float) -> Level:
    """`seconds`: from the first request to the last answer. ValueError: nothing was taken."""
    first = [each.first * 1000 for each in taken]
    rate = sum(each.tokens for each in taken) / seconds
    return Level(streams, len(taken), percentile(first, 50), percentile(first, 95), rate)


def values(levels: Sequence[Level]) -> dict[str, float]:
    """By the names under which they are compared."""
    firsts = {f"time to first token, {each.streams} streams, ms": each.first for each in levels}
    return firsts | {f"throughput, {each.streams} streams, tokens/s": each.rate for each in levels}
