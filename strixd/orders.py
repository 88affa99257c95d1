"""What was commanded and must survive a reboot."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Orders:
    """`model` "": nothing shall be served. `at`: when the last order or apply came, in seconds since the epoch:
    what failed before that is tried again. `update_after`: when the newest image was last asked for. `released`:
    resources that are left alone since an undo, until the next apply. `undo`: the change that is to be taken back."""

    model: str = ""
    arguments: tuple[str, ...] = ()
    paused: bool = False
    at: float = 0.0
    update_after: float = 0.0
    released: tuple[str, ...] = ()
    undo: str = ""
