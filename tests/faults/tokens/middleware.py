"""A middleware of vLLM's API, laid beside the models of a lab host. Once told, the server process that runs then
answers 500 to every completion for as long as it lives, and /health as ever: it looks alive and is dead."""

import time
from pathlib import Path
from typing import Any

TOLD = Path("/models/lab/sick")
BORN = time.time()


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
