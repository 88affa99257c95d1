"""The command's own words, as far as the probe must understand them."""

from __future__ import annotations

from pathlib import Path


def option(command: list[str], name: str, default: str = "") -> str:
    return next((word.partition("=")[2] for word in command if word.startswith(f"--{name}=")), default)


def session_link(command: list[str]) -> Path:
    """Ray points this link at its session's folder as soon as it has joined one."""
    return Path(option(command, "temp-dir", "/tmp/ray")) / "session_latest"
