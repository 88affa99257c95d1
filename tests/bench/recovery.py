"""How soon tokens come again after a fault, on two lab hosts with the real Ray and vLLM:
`python -m tests.bench.recovery [REPETITIONS]`.

1. From SIGKILL of the server to the new server's process: at most 1.0 s beyond the end of the last old process.
2. From that SIGKILL to a completion, divided by a cold start of the same unit by hand (`systemctl start`, no strixd,
   Ray is up), in turn: the medians' ratio is at most 1.05.
3. A hang under load (SIGSTOP of the engine) noticed: at most 30 s, with one stream under way, and with clients who go
   on asking. Noticed is what strixd says in its journal, at the time at which it says so.
4. A dead node noticed: at most 10 s, its power lost, and frozen with its raylet killed.
5. Beside them the same faults under plain systemd units with `Restart=always` (tests/bench/plain.py).

Ends with status 1 when a limit is missed. Half an hour with five repetitions.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.bench import plain
from tests.bench.served import served
from tests.bench.strokes import Asking, Replaced, model, noticed, replaced, stages, streaming, strike
from tests.e2e.cluster import Cluster
from tests.faults.tokens.course import PATIENCE
from tests.faults.tokens.revival import forget
from tests.lab.host import wait_for

REPETITIONS = 5
MOST_NEW, MOST_RATIO, MOST_HANG, MOST_DEAD = 1.0, 1.05, 30.0, 10.0  # seconds, but for the ratio
WITHIN = 180.0 * PATIENCE  # seconds for tokens after a fault; then it is "never"
NOTICING = 150.0 * PATIENCE  # seconds for strixd to notice
REST = 2.0  # seconds that let the end of an old run come to rest before a start by hand
UNIT = "strixd-vllm.service"
WIDTH = 72


@dataclass(frozen=True, slots=True)
class Killed:
    """One SIGKILL of the server under strixd: when, what was seen, and when a completion came (0: in vain)."""

    struck: float
    seen: Replaced
    answered: float
    stages: Mapping[str, float]

    @property
    def beyond(self) -> float:
        """Seconds that are not the old run's own end."""
        return self.seen.new - max(self.seen.gone, self.struck)

    @property
    def again(self) -> float:
        return self.answered - self.struck if self.answered else float("inf")


@dataclass(frozen=True, slots=True)
class Noticed:
    """Seconds from the stroke until strixd said so, and until a completion came."""

    noticed: float
    again: float


Fault = Callable[[Cluster], object]


def main() -> int:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else REPETITIONS
    with served() as cluster:
        return measure(cluster, repetitions)


def measure(cluster: Cluster, repetitions: int) -> int:
    """A cluster that serves; afterwards it is one of plain units."""
    rounds = [(killed(cluster), by_hand(cluster)) for _ in range(repetitions)]
    kills = [one for one, _ in rounds]
    good = [*_kills(kills, [cold for _, cold in rounds])]
    hangs = {what: [way(cluster) for _ in range(repetitions)] for what, way in HANGS.items()}
    good += [_noticing(f"engine stopped, {what}", each, MOST_HANG) for what, each in hangs.items()]
    dead = {what: [died(cluster, how) for _ in range(repetitions)] for what, how in DEATHS.items()}
    good += [_noticing(what, each, MOST_DEAD) for what, each in dead.items()]
    known = {
        "server killed": statistics.median(each.again for each in kills),
        "engine stopped": statistics.median(each.again for each in hangs[STREAM]),
    }
    ours = {what: known[what] if what in known else again(cluster, fault) for what, fault in FAULTS.items()}
    _compare(ours, peers(cluster))
    return 0 if all(good) else 1


# The server killed, and a start by hand


def killed(cluster: Cluster) -> Killed:
    ready(cluster)
    old = model(cluster)
    asking = Asking(cluster, WITHIN)
    struck = strike(cluster.head, "server", "KILL")
    seen, answered = replaced(cluster, old), asking.answered()
    return Killed(struck, seen, answered, stages(cluster.head.journal_from_outside(struck), struck, seen))


def by_hand(cluster: Cluster) -> float:
    """Seconds from `systemctl start` to a completion."""
    for host in cluster.hosts:
        host.run("systemctl", "stop", "strixd.socket", "strixd.service")
    cluster.head.run("systemctl", "stop", UNIT, timeout=120)
    wait_for("no process of the model is left", lambda: not model(cluster), 60)
    time.sleep(REST)
    asking = Asking(cluster, WITHIN)
    began = float(cluster.head.sh(f"echo $EPOCHREALTIME; systemctl start --no-block {UNIT}"))
    answered = asking.answered()
    for host in cluster.hosts:
        host.run("systemctl", "start", "strixd.socket", "strixd.service")
    return answered - began if answered else float("inf")


def ready(cluster: Cluster) -> None:
    """It answers, all is calm, and nothing of the past delays what comes next."""
    cluster.wait_for_tokens()
    forget(cluster)
    for host in cluster.hosts:
        cluster.cli("wait", "ready", host=host).check()


# A hang, and a dead node


def hung(cluster: Cluster) -> Noticed:
    """Nobody else asks until it is noticed."""
    ready(cluster)
    with streaming(cluster):
        struck = strike(cluster.head, "engine", "STOP")
        said = noticed(cluster.head, struck, NOTICING)
    return Noticed(said - struck, _since(struck, Asking(cluster, WITHIN)))


def hung_and_asked(cluster: Cluster) -> Noticed:
    """Others ask meanwhile, each of whom waits for an answer."""
    ready(cluster)
    with streaming(cluster):
        asking = Asking(cluster, NOTICING + WITHIN)
        struck = strike(cluster.head, "engine", "STOP")
        said = noticed(cluster.head, struck, NOTICING)
    return Noticed(said - struck, _since(struck, asking))


def died(cluster: Cluster, how: Fault) -> Noticed:
    """Afterwards the node has its power again."""
    ready(cluster)
    struck = time.time()
    how(cluster)
    said = noticed(cluster.head, struck, NOTICING)
    worker = cluster.workers[0]
    worker.thaw()  # a frozen host does not end
    worker.kill()
    worker.boot()
    return Noticed(said - struck, _since(struck, Asking(cluster, WITHIN)))


def freeze_and_kill_raylet(cluster: Cluster) -> None:
    """A hung host: its kernel lives and answers for what has died in it."""
    cluster.workers[0].freeze()
    strike(cluster.workers[0], "raylet", "KILL")


def _since(struck: float, asking: Asking) -> float:
    answered = asking.answered()
    return answered - struck if answered else float("inf")


STREAM = "a stream under way"
HANGS = {STREAM: hung, "a stream under way, others ask": hung_and_asked}
DEATHS: dict[str, Fault] = {
    "worker's power lost": lambda cluster: cluster.workers[0].kill(),
    "worker frozen, its raylet killed": freeze_and_kill_raylet,
}


# Beside the peer

FAULTS: dict[str, Fault] = {
    "server killed": lambda cluster: strike(cluster.head, "server", "KILL"),
    "engine stopped": lambda cluster: strike(cluster.head, "engine", "STOP"),
    "worker's raylet killed": lambda cluster: strike(cluster.workers[0], "raylet", "KILL"),
    "worker rebooted": lambda cluster: cluster.workers[0].reboot(),
}


def again(cluster: Cluster, fault: Fault) -> float:
    ready(cluster)
    return _undergone(cluster, fault)


def _undergone(cluster: Cluster, fault: Fault) -> float:
    asking = Asking(cluster, WITHIN)
    struck = time.time()
    fault(cluster)
    return _since(struck, asking)


def peers(cluster: Cluster) -> dict[str, float]:
    plain.take_over(cluster)
    taken = {}
    for what, fault in FAULTS.items():
        taken[what] = _undergone(cluster, fault)
        if taken[what] > WITHIN:
            plain.revive(cluster)
    return taken


# Telling


def _kills(kills: Sequence[Killed], colds: Sequence[float]) -> Iterator[bool]:
    beyond = [each.beyond for each in kills]
    print(told("server killed to its last old process gone", [each.seen.gone - each.struck for each in kills]))
    print(told("server killed to the new server's process", [each.seen.new - each.struck for each in kills]))
    for name in dict.fromkeys(name for each in kills for name in each.stages):
        print(told(f"    {name}", [each.stages[name] for each in kills if name in each.stages]))
    yield judged("last old process gone to the new server's process", beyond, max(beyond), MOST_NEW)
    print(told("a start by hand to a completion", colds))
    again = [each.again for each in kills]
    ratio = statistics.median(again) / statistics.median(colds)
    yield judged("server killed to a completion", again, ratio, MOST_RATIO, "by hand")


def _noticing(what: str, seen: Sequence[Noticed], most: float) -> bool:
    print(told(f"{what}: to a completion", [each.again for each in seen]))
    seconds = [each.noticed for each in seen]
    return judged(f"{what}: noticed", seconds, max(seconds), most)


def told(what: str, seconds: Sequence[float]) -> str:
    low, middle, high = min(seconds), statistics.median(seconds), max(seconds)
    return f"{what:{WIDTH}}{middle:7.2f} s [{low:.2f}-{high:.2f}]"


def judged(what: str, seconds: Sequence[float], value: float, most: float, divided: str = "") -> bool:
    """`value` is what is held against `most`; divided by what, if it is a ratio."""
    number = f"{value:.3f} of that {divided} (at most {most:g})" if divided else f"{value:.2f} s (at most {most:g})"
    good = value <= most
    print(f"{told(what, seconds)}: {number}: {'held' if good else 'MISSED'}", flush=True)
    return good


def _compare(ours: Mapping[str, float], theirs: Mapping[str, float]) -> None:
    print(f"{'seconds to a completion':{WIDTH}}{'strixd':>10}   plain units, Restart=always")
    for what in ours:
        print(f"    {what:{WIDTH - 4}}{spoken(ours[what]):>10}   {spoken(theirs[what])}")


def spoken(seconds: float) -> str:
    return f"{seconds:.1f}" if seconds <= WITHIN else f"never within {WITHIN:.0f} s"


if __name__ == "__main__":
    sys.exit(main())
