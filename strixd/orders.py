"""What was commanded and must survive a reboot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Workload = Literal["ray", "vllm"]


@dataclass(frozen=True, slots=True)
class Orders:
    """`model` "": nothing shall be served. `at`: when the last order or apply came, in seconds since the epoch: a
    workload that failed before that is tried again. `applied`: when the last apply came, which alone says so of the
    host's settings: an order about the model must not move the link under it. `update_after`: when the newest image was
    last asked for. `released`: resources that are left alone since an undo, until the next apply. `undo`: the change
    that is to be taken back. `drained`: the ordered model is not served for now. `restart_vllm`, `restart_ray`: the run
    (its invocation) that is to be ended and followed by another; a time would be wrong as soon as a clock is set."""

    model: str = ""
    arguments: tuple[str, ...] = ()
    paused: bool = False
    at: float = 0.0
    applied: float = 0.0
    update_after: float = 0.0
    released: tuple[str, ...] = ()
    undo: str = ""
    drained: bool = False
    restart_vllm: str = ""
    restart_ray: str = ""

    @property
    def served(self) -> str:
        """The model that shall answer now, "" for none."""
        return "" if self.drained else self.model
