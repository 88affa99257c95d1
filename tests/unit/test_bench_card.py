"""The bench reads the card by itself, at both ends and inside the container. On every card that the ladder is tested
with it finds the port and GID that the ladder takes; what the file wishes of the link is no matter here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_ladder import CASES, LATE, asked, read

from strixd.ladder import judge
from strixd.probe.link import card
from tests.laid_tree import lay


@pytest.mark.parametrize("case", CASES["case"], ids=lambda case: case["name"])
def test_the_rdma_port_is_that_of_the_ladder(case: dict[str, Any], tmp_path: Path) -> None:
    lay(tmp_path, CASES["trees"].get(case.get("on"), "") + case.get("tree", ""))
    interface = case.get("interface", "enp194s0np0")
    seen = read(tmp_path, interface)
    found = card.rdma("192.168.100.1", interface, tmp_path)
    rung = judge(asked({}), seen, LATE).rdma if seen else None
    works = rung is not None and rung.port is not None and not rung.why
    assert (found is not None) == works
    if found and rung and rung.port:
        assert found == {"device": rung.port.device, "port": rung.port.number, "gid": rung.gid}
