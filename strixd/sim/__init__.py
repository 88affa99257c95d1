"""The same ports over one node in memory, with faults that can be injected."""
