"""The model server: waits for its GPUs, loads, answers, and ends in the ways that were measured with vLLM 0.32."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from strixd.ports import Answer, Holder, Served
from strixd.sim.clock import Clock
from strixd.sim.gate import Gate
from strixd.sim.pace import Pace
from strixd.sim.ray import PORT, Cluster
from strixd.sim.units import Run

PLACEMENT = 1800.0  # seconds that vLLM waits for its placement group
TIMEOUT = 20.0  # seconds until a completion that does not come is given up
SOON, LATER = 2.0, 10.0  # seconds between two looks: until the first completion, and after it


@dataclass(frozen=True, slots=True)
class Ending:
    """How a start fails: `after` so many seconds, with this exit status and these words in the journal."""

    after: float
    status: int
    words: str


ENDINGS = {
    "missing": Ending(9.3, 1, "HFValidationError: Repo id must be in the form 'repo_name' or 'namespace/repo_name'"),
    "flag": Ending(10.6, 2, "vllm: error: unrecognized arguments: --frobnicate"),
    "long": Ending(12.0, 1, "pydantic ValidationError: value_error: User-specified max_model_len is greater"),
    "memory": Ending(28.0, 1, "ValueError: Available memory is less than requested memory for kv cache"),
    "port": Ending(8.2, 1, "OSError: [Errno 98] error while attempting to bind on address: address already in use"),
    "alone": Ending(44.0, 1, "RuntimeError: Engine core initialization failed"),
    "placement": Ending(0.0, 1, "RuntimeError: cannot provide a placement group"),
    "crash": Ending(15.0, 1, "RuntimeError: Worker failed with error"),
}


IMPORTS = 0.2  # of the time of a start; then come the ranks
STILL = ("silent", "spinning")
STRANGER = Holder("0.0.0.0", unit="stranger.service", processes=((4242, "nc"),))
OWN = Holder("127.0.0.1", unit="strixd-vllm.service", processes=((808, "vllm"),))


@dataclass(slots=True)
class Listener:
    """Who listens on a port. `error`: what each completion brings; `hung`: none ever comes. `proven`: one has come."""

    model: str
    error: str = ""
    hung: bool = False
    proven: bool = False
    holder: Holder = STRANGER


@dataclass(slots=True)
class Serving:
    """The world's ports, and what goes wrong: `fault` names one of ENDINGS, or "silent" (loads for ever, doing
    nothing), "spinning" (for ever, at full speed) or "mute" (listens, and every completion kills it), for every start
    until it is "". `met`: how many ranks of a former run each start found. `running`: seconds that the requests under
    way still need."""

    listeners: dict[int, Listener] = field(default_factory=dict)
    fault: str = ""
    met: list[int] = field(default_factory=list)
    running: float = 0.0


class Server:
    """One run of `vllm serve`."""

    patience = 0.5
    title = "VLLM::EngineCore"
    _listener: Listener | None = None
    _fault = ""

    def __init__(self, serving: Serving, cluster: Cluster, text: str) -> None:
        self._serving = serving
        self._cluster = cluster
        self._run: Run | None = None
        self.warm_up = cluster.pace.container
        self._placed = 0
        self.port = int(_flag(text, "port", "8000"))
        self.parallel = int(_flag(text, "tensor-parallel-size", "1"))
        self.model = _flag(text, "served-model-name", "") or _model(text)

    def started(self, run: Run) -> None:
        self._run = run
        self._cluster.lost.append(self._lost)
        self._serving.met.append(self._cluster.ranks)
        fault = self._fault = self._serving.fault
        if fault in ENDINGS:
            self._end(run, ENDINGS[fault])
        elif self.port in self._serving.listeners:
            self._end(run, ENDINGS["port"])
        elif not self._cluster.session:
            self._end(run, ENDINGS["alone"])
        elif fault not in STILL:
            run.after(IMPORTS * self._cluster.pace.load, lambda: self._place(run, 0.0))

    def ended(self) -> None:
        self._cluster.lost.remove(self._lost)
        self._cluster.engine_ended()
        if self._listener and self._serving.listeners.get(self.port) is self._listener:
            del self._serving.listeners[self.port]

    @property
    def listens(self) -> bool:
        return self._listener is not None

    @property
    def works(self) -> bool:
        """Uses a processor."""
        return self._fault != "silent" and not self._hung

    @property
    def moves(self) -> bool:
        """Writes lines, grows files."""
        return self._fault not in STILL and not self._hung

    @property
    def _hung(self) -> bool:
        return self._listener is not None and self._listener.hung

    def _end(self, run: Run, ending: Ending) -> None:
        run.after(ending.after, lambda: run.log(ending.words))
        run.after(ending.after + 0.1, lambda: run.exit(ending.status))

    def _place(self, run: Run, waited: float) -> None:
        if self._cluster.gpus() >= self.parallel:
            run.log(f"Loading {self.model}")
            self._cluster.place()
            self._placed = self._cluster.ranks
            run.after((1 - IMPORTS) * self._cluster.pace.load, lambda: self._listen(run))
        elif waited >= PLACEMENT:
            self._end(run, ENDINGS["placement"])
        else:
            run.after(1.0, lambda: self._place(run, waited + 1.0))

    def _listen(self, run: Run) -> None:
        """Not without a rank that was there: it waits for ever."""
        if self._cluster.ranks < self._placed:
            return
        self._listener = self._serving.listeners[self.port] = Listener(self.model, holder=OWN)
        run.log("Application startup complete.")
        if self._serving.fault == "mute":
            self.fail(5.0)

    def _lost(self, name: str) -> None:
        """A node's ranks are gone: an exit status of 0, which is no sign of intent."""
        self.fail(1.7)

    def fail(self, after: float = 0.5) -> None:
        """The engine is dead: errors at once, then the end."""
        if self._listener:
            self._listener.error = "HTTP 500: EngineDeadError"
        run = self._run
        if run:
            run.log("EngineDeadError: EngineCore encountered an issue")
            run.after(after, lambda: run.exit(0))

    def interrupt(self) -> None:
        """The engine finishes what runs, which ends the server 2 s later; what is new gets no token."""
        run = self._run
        if self._listener and run:
            self._listener.error = "a completion without a token"
            run.after(self._serving.running + 2.0, lambda: run.exit(0))

    def hang(self) -> None:
        if self._listener:
            self._listener.hung = True


def _flag(text: str, name: str, default: str) -> str:
    found = re.search(rf"--{name}[= ]'?([^\s\"']+)", text)
    return found.group(1) if found else default


def _model(text: str) -> str:
    found = re.search(r"vllm serve ([^\s\"']+)", text)
    return found.group(1) if found else ""


class SimModel:
    """ports.Model: asks the ordered run for a completion now and then, for as long as its strixd lives."""

    def __init__(self, serving: Serving, gate: Gate, clock: Clock, pace: Pace, changed: Callable[[str], None]) -> None:
        self._serving = serving
        self._gate = gate
        self._clock = clock
        self._pace = pace
        self._changed = changed
        self._served: Served | None = None
        self._answer = Answer()
        self._turn = 0

    async def look(self, served: Served | None) -> Answer:
        async with self._gate.read("model", "look"):
            if served != self._served:
                self._served, self._answer = served, Answer()
                self._turn += 1
                if served:
                    self._ask(self._turn, served)
            return self._answer

    def _ask(self, turn: int, served: Served) -> None:
        if turn != self._turn or self._gate.closed:
            return
        listener = self._serving.listeners.get(urlsplit(served.url).port or 80)
        wait = self._pace.answer
        if listener and listener.hung:
            wait = TIMEOUT
        self._clock.after(wait, lambda: self._told(turn, served, listener))

    def _told(self, turn: int, served: Served, listener: Listener | None) -> None:
        if turn != self._turn or self._gate.closed:
            return
        before, now = self._answer, self._clock.now()
        error = _error(served, listener, self._serving.listeners)
        begun = now - (TIMEOUT if listener and listener.hung else 0.0)
        heard = before.heard_at or (begun if listener else 0.0)
        if listener:
            listener.proven = listener.proven or not error
        proven = before.proven or bool(listener and listener.proven)
        if error:
            failing = before.failing or begun
            self._answer = replace(before, failed_at=now, error=error, failing=failing, heard_at=heard, proven=proven)
        else:
            self._answer = Answer(at=now, seconds=self._pace.answer, heard_at=heard, proven=True)
        if (bool(self._answer.at), self._answer.error) != (bool(before.at), before.error):
            self._changed("model")
        self._clock.after(LATER if self._answer.at and not error else SOON, lambda: self._ask(turn, served))


def _error(served: Served, asked: Listener | None, listeners: dict[int, Listener]) -> str:
    port = urlsplit(served.url).port or 80
    if asked is None:
        return "connection refused"
    if listeners.get(port) is not asked:
        return "connection reset by peer"
    if asked.hung:
        return f"no completion within {TIMEOUT:.0f} s"
    return asked.error or ("" if asked.model == served.model else f"HTTP 404: the model {served.model} does not exist")


class SimListeners:
    """ports.Listeners."""

    def __init__(self, serving: Serving, cluster: Cluster, gate: Gate) -> None:
        self._serving = serving
        self._cluster = cluster
        self._gate = gate

    async def on(self, port: int) -> tuple[Holder, ...]:
        async with self._gate.read("listeners", "on"):
            if port == PORT and self._cluster.port_taken:
                return (STRANGER,)
            listener = self._serving.listeners.get(port)
            return (listener.holder,) if listener else ()
