"""What NetworkManager's numbers mean, in words (NMDeviceState, NMDeviceStateReason, NMActiveConnectionState…)."""

from __future__ import annotations

from typing import Literal

State = Literal["disconnected", "activating", "activated", "deactivating", "failed", "unavailable"]

ACTIVATED, FAILED = 100, 120  # of a device
ACTIVE, DEACTIVATED = 2, 4  # of an active connection

_STATES: dict[int, State] = {30: "disconnected", ACTIVATED: "activated", 110: "deactivating", FAILED: "failed"}

_REASONS = {
    2: "it is now managed",
    3: "it is now unmanaged",
    4: "it could not be made ready for configuration",
    5: "no IP configuration; for a fixed address: another host on the link uses it",
    6: "the IP configuration is no longer valid",
    7: "secrets were required, but not given",
    15: "the DHCP client failed to start",
    16: "DHCP failed",
    17: "DHCP failed",
    35: "the firmware is missing",
    36: "the device was removed",
    37: "the machine is going to sleep",
    38: "the active profile was deleted",
    39: "it was disconnected by a user or client",
    40: "no carrier",
    41: "its existing connection was taken over",
    42: "the supplicant is available now",
    53: "the connection it depends on failed",
    56: "it is a port of another device",
    57: "the modem is not available",
    60: "a new activation took its place",
    61: "its parent changed",
    62: "the parent's management changed",
    64: "the address is used by another host",
    65: "the IP method is not supported",
    68: "the peer was not found",
    69: "the device handler failed",
    70: "it is unmanaged by default",
    71: "it is unmanaged because another program configured it",
    72: "it is unmanaged because the link is not set up",
    73: "it is unmanaged by NetworkManager's settings",
    74: "it is unmanaged by a configuration file of NetworkManager",
    75: "it is unmanaged by a udev rule",
}


def state(number: int) -> State:
    """Unknown, unmanaged and unavailable are one to us; all the stages of an activation are another."""
    return _STATES.get(number, "activating" if 40 <= number <= 90 else "unavailable")


def reason(number: int) -> str:
    """Of a device's state; "" for the numbers that say nothing (none, unknown)."""
    return "" if number in (0, 1) else _REASONS.get(number, f"device state reason {number}")
