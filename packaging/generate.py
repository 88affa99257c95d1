"""python3 packaging/generate.py FOLDER: completions and a man page, from what the programs say of themselves.

Run with the project's folder in PYTHONPATH. The date is SOURCE_DATE_EPOCH's, so that the same source gives the same
bytes.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from manpage import manpage
from program import CLI, MEDIA
from shells import bash, fish, zsh


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for program in (CLI, MEDIA):
        name = program.name
        (folder / name).write_text(bash(program))
        (folder / f"{name}.fish").write_text(fish(program))
        (folder / f"_{name}").write_text(zsh(program))
    (folder / f"{CLI.name}.1").write_text(manpage(CLI, int(os.environ["SOURCE_DATE_EPOCH"])))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
