"""Reads all facts at once, each within its own time, whatever the others do.

A reader's parameters are named as the facts that it needs, besides the scene; one whose facts could not be read is not
read either. What hangs (a dead file system, a container that does not answer) costs its own fact.
"""

from __future__ import annotations

import inspect
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from dataclasses import dataclass
from pathlib import Path

from strixd.doctor.finding import Unread
from strixd.doctor.surroundings import Surroundings
from strixd.errors import StrixdError

AS_ROOT = "sudo strixd-cli doctor"


@dataclass(frozen=True, slots=True)
class Scene:
    """The host: its files below `root`, and what is not a file."""

    root: Path
    around: Surroundings

    def path(self, absolute: str) -> Path:
        return self.root / absolute.lstrip("/")


@dataclass(frozen=True, slots=True)
class Reader:
    """`within`: seconds, counted from the beginning of all, so that those for the facts it needs are among them."""

    read: Callable[..., object]
    within: float = 5.0


def needed(readers: Mapping[str, Reader], names: Iterable[str]) -> dict[str, Reader]:
    """Those that bring the named facts, and the facts that they need themselves."""
    found: dict[str, Reader] = {}
    ahead = list(names)
    while ahead:
        name = ahead.pop()
        if name not in found and name != "scene":
            found[name] = readers[name]
            ahead += inspect.signature(readers[name].read).parameters
    return found


def gather(readers: Mapping[str, Reader], scene: Scene) -> dict[str, object]:
    """A value or Unread for each name."""
    began = time.monotonic()
    futures: dict[str, Future[object]] = {name: Future() for name in readers}
    for name, reader in readers.items():
        # A daemon thread, not an executor: one that hangs does not keep the process.
        arguments = (futures[name], reader, scene, futures)
        threading.Thread(target=_fulfil, args=arguments, name=name, daemon=True).start()
    return {name: _outcome(futures[name], reader.within, began) for name, reader in readers.items()}


def _outcome(future: Future[object], within: float, began: float) -> object:
    try:
        return future.result(max(0.0, began + within - time.monotonic()))
    except Late:
        return Unread(f"not read within {within:g} s")


def _fulfil(future: Future[object], reader: Reader, scene: Scene, futures: Mapping[str, Future[object]]) -> None:
    """A bug in a reader is shown where its fact is waited for."""
    try:
        future.set_result(_read(reader, scene, futures))
    except BaseException as error:  # noqa: BLE001 - handed over, not swallowed
        future.set_exception(error)


def _read(reader: Reader, scene: Scene, futures: Mapping[str, Future[object]]) -> object:
    arguments: dict[str, object] = {}
    for name in inspect.signature(reader.read).parameters:
        arguments[name] = scene if name == "scene" else futures[name].result()
    unread = next((each for each in arguments.values() if isinstance(each, Unread)), None)
    if unread:
        return unread
    try:
        return reader.read(**arguments)
    except PermissionError as error:
        return Unread(str(error), AS_ROOT if os.geteuid() else "")
    except StrixdError as error:
        return Unread(str(error), error.hint)
    except ImportError as error:  # a library that the package demands, and somebody has removed
        return Unread(str(error), f"dnf install python3-{error.name}")
    except (OSError, ValueError) as error:
        return Unread(str(error) or repr(error), AS_ROOT if os.geteuid() else "")
