"""What the workload may take of the host's memory: all but a reserve, as a limit on the slice that Ray, the ranks and
vLLM run in. Beyond it the kernel kills there, and nowhere else.

It covers what processes allocate, shared memory, and files that are read (given back before anything is killed). It
does not cover GPU memory: what the amdgpu driver hands out (GTT: weights and key-value cache) is charged to no control
group by the kernels seen so far; hipMalloc passed a container's limit on a Strix Halo (ggml-org/llama.cpp #20472,
ROCm/legacy-rocm-build #6370; not verified by us). Against those stand kernel.gtt, vLLM's own share of the memory, and
the OOM scores (quadlet.py).

MemoryHigh= is not set: it slows down what should fail, and a slow model looks like a hang. No swap: pages in zram cost
the memory that is kept for the host, and a model that swaps does not answer.

A workload's resource, not one of the settings: those are one change, taken back whole, and a limit that cannot be set
shall take neither the link away nor the model. It is told, and tried again; nothing waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strixd.plan import Plan, Step, unguarded
from strixd.ports import NO_BOUND, Bound, Host, Unit
from strixd.quadlet import SLICE
from strixd.resources.effect import MIB, size
from strixd.workload import Reread, WriteUnit

PATH = f"/run/systemd/system/{SLICE}.d/50-strixd.conf"
LEAST = 256 * MIB
"""Less than Ray alone needs: such a limit would kill all that starts."""


@dataclass(frozen=True, slots=True)
class Desired:
    """`reserve`: bytes for the host."""

    reserve: int


@dataclass(frozen=True, slots=True)
class Observed:
    """`total`: bytes of memory that the kernel has; `text`: of the drop-in; `unit`, `bound`: of the slice."""

    total: int
    text: str | None
    unit: Unit
    bound: Bound


class Memory:
    name: ClassVar[str] = "memory"
    settle: ClassVar[float] = 0.0
    supervised: ClassVar[bool] = True
    guard = staticmethod(unguarded)

    def needs(self, desired: Desired) -> tuple[str, ...]:
        return ()

    async def observe(self, host: Host, desired: Desired) -> Observed:
        return Observed(
            total=await host.kernel.memory(),
            text=await host.files.read(PATH),
            unit=await host.units.read(SLICE),
            bound=await host.units.bound(SLICE),
        )

    def plan(self, desired: Desired, observed: Observed) -> Plan:
        most = limit(desired, observed.total)
        if most < LEAST:
            why = f"memory-reserve of {size(desired.reserve)} leaves no model of the {size(observed.total)} here"
            hint = "lower memory-reserve in [model] of cluster.toml, then strixd-cli apply"
            return Plan(self.name, condition="blocked", why=why, hint=hint)
        facts = (_fact(most, observed),)
        if steps := _steps(most, observed):
            return Plan(self.name, steps, facts=facts)
        if weak := _weak(most, observed.bound):
            hint = f"systemctl cat {SLICE}; cat /sys/fs/cgroup/cgroup.controllers, where memory must be"
            return Plan(self.name, condition="ineffective", why=weak, hint=hint, facts=facts)
        return Plan(self.name, facts=facts)


def limit(desired: Desired, total: int) -> int:
    """Bytes, in whole MiB: the kernel counts pages, and would round by itself."""
    return (total - desired.reserve) // MIB * MIB


def render(most: int) -> str:
    """The drop-in for a limit of so many bytes."""
    return "\n".join(
        (
            "# Written by strixd from /etc/strixd/cluster.toml; changes here are overwritten.",
            "[Slice]",
            f"MemoryMax={most}",
            "MemorySwapMax=0",
            "",
        )
    )


def _steps(most: int, observed: Observed) -> tuple[Step, ...]:
    """systemd sets the new limit of a slice that runs when it reads the file (seen with systemd 257)."""
    text = render(most)
    if observed.text != text:
        return (WriteUnit(PATH, text, observed.text),)
    return (Reread(SLICE),) if observed.unit.stale else ()


def _weak(most: int, bound: Bound) -> str:
    """Why the limit is not what keeps the workload in check, "" when it is, or will be when something runs."""
    if bound.told != most:
        return f"asked for {size(most)}, and systemd has {_said(bound.told)}: another drop-in of {SLICE} wins"
    if bound.kernel not in (None, most):
        return f"asked for {size(most)}, and the kernel has {_said(bound.kernel)} for {SLICE}"
    return ""


def _said(count: int | None) -> str:
    return "no limit" if count in (None, NO_BOUND) else size(count or 0)


def _fact(most: int, observed: Observed) -> str:
    times = observed.bound.reached
    reached = f"; that was reached {times} time{'s' * (times != 1)}, and processes killed" if times else ""
    return f"the model may take {size(most)} of {size(observed.total)}, GPU memory not counted{reached}"
