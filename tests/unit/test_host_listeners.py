"""The kernel's table of listening sockets, from recorded answers (Linux 6.18), and whose control group is which."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from strixd.host import cgroup
from strixd.host.listeners import NLMSG_DONE, Socket, messages, read_socket

FOUR = bytes.fromhex(
    "7c000000140002000100000086380000020a000046cb00007f000001000000000000000000000000000000000000000000000000000000"
    "0000000000760100000000000000000000000000008000000000000000b1b63600050008000000000008000f00000000000c0015000773"
    "0900000000000600160052000000"
)
SIX = bytes.fromhex(
    "840000001400020001000000863800000a0a000046cc000000000000000000000000000000000000000000000000000000000000000000"
    "0000000000770100000000000000000000000000008000000000000000b3b63600050008000000000005000b000000000008000f000000"
    "00000c00150001000000000000000600160012000000"
)
DONE = bytes.fromhex("1400000003000200010000008638000000000000")


def test_sockets_are_read_with_address_port_and_group() -> None:
    (first, second, (last, _)) = messages(FOUR + SIX + DONE)
    assert read_socket(first[1]) == Socket("127.0.0.1", 18123, v6only=False, group=0x097307)
    assert read_socket(second[1]) == Socket("::", 18124, v6only=False, group=1)
    assert last == NLMSG_DONE


def test_a_socket_for_ipv6_alone_and_one_that_carries_ipv4() -> None:
    alone = SIX.replace(bytes.fromhex("05000b0000"), bytes.fromhex("05000b0001"))
    assert read_socket(alone[16:]).v6only
    carrying = SIX[:24] + bytes(10) + b"\xff\xff\x7f\0\0\1" + SIX[40:]
    assert read_socket(carrying[16:]).address == "127.0.0.1"


def test_a_kernel_that_does_not_say_whose_it_is() -> None:
    assert read_socket(FOUR[16 : 16 + 72]) == Socket("127.0.0.1", 18123, v6only=False, group=0)


def test_a_refusal_of_the_kernel_is_an_error() -> None:
    with pytest.raises(OSError, match="No such file"):
        list(messages(struct.pack("=IHHIIi", 36, 2, 0, 1, 0, -2) + bytes(16)))


def test_a_group_is_found_by_its_number(tmp_path: Path) -> None:
    (tmp_path / "system.slice/a.service").mkdir(parents=True)
    number = (tmp_path / "system.slice/a.service").stat().st_ino
    assert cgroup.group(number, tmp_path) == "/system.slice/a.service"
    assert cgroup.group(0, tmp_path) == ""


@pytest.mark.parametrize(
    ("group", "unit"),
    [
        ("/system.slice/a.service", "a.service"),
        ("/strixd.slice/strixd-workload.slice/strixd-vllm.service/libpod-payload-1", "strixd-vllm.service"),
        ("/user.slice/user-1000.slice/user@1000.service/app.slice/b.service", "user@1000.service"),
        ("/user.slice/user-0.slice/session-3.scope", "session-3.scope"),
        ("/system.slice/a.socket", "a.socket"),
        ("/", ""),
        ("", ""),
    ],
)
def test_the_unit_of_a_group_is_the_systems_own(group: str, unit: str) -> None:
    assert cgroup.unit(group) == unit
