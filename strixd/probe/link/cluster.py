"""Ray: the other end as a task, pinned to that node. It ends with us: with its driver Ray ends a task."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterator
from typing import Any

import strixd.probe.link
from strixd.probe.link.there import answer
from strixd.probe.wrapper import knock

KNOCK = 3.0  # seconds; Ray's own attempt takes 40 to say that nobody listens (2.60)


@contextlib.contextmanager
def answering(peer: str, door: tuple[str, int, str], seconds: float) -> Iterator[Callable[[], None]]:
    """The other end is on its way to `door` while this lasts; the value raises OSError with its words when it has
    ended. Raises OSError when there is no such node, or no Ray."""
    import ray

    knock(os.environ["RAY_ADDRESS"], KNOCK)
    ray.init(os.environ["RAY_ADDRESS"], log_to_driver=False, logging_level=logging.ERROR)
    try:
        task = _task(peer).remote(*door, seconds)
        yield lambda: _alive(task)
    finally:
        ray.shutdown()


def _task(peer: str) -> Any:
    """Without a processor of Ray's own, of which the model may have all; not tried twice."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    ray.cloudpickle.register_pickle_by_value(strixd.probe.link)
    found = [node["NodeID"] for node in ray.nodes() if node["Alive"] and node["NodeManagerAddress"] == peer]
    if not found:
        raise ConnectionRefusedError(f"Ray has no living node at {peer}")
    pinned = NodeAffinitySchedulingStrategy(found[-1], soft=False)
    return ray.remote(num_cpus=0, max_retries=0, scheduling_strategy=pinned)(answer)


def _alive(task: Any) -> None:
    import ray
    from ray.exceptions import RayError

    if not ray.wait([task], timeout=0)[0]:
        return
    try:
        why = ray.get(task, timeout=1) or "it has ended"
    except RayError as error:
        why = str(error).strip().rpartition("\n")[2]
    raise ConnectionAbortedError(f"the other end did not begin: {why}")


def by_hand(door: tuple[str, int, str]) -> str:
    """The command that makes a node, on which strixd is installed, the other end."""
    address, port, token = door
    return f"python3 -sP -m strixd.probe.link --answer {address} {port} {token}"
