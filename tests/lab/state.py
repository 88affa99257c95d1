"""What is written down about the lab that runs now, so that another process can use it."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.lab.layout import Seat, run_folder, seats


@dataclass(frozen=True, slots=True)
class State:
    names: tuple[str, ...]
    binds: tuple[str, ...] = ()  # FROM:PLACE, shown read-only in every host
    kept: bool = False  # left running on purpose: whoever comes next must not sweep it away
    owner: str = ""  # who started it, for a message
    spare: bool = False  # a second cable joins the hosts

    @property
    def seats(self) -> tuple[Seat, ...]:
        return seats(self.names)


def save(state: State) -> None:
    run_folder().mkdir(parents=True, exist_ok=True)
    new = _file().with_suffix(".new")
    new.write_text(json.dumps(asdict(state)))
    new.rename(_file())


def load() -> State:
    """The running lab's state; LookupError when there is none."""
    try:
        found = json.loads(_file().read_text())
    except FileNotFoundError:
        raise LookupError("no lab is running here; `python -m tests.lab up` starts one") from None
    return State(
        tuple(found["names"]), tuple(found["binds"]), bool(found["kept"]), str(found["owner"]), bool(found.get("spare"))
    )


def me() -> str:
    return f"process {os.getpid()} in {Path.cwd()}"


def _file() -> Path:
    return run_folder() / "lab.json"
