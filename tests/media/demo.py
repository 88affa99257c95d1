"""make medium-demo: the packages of this checkout on media for two nodes, made as an administrator makes them.

The Fedora image is a stand-in with the layout of one: nothing on it boots (make test-vm has one that does).
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tests.media import pieces
from tests.media.lab import ROOT, cluster, media

DIST = ROOT / "dist"


def main() -> int:
    folder = DIST / "medium-demo"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    file = folder / "cluster.toml"
    file.write_text(cluster())
    rpms = ("--rpms", DIST)
    image = ("--iso", pieces.fedora(folder))
    ask = ("--cluster", file)
    orders = (("build", *ask, *rpms, "--out", folder / name, *more) for name, more in _wanted(image))
    return max(_told(*words) for words in (("explain", *ask), *orders))


def _wanted(image: tuple[str | Path, ...]) -> tuple[tuple[str, tuple[str | Path, ...]], ...]:
    return (("oemdrv.iso", ()), ("oemdrv.img", ()), ("fedora-halo.iso", image))


def _told(*words: str | Path) -> int:
    sys.stdout.write(f"\n$ strixd-media {' '.join(map(str, words))}\n")
    done = media(*words)
    sys.stdout.write(done.stderr + done.stdout)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
