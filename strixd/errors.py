"""The named failures. Anything that is not one of these is a bug and ends the process.

Raised in adapters and decoders; caught in engine/apply, in the socket server and in the CLI, nowhere else.
The text of an error reads "Cannot X: the system's own words".
"""

from __future__ import annotations


class StrixdError(Exception):
    """A failure with a stable code (the Varlink error is io.strixd.CODE), an exit status and a hint."""

    code = "Failed"
    exit_status = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Refused(StrixdError):
    """The request or the file makes no sense. Never retried."""

    code = "Refused"
    exit_status = 2


class NothingToUndo(Refused):
    """Every change that is in force has been taken back, or there was none."""

    code = "NothingToUndo"


class NotPermitted(Refused):
    """The peer of the socket may not ask this."""

    code = "NotPermitted"
    exit_status = 77  # EX_NOPERM


class ConfigError(Refused):
    """cluster.toml cannot be used. `complaints` are complete lines `FILE:LINE: KEY: what is wrong`, sorted."""

    code = "ConfigError"
    exit_status = 78  # EX_CONFIG

    def __init__(self, complaints: tuple[str, ...], *, hint: str = "") -> None:
        super().__init__("\n".join(complaints), hint=hint)
        self.complaints = complaints


class CardAway(ConfigError):
    """No node of the file is this host, and a card by which one is known is not there: its driver may come later."""


class Unavailable(StrixdError):
    """The service is not there now. Retried, with backoff."""

    code = "Unavailable"
    exit_status = 69  # EX_UNAVAILABLE


class Rejected(StrixdError):
    """It is there and said no; its own words are kept. Held; retried when something changes."""

    code = "Rejected"


class CannotServe(Rejected):
    """The ordered model cannot answer as things are; names the resource in the way. The order stays."""

    code = "CannotServe"
    exit_status = 3


class NotSettled(StrixdError):
    """It said yes, and the world still differs. Rolled back, then held."""

    code = "NotSettled"


class CutsOff(NotSettled):
    """It said yes, and with it another way into this host is gone. Held for long: each try cuts people off again."""

    code = "CutsOff"


class TimedOut(NotSettled):
    """What was waited for did not come in time."""

    code = "TimedOut"
    exit_status = 75  # EX_TEMPFAIL
