"""strixd-cli: argv → one call → print what comes → exit status. An ordinary client of the control socket.

What a command needs is imported when it is given (the table is words.py): a start must cost little more than
Python itself, so neither this module nor what `status` uses may import anything heavy.
"""

from __future__ import annotations

import os
import sys

from strixd.cli.parse import Asked, parse
from strixd.errors import StrixdError

INTERRUPTED = 130
NOBODY_READS = 141  # as a process ends that SIGPIPE kills


def main(arguments: list[str] | None = None) -> int:
    _forgiving_output()
    try:
        status = run(parse(sys.argv[1:] if arguments is None else arguments))
        sys.stdout.flush()
    except StrixdError as error:
        return _complain(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the exit would complain again
        return NOBODY_READS
    return status


def run(asked: Asked) -> int:
    module, _, function = asked.command.run.partition(":")
    command = getattr(__import__(f"strixd.cli.{module}", fromlist=[function]), function)
    status: int = command(asked)
    return status


def _complain(error: StrixdError) -> int:
    """Complaints about a file stand alone, as a compiler's do, so that an editor can jump to them."""
    sys.stdout.flush()
    text = str(error) if error.code == "ConfigError" else f"strixd-cli: {error}"
    hint = "".join(f"\n  {line}" for line in error.hint.splitlines())
    sys.stderr.write(f"{text}{hint}\n")
    return error.exit_status


def _forgiving_output() -> None:
    """A terminal of another encoding gets question marks, not a traceback."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
