"""The site that models come from: may this node fetch this one? Asked before a start, because a gated model would
otherwise say so after an hour of preparation.

The question is the one that the downloader asks first: the head of the model's config.json. Only a clear no counts;
whatever else happens proves nothing. The token goes into the request and nowhere else, and no redirection is followed
with it.
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from email.message import Message

PUBLIC = "https://huggingface.co"
TOKEN = "/etc/strixd/hf-token"
WITHIN = 5.0
"""Seconds for an answer."""
KEPT = 300.0
"""Seconds for which a yes is remembered."""
KEPT_NO = 30.0
"""The same for a no, and for no answer: a person may accept the licence any moment."""
NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")
"""A model's name on the hub; anything else is a folder."""


@dataclass(frozen=True, slots=True)
class Reply:
    """`code` and `words` are the headers X-Error-Code and X-Error-Message, in which the hub says what it means."""

    status: int
    code: str = ""
    words: str = ""


class HuggingFace:
    """Implements ports.Hub. `endpoint`: "" for what HF_ENDPOINT names, else the public one."""

    def __init__(self, endpoint: str = "", *, token_file: str = TOKEN) -> None:
        self._endpoint = (endpoint or os.environ.get("HF_ENDPOINT") or PUBLIC).rstrip("/")
        self._token_file = token_file
        self._known: dict[tuple[str, str], tuple[float, str]] = {}

    async def refusal(self, model: str) -> str:
        if not NAME.fullmatch(model):
            return ""
        token = _token(self._token_file)
        until, said = self._known.get((model, token), (0.0, ""))
        if time.monotonic() < until:
            return said
        reply = await self._ask(model, token)
        said = refusal(model, reply, page=f"{self._endpoint}/{model}", token=bool(token)) if reply else ""
        kept = KEPT if reply and not said else KEPT_NO
        self._known = {(model, token): (time.monotonic() + kept, said)}
        return said

    async def _ask(self, model: str, token: str) -> Reply | None:
        """None when nobody answers. The thread is nobody's to wait for: a name server that is silent holds it longer
        than a daemon may take to end."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Reply | None] = loop.create_future()

        def ask() -> None:
            reply = head(f"{self._endpoint}/{model}/resolve/main/config.json", token)
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(lambda: None if answer.done() else answer.set_result(reply))

        threading.Thread(target=ask, name="hub", daemon=True).start()
        try:
            return await asyncio.wait_for(answer, WITHIN + 1)
        except TimeoutError:
            return None


def refusal(model: str, reply: Reply, *, page: str, token: bool) -> str:
    """What the hub's answer means, in a sentence; "" for anything but a clear no.

    Asked without a token it says 401 for a model that does not exist, too (huggingface_hub, hf_raise_for_status)."""
    gated = reply.code == "GatedRepo" or (reply.status == 403 and not reply.code)
    if reply.status in (401, 403) and gated:
        then = "with the account of this node's token" if token else "and give this node a token"
        return f"{model} is gated: accept its licence at {page} {then} (strixd-cli token set)"
    if reply.status == 401 and token and "Invalid credentials" in reply.words:
        return f"The hub does not accept the token of this node; {page} cannot be fetched (strixd-cli token set)"
    if reply.code == "DisabledRepo":
        return f"{model} has been disabled by the hub: {page}"
    if reply.code == "RepoNotFound" or (reply.status in (401, 404) and not reply.code):
        private = "" if token else ", or it is private and this node has no token (strixd-cli token set)"
        return f"There is no model {model} at {page}{private}"
    return ""


def head(url: str, token: str) -> Reply | None:
    """One HEAD request, in a thread; None when nobody answers. urllib and ssl cost 2.4 MiB, so only who asks pays."""
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import Request, build_opener

    try:
        request = Request(url, method="HEAD", headers={"User-Agent": "strixd"})
        if token:
            request.add_unredirected_header("Authorization", f"Bearer {token}")
        with build_opener(_stay()).open(request, timeout=WITHIN) as answer:
            return _reply(answer.status, answer.headers)
    except HTTPError as error:
        with error:
            return _reply(error.code, error.headers)
    except (OSError, HTTPException, ValueError):  # no route, name or certificate; no HTTP; an endpoint that is no URL
        return None


def _stay() -> type:
    """Redirections are answers: who is sent elsewhere for the file may have it."""
    from urllib.request import HTTPRedirectHandler

    class Stay(HTTPRedirectHandler):
        def redirect_request(self, *_: object) -> None:
            return None

    return Stay


def _reply(status: int, headers: Message) -> Reply:
    return Reply(status, headers.get("X-Error-Code", ""), headers.get("X-Error-Message", ""))


def _token(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace").strip()
    except OSError:
        return ""
