"""After each single fault: tokens again, with nobody giving a command, after a whole restart, with one incident that
tells what it was. One cluster undergoes them all; the table of times is printed at the end."""

from __future__ import annotations

import pytest

from tests.faults.tokens import host_faults, model_faults, ray_faults
from tests.faults.tokens.fault import Fault
from tests.faults.tokens.revival import Undergo

pytestmark = pytest.mark.lab
FAULTS = (*model_faults.FAULTS, *ray_faults.FAULTS, *host_faults.FAULTS, *model_faults.SLOW_STARTS)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_tokens_again_after(fault: Fault, undergone: Undergo) -> None:
    course = undergone(fault)
    assert not course.complaints, "\n".join(course.complaints)
