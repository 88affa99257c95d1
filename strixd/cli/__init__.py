"""strixd-cli: argv → one call → print what comes → exit status. An ordinary client of the control socket.

What a command needs is imported when it is given (the table is words.py): a start must cost little more than
Python itself, so neither this module nor what `status` uses may import anything heavy.
"""

from __future__ import annotations

import os
import sys

from strixd.cli.parse import Asked, parse
from strixd.cli.terminal import let_go
from strixd.errors import StrixdError

INTERRUPTED = 130
NOBODY_READS = 141  # as a process ends that SIGPIPE kills


def main(arguments: list[str] | None = None) -> int:
    _open_output()
    _forgiving_output()
    try:
        status = run(parse(sys.argv[1:] if arguments is None else arguments))
    except StrixdError as error:
        return _complain(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        let_go(sys.stdout)
        return NOBODY_READS
    return status


def run(asked: Asked) -> int:
    module, _, function = asked.command.run.partition(":")
    command = getattr(__import__(f"strixd.cli.{module}", fromlist=[function]), function)
    status: int = command(asked)
    return status


def _complain(error: StrixdError) -> int:
    """Complaints about a file stand alone, as a compiler's do, so that an editor can jump to them."""
    text = str(error) if error.code == "ConfigError" else f"strixd-cli: {error}"
    hint = "".join(f"\n  {line}" for line in error.hint.splitlines())
    try:
        sys.stderr.write(f"{text}{hint}\n")
        sys.stderr.flush()
    except OSError:
        let_go(sys.stderr)  # the exit status tells it too
    return error.exit_status


def _open_output() -> None:
    """Whoever starts us with closed descriptors wants no output; no socket may come to be in their place."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: PTH123, SIM115 - until the end


def _forgiving_output() -> None:
    """A terminal of another encoding gets question marks, not a traceback."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
