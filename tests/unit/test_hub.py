"""Who may fetch a model, asked of an HTTP server of our own that answers as the hub does."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from strixd.host.hub import HuggingFace


@dataclass
class Site:
    """`answers`: model → status and headers. `seen`: what was asked, with which authorization."""

    url: str = ""
    answers: dict[str, tuple[int, dict[str, str]]] = field(default_factory=dict)
    seen: list[tuple[str, str]] = field(default_factory=list)


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            made.seen.append((self.path, self.headers.get("Authorization", "")))
            status, headers = made.answers.get(self.path.split("/resolve")[0].strip("/"), (200, {}))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.01,)).start()
    yield made
    server.shutdown()
    server.server_close()


@pytest.fixture
def token(tmp_path: Path) -> Path:
    file = tmp_path / "hf-token"
    file.write_text("hf_secret\n")
    return file


def ask(site: Site, model: str, token: Path | str = "/nowhere") -> str:
    return asyncio.run(HuggingFace(site.url, token_file=str(token)).refusal(model))


GATED = {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access to model meta-llama/X is restricted."}


def test_a_public_model(site: Site) -> None:
    assert ask(site, "org/open") == ""
    assert site.seen == [("/org/open/resolve/main/config.json", "")]


def test_a_gated_model_without_a_token(site: Site) -> None:
    site.answers["meta/x"] = (401, GATED)
    assert ask(site, "meta/x") == (
        f"meta/x is gated: accept its licence at {site.url}/meta/x and give this node a token (strixd-cli token set)"
    )


def test_a_gated_model_with_a_token_that_may_not(site: Site, token: Path) -> None:
    site.answers["meta/x"] = (403, GATED)
    said = ask(site, "meta/x", token)
    assert f"accept its licence at {site.url}/meta/x with the account of this node's token" in said
    assert site.seen[0][1] == "Bearer hf_secret"
    assert "hf_secret" not in said


def test_a_token_that_is_not_accepted(site: Site, token: Path) -> None:
    site.answers["org/x"] = (401, {"X-Error-Message": "Invalid credentials in Authorization header"})
    assert "does not accept the token" in ask(site, "org/x", token)


def test_no_such_model(site: Site, token: Path) -> None:
    site.answers["org/none"] = (404, {"X-Error-Code": "RepoNotFound"})
    assert ask(site, "org/none", token) == f"There is no model org/none at {site.url}/org/none"


def test_no_such_model_or_a_private_one(site: Site) -> None:
    site.answers["org/none"] = (401, {"X-Error-Code": "RepoNotFound"})
    assert "or it is private and this node has no token" in ask(site, "org/none")


def test_a_model_without_config_json_exists(site: Site) -> None:
    site.answers["org/gguf"] = (404, {"X-Error-Code": "EntryNotFound"})
    assert ask(site, "org/gguf") == ""


@pytest.mark.parametrize("status", [429, 500, 503])
def test_trouble_of_the_hub_proves_nothing(site: Site, status: int) -> None:
    site.answers["org/x"] = (status, {})
    assert ask(site, "org/x") == ""


def test_a_redirection_is_not_followed(site: Site, token: Path) -> None:
    site.answers["org/x"] = (302, {"Location": f"{site.url}/elsewhere"})
    assert ask(site, "org/x", token) == ""
    assert len(site.seen) == 1


def test_an_answer_is_remembered_until_the_token_changes(site: Site, token: Path) -> None:
    site.answers["meta/x"] = (403, GATED)

    hub = HuggingFace(site.url, token_file=str(token))
    assert asyncio.run(hub.refusal("meta/x")) == asyncio.run(hub.refusal("meta/x")) != ""
    assert len(site.seen) == 1
    site.answers.clear()
    token.write_text("hf_better")
    assert asyncio.run(hub.refusal("meta/x")) == ""
    assert [auth for _, auth in site.seen] == ["Bearer hf_secret", "Bearer hf_better"]


@pytest.mark.parametrize("model", ["/models/tiny", "a/b/c", "../x", "with space", ""])
def test_a_folder_is_not_asked_about(site: Site, model: str) -> None:
    asked = ask(site, model)
    assert (asked, site.seen) == ("", [])


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:1", "http://name.invalid", "no url"])
def test_nobody_there(endpoint: str) -> None:
    began = time.monotonic()
    assert asyncio.run(HuggingFace(endpoint).refusal("org/x")) == ""
    assert time.monotonic() - began < 7


def test_a_token_that_fits_no_header(site: Site, tmp_path: Path) -> None:
    (tmp_path / "t").write_text("two\nlines")
    assert ask(site, "org/x", tmp_path / "t") == ""
