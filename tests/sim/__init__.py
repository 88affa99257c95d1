"""Whole nodes in virtual time: strixd's engine over the simulated world, with faults."""
