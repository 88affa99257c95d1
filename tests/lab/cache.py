"""Things that take minutes to build are built once, and kept under a name that changes with their recipe.

A build happens in a folder beside its final place and is renamed at the end, so an interrupted one is never taken for
a good one.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab.shell import remove_tree

Build = Callable[[Path], None]


def cache_folder() -> Path:
    return Path(os.environ.get("STRIXD_LAB_CACHE", "/var/cache/strixd-lab"))


def cached(name: str, recipe: str, build: Build) -> Path:
    """The folder that `build` makes from `recipe`, from the cache or made now. Builders wait for each other."""
    folder = cache_folder() / f"{name}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
    if folder.is_dir():
        return folder
    with _only_builder(name):
        if not folder.is_dir():
            _build(folder, name, build)
    return folder


def say(words: str) -> None:
    """Progress for a person, on standard error: building takes minutes and silence looks like a hang."""
    sys.stderr.write(f"lab: {words}\n")
    sys.stderr.flush()


def _build(folder: Path, name: str, build: Build) -> None:
    part = folder.with_name(folder.name + ".part")
    remove_tree(part)
    part.mkdir(parents=True)
    say(f"building {name}, once; this may take minutes")
    started = time.monotonic()
    build(part)
    part.rename(folder)
    say(f"built {name} in {time.monotonic() - started:.0f} s")


@contextmanager
def _only_builder(name: str) -> Iterator[None]:
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
