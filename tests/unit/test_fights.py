"""Who it is that changes things back, from NetworkManager's own lines (as version 1.52 writes them)."""

from __future__ import annotations

import pytest

from strixd.engine.fights import named

ME = 238
ABOUT = 'enp1s0: carrier, no address, MTU 1500, profile "Wired connection 1" activating activate profile "strixd-lab"'
UPDATE = (
    '<info>  [1000.5000] audit: op="connection-update" uuid="69c3c872-5218-5390-81f5-fd2d69a2e96d" name="strixd-lab" '
    'args="802-3-ethernet.mtu,connection.timestamp" pid=406 uid=1000 result="success"'
)
ACTIVATE = (
    '<info>  [1001.7071] audit: op="connection-activate" uuid="1332dc03-fbd0-316b-96fb-505d3a92cbc2" '
    'name="Wired connection 1" pid=417 uid=0 result="success"'
)
DEVICE = '<info>  [1002.1] audit: op="device-reapply" interface="enp1s0" ifindex=3 pid=420 uid=0 result="success"'
OTHER = '<info>  [1003.0] audit: op="connection-update" uuid="a5" name="Wi-Fi" pid=430 uid=1000 result="success"'
FAILED = '<info>  [1003.0] audit: op="connection-activate" name="strixd-lab" pid=430 uid=7 result="fail" reason="x"'
OURS = '<info>  [1003.1] audit: op="connection-activate" name="strixd-lab" pid=238 uid=0 result="success"'
NOISE = "<info>  [1003.2] device (enp1s0): state change: config -> ip-config (reason 'none')"


@pytest.mark.parametrize(
    ("lines", "who"),
    [
        ((UPDATE,), 'process 406 of uid 1000 had NetworkManager do connection-update "strixd-lab"'),
        ((UPDATE, ACTIVATE, OURS, NOISE), 'process 417 of uid 0 had NetworkManager do connection-activate "Wired'),
        ((UPDATE, DEVICE), 'process 420 of uid 0 had NetworkManager do device-reapply "enp1s0"'),
        ((OTHER, FAILED, OURS, NOISE, ""), ""),
        ((UPDATE.replace("1000.5", "899.5"),), ""),
        ((), ""),
    ],
)
def test_the_newest_line_about_this_link_that_is_not_ours(lines: tuple[str, ...], who: str) -> None:
    said = named(lines, about=ABOUT, since=1000.0, me=ME)
    assert said.startswith(who)
    assert bool(said) == bool(who)
