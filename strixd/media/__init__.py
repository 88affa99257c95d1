"""`strixd-media`: kickstart and installation medium from cluster.toml, on an administrator's machine.

A package of its own: it shares with the daemon what is written in cluster.toml (strixd/config) and no more. What
thinks (render, explain, grub) does no I/O; foreign programs (xorriso, mtools, createrepo_c…) are run by tools.py alone.
Nothing needs root, and no half-written file is ever left behind.
"""

from strixd.media.program import main

__all__ = ["main"]
