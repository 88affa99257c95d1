"""A middleware of vLLM's API, laid beside the models of a lab host. Once told, the server process that runs then
answers 500 to every completion for as long as it lives, and /health as ever: it looks alive and is dead. And a start
takes as long as it is told: the server imports this when its engine is there, before it listens."""

import sys
import time
from pathlib import Path
from typing import Any

TOLD = Path("/models/lab/sick")
SLOW = Path("/models/lab/slow")
LINE = 15.0  # seconds between the signs of life of a steady start
BORN = time.time()


def hold_up() -> None:
    """As the file says: "still", for as long as it is there, or a number of seconds from its writing on, with lines."""
    while SLOW.exists():
        words = SLOW.read_text().strip()
        if words != "still":
            if time.time() > SLOW.stat().st_mtime + float(words):
                return
            sys.stdout.write(f"loads on, as told, at {time.time():.0f}\n")  # as vLLM's lines: never twice the same
            sys.stdout.flush()
        time.sleep(LINE)


hold_up()


def sick() -> bool:
    return TOLD.exists() and TOLD.stat().st_mtime > BORN


class Sick:
    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or "completions" not in scope["path"] or not sick():
            await self.app(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 500, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": b'{"error": {"message": "sick, as told"}}'})
