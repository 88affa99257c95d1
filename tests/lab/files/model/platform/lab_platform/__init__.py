"""A vLLM platform plugin that lets the CPU build run over Ray: each node offers one pretended GPU, none is touched."""


def register() -> str:
    """The class that vLLM is to load, by name: importing it here already would be too early."""
    return "lab_platform.platform.RayOnCpu"
