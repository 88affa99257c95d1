"""cluster.toml: what may be written (schema, checks, rules), what is wrong with it (loading) and what it comes to.

Pure but for load() and read(), which read the file.
"""

from strixd.config.effective import Setting, render, settings, settings_hash
from strixd.config.finding import find_node
from strixd.config.loading import EXPECTED_AT, ConfigFile, load, parse, read
from strixd.config.schema import Cluster, Config, Fabric, Image, Install, Kernel, Metrics, Model, Node

__all__ = [
    "EXPECTED_AT",
    "Cluster",
    "Config",
    "ConfigFile",
    "Fabric",
    "Image",
    "Install",
    "Kernel",
    "Metrics",
    "Model",
    "Node",
    "Setting",
    "find_node",
    "load",
    "parse",
    "read",
    "render",
    "settings",
    "settings_hash",
]
