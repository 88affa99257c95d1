"""Two faults at once, drawn at random from the list of single ones: tokens again all the same."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.cluster import Cluster
from tests.faults.tokens import host_faults, model_faults, ray_faults
from tests.faults.tokens.fault import AWAY, Fault
from tests.faults.tokens.harm import waiting
from tests.faults.tokens.revival import Undergo
from tests.faults.tokens.seeds import drawing
from tests.lab.cache import say

pytestmark = pytest.mark.lab
DRAWS = 8
LATER = 20.0  # seconds by which the second fault may come later
FAULTS = tuple(
    fault
    for fault in (*model_faults.FAULTS, *ray_faults.FAULTS, *host_faults.FAULTS)
    if fault not in host_faults.HAUNTED
)


def both(number: int) -> Fault:
    drawn = drawing(f"two at once {number}")
    one, other = drawn.sample(FAULTS, 2)
    later = drawn.uniform(0, LATER)

    def harm(cluster: Cluster) -> None:
        """The one may keep the other from being done, as a host that is off has no process to kill."""
        with ThreadPoolExecutor(1) as beside:
            done = beside.submit(_done, one, cluster)
            waiting(later)(cluster)
            _done(other, cluster)
            done.result()

    return Fault(
        f"{one.name} + {other.name}",
        harm,
        mend=lambda cluster: [fault.mend(cluster) for fault in (one, other)],
        expected=(*one.expected, *other.expected),
        steady=one.steady and other.steady,
        within=400,
    )


def _done(fault: Fault, cluster: Cluster) -> None:
    try:
        fault.harm(cluster)
    except AWAY as failure:
        say(f"{fault.name}: not done whole, beside the other: {failure}")


@pytest.mark.parametrize("number", range(DRAWS))
def test_tokens_again_after_two_at_once(number: int, undergone: Undergo) -> None:
    course = undergone(both(number), several=True)
    assert not course.complaints, "\n".join(course.complaints)
