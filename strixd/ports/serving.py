"""Ray, vLLM's API, the TCP ports that both listen on, and the site that models come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Member:
    """A node as Ray lists it. `record`: what its strixd says of itself, last renewed `age` seconds ago (every 5 s). A
    killed node and its successor can both be alive in Ray's eyes for 15 s."""

    name: str
    address: str
    alive: bool
    gpus: int = 0
    record: Mapping[str, str] = field(default_factory=dict)
    age: float = 0.0


@dataclass(frozen=True, slots=True)
class RayReport:
    """What the probe in the Ray container last said. `session` is the cluster's, `own_session` this node's
    raylet's: when they differ, this node belongs to a cluster that is gone. `error` is why Ray did not answer."""

    at: float
    session: str = ""
    own_session: str = ""
    version: str = ""  # Ray's
    members: tuple[Member, ...] = ()
    error: str = ""


class Ray(Protocol):
    """The cluster, by way of the probe."""

    async def report(self) -> RayReport | None:
        """The newest report of the running probe; None when no probe is connected."""

    async def publish(self, record: Mapping[str, str]) -> None:
        """What this node's probe keeps in Ray's key-value store about this node from now on, this one and later."""

    async def published(self) -> Mapping[str, str]:
        """What was last given to publish; empty after a start of the daemon."""


@dataclass(frozen=True, slots=True)
class Served:
    """Whom to ask for a completion: the API of one run (`invocation`) of the model unit."""

    url: str  # "http://127.0.0.1:8000"
    model: str
    invocation: str
    api_key_file: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The last looks at a served model. `at`: when a completion last came out, 0 for never in this run;
    `seconds`: how long that took; `failed_at` and `error`: the last look that brought none, if later, and `failing`:
    from when on none came (the beginning of the first such look, or when counters last moved). `heard_at`: when
    something first listened in this run, 0 for never. `proven`: tokens came out of this run, whoever asked for them."""

    at: float = 0.0
    seconds: float = 0.0
    failed_at: float = 0.0
    error: str = ""
    failing: float = 0.0
    heard_at: float = 0.0
    proven: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """How a start goes on. `still`: for how many seconds no sign of it has changed (a line written, a file grown);
    `idle`: for how many its processes have not used a good part of a processor; `short`: for how many fewer ranks have
    been there than were before. Since it was first seen at most."""

    still: float
    idle: float
    short: float = 0.0


class Work(Protocol):
    """What the workloads on this host do."""

    async def progress(
        self, run: str, folders: tuple[str, ...], signs: object, seconds: float, ranks: int | None
    ) -> Progress:
        """`run`: the invocation that is starting; `folders`: those in which its files grow; `signs`: whatever else
        shows progress when it differs from the last time; `seconds`: processor time spent on other nodes so far;
        `ranks`: how many there are, None where that is not known."""


class Model(Protocol):
    """vLLM's HTTP API."""

    async def look(self, served: Served | None) -> Answer:
        """What the watcher knows of this run; it goes on asking this one from now on (None: nobody)."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A socket that listens on a TCP port of this host. `address`: "0.0.0.0" and "::" are all, "::" of IPv4 too
    unless `v6only`. `unit`: the systemd unit in whose control group it was made, "" for none that is still there.
    `processes`: number and name of those that live in that group; one of them has it."""

    address: str
    v6only: bool = False
    unit: str = ""
    processes: tuple[tuple[int, str], ...] = ()


class Listeners(Protocol):
    """The kernel's table of sockets."""

    async def on(self, port: int) -> tuple[Holder, ...]:
        """Who listens on this TCP port now, on whatever address. None when the kernel does not tell, too: not to know
        who is in the way keeps nobody from trying."""


class Hub(Protocol):
    """The site that models come from (Hugging Face, or what HF_ENDPOINT names)."""

    async def refusal(self, model: str) -> str:
        """Why this node may not fetch the model (gated, no such model), in a sentence with the page to open; "" when
        it may, and when the hub cannot be reached, which proves nothing. Remembered for a few minutes."""
