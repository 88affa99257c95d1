"""The command line of both ends. Started as a file, it makes its folder importable under the name that it has in
strixd."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[3])

from strixd.probe.link.cluster import answering, by_hand  # noqa: E402
from strixd.probe.link.here import Door, measure  # noqa: E402
from strixd.probe.link.line import Line  # noqa: E402
from strixd.probe.link.there import answer  # noqa: E402
from strixd.probe.vitals import Processes  # noqa: E402

BY_HAND = 300.0  # seconds that a person has to start the other end
CALLS = 60.0  # seconds that Ray has for it: a new worker process on a busy node
ORDERLY = 8.0  # seconds to end what was begun, when nobody wants it any more
ANSWERING = 600.0  # seconds after which the other end, started by hand, gives up


def main() -> int:
    parser = argparse.ArgumentParser(prog="link", description="Measure the link to another node, from either end.")
    parser.add_argument("--answer", nargs=3, metavar=("ADDRESS", "PORT", "TOKEN"), help="be the other end of that one")
    given = parser.parse_args().answer
    if given:
        why = answer(given[0], int(given[1]), given[2], ANSWERING)
        sys.stderr.write(f"link: ended early: {why}\n" if why else "")
        return 1 if why else 0
    _keep_stdout_clean()
    return work(json.loads(sys.stdin.buffer.readline()))


def work(job: dict[str, Any]) -> int:
    """The whole job: {"node", "address", "peer": {"name", "address"}, "ray", "measure", "rounds", "stream": seconds,
    "force", "seconds"}."""
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    peer = job["peer"]
    try:
        _refuse_beside_a_model(job)
        with Door(job["address"], time.monotonic() + job["seconds"]) as door, _called(job, door) as line:
            measure(job, door, line, say)
    except (OSError, LookupError) as error:
        say({"peer": peer["name"], "failed": str(error) or type(error).__name__})
        return 1
    return 0


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")


def _keep_stdout_clean() -> None:
    """What Ray and its libraries write to descriptor 1 goes to 2: the result is alone there."""
    sys.stdout = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)


def _refuse_beside_a_model(job: dict[str, Any]) -> None:
    if not job["force"] and Processes().model():
        raise InterruptedError("processes of a model run on this node; --force measures all the same")


@contextlib.contextmanager
def _called(job: dict[str, Any], door: Door) -> Iterator[Line]:
    """The line to the other end, however that came to be there."""
    where, peer = (door.address, door.port, door.token), job["peer"]
    if job["ray"]:
        with answering(peer["address"], where, job["seconds"]) as alive:
            _take_signals()  # Ray has taken them for itself
            yield door.accept("orders", CALLS, alive)
        return
    say({"peer": peer["name"], "by_hand": by_hand(where), "seconds": BY_HAND})
    yield door.accept("orders", BY_HAND)


def _take_signals() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def _end_with_stdin() -> None:
    """Whoever began this holds the other end of it. Ending is left to the main thread, which closes what it opened."""
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(ORDERLY)
    os._exit(143)


if __name__ == "__main__":
    _take_signals()
    sys.exit(main())
