"""Waiting for several things at once, none of which is left alone when another fails."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from strixd.errors import StrixdError

T = TypeVar("T")


async def together(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """All results, in order. When some failed, all have ended all the same; a bug is raised before a StrixdError."""
    ended = await asyncio.gather(*works, return_exceptions=True)
    failures = [each for each in ended if isinstance(each, BaseException)]
    for failure in sorted(failures, key=lambda each: isinstance(each, StrixdError)):
        raise failure
    return [each for each in ended if not isinstance(each, BaseException)]
