"""Runs inside the second of two virtual machines: which types of service the RDMA packets of the first one have, those
of connections, not of their making. Tells each once, after so many packets or so many seconds."""

from __future__ import annotations

import socket
import sys
import time

PACKETS, PATIENCE = 50, 300.0
IPV4, UDP, ROCE_V2 = 0x0800, 17, 4791
FIRST = socket.inet_aton("192.168.100.1")
MANAGEMENT = 1
"""The queue pair by which connections are made."""


def queue_pair(packet: bytes) -> int:
    """Whom this IPv4 packet of RoCE v2 is for; 0 when it is none, or not from the first machine."""
    payload = (packet[0] & 15) * 4
    port = int.from_bytes(packet[payload + 2 : payload + 4], "big")
    if packet[12:16] != FIRST or packet[9] != UDP or port != ROCE_V2:
        return 0
    return int.from_bytes(packet[payload + 13 : payload + 16], "big")


with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(IPV4)) as card:
    card.settimeout(1.0)
    until, seen = time.monotonic() + PATIENCE, list[int]()
    while len(seen) < PACKETS and time.monotonic() < until:
        try:
            packet = card.recv(4096)
        except TimeoutError:
            continue
        if queue_pair(packet) > MANAGEMENT:
            seen.append(packet[1])
sys.stdout.write(f"{sorted(set(seen))}\n")
