"""What the workload may take of the host's memory: all but a reserve, as a limit on the slice that Ray, the ranks and
vLLM run in. Beyond it the kernel kills there, and nowhere else.

It covers what processes allocate, shared memory, and files that are read (given back before anything is killed). It
does not cover GPU memory: what the amdgpu driver hands out (GTT: weights and key-value cache) is charged to no control
group by the kernels seen so far; hipMalloc passed a container's limit on a Strix Halo (ggml-org/llama.cpp #20472,
ROCm/legacy-rocm-build #6370; not verified by us). Against those stand kernel.gtt, vLLM's own share of the memory, and
the OOM scores (quadlet.py).

MemoryHigh= is not set: it slows down what should fail, and a slow model looks like a hang. No swap: pages in zram cost
the memory that is kept for the host, and a model that swaps does not answer.

Set through systemd as a property, not as a file: at a daemon-reload a slice that runs keeps the limit
it has (systemd 257, seen in a virtual machine).

A workload's resource, not one of the settings: those are one change, taken back whole, and a limit that cannot be set
shall take neither the link away nor the model. It is told, and tried again; nothing waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strixd.plan import Effect, Plan, Step, unguarded
from strixd.ports import NO_BOUND, Bound, Host
from strixd.quadlet import SLICE
from strixd.resources.effect import MIB, size

LEAST = 256 * MIB
"""Less than Ray alone needs: such a limit would kill all that starts."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Let the slice have at most so many bytes, and no swap."""

    effect: ClassVar[Effect] = Effect.NOW
    most: int
    before: int

    def __str__(self) -> str:
        return f"limit {SLICE} to {size(self.most)} of memory, and no swap (it has {_said(self.before)})"

    def undo(self) -> Step | None:
        return None

    async def apply(self, host: Host) -> None:
        await host.units.limit(SLICE, self.most)


@dataclass(frozen=True, slots=True)
class Desired:
    """`reserve`: bytes for the host."""

    reserve: int


@dataclass(frozen=True, slots=True)
class Observed:
    """`total`: bytes of memory that the kernel has; `bound`: of the slice."""

    total: int
    bound: Bound


class Memory:
    name: ClassVar[str] = "memory"
    settle: ClassVar[float] = 0.0
    supervised: ClassVar[bool] = True
    guard = staticmethod(unguarded)

    def needs(self, desired: Desired) -> tuple[str, ...]:
        return ()

    async def observe(self, host: Host, desired: Desired) -> Observed:
        return Observed(await host.kernel.memory(), await host.units.bound(SLICE))

    def plan(self, desired: Desired, observed: Observed) -> Plan:
        most, bound = limit(desired, observed.total), observed.bound
        if most < LEAST:
            why = f"memory-reserve of {size(desired.reserve)} leaves no model of the {size(observed.total)} here"
            hint = "lower memory-reserve in [model] of cluster.toml, then strixd-cli apply"
            return Plan(self.name, (), "blocked", why, hint, (f"until then: {_said(bound.told)}",))
        if bound.told != most:
            return Plan(self.name, (Limit(most, bound.told),))
        if bound.kernel not in (None, most):
            why = f"asked for a limit of {size(most)}, and the kernel has {_said(bound.kernel)} for {SLICE}"
            hint = (
                f"see systemctl cat {SLICE}; without the word memory in /sys/fs/cgroup/cgroup.controllers none can hold"
            )
            return Plan(self.name, (), "ineffective", why, hint)
        return Plan(self.name, facts=(_fact(most, observed),))


def limit(desired: Desired, total: int) -> int:
    """Bytes, in whole MiB: the kernel counts pages, and would round by itself."""
    return (total - desired.reserve) // MIB * MIB


def _said(count: int | None) -> str:
    return "no limit" if count in (None, NO_BOUND) else size(count or 0)


def _fact(most: int, observed: Observed) -> str:
    times = observed.bound.reached
    reached = f"; that was reached {times} time{'s' * (times != 1)}, and processes killed" if times else ""
    return f"the model may take {size(most)} of {size(observed.total)}, GPU memory not counted{reached}"
