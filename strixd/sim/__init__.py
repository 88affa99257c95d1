"""The same ports over one node in memory, with faults that can be injected.

world = World(hostname="halo1", names=("halo1", "halo2"), head="halo1")
host = simulated_host(world)      # one strixd process
clock.run(main())                 # in virtual time, or any loop with Clock(factor=10)
"""

from __future__ import annotations

from strixd.sim.host import simulated_host
from strixd.sim.world import World

__all__ = ["World", "simulated_host"]
