"""How long things take in the simulated world, in seconds; the defaults are what was measured on lab hosts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Pace:
    """`container`: until a container's unit is active; `ray`: until the probe reports; `join`: until another node is a
    member; `dead`: until Ray declares a lost node dead; `load`: until a model listens; `answer`: one completion."""

    container: float = 0.4
    ray: float = 3.0
    join: float = 3.0
    dead: float = 15.0
    load: float = 25.0
    answer: float = 0.3
