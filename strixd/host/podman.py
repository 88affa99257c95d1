"""podman over its socket: is an image here, pull one. The only file that knows the podman library.

Synchronous, for strixd/fetch.py, which runs as a unit of its own; the daemon never imports this (12 MiB).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import podman
from podman.errors import APIError, ImageNotFound, PodmanError

from strixd.errors import Rejected, Unavailable
from strixd.host import podman_words as words

SOCKET = "/run/podman/podman.sock"
WITHIN = 30.0
"""Seconds for a question; the service is started by the first one."""
SILENCE = 1800.0
"""Seconds that a pull may say nothing: it is silent while a layer of tens of gigabytes is unpacked."""


@dataclass(frozen=True, slots=True)
class Image:
    """`digests` are "repository@sha256:…". `size` in bytes, unpacked. `environment`: what the image itself sets."""

    id: str
    digest: str
    digests: tuple[str, ...]
    size: int
    environment: tuple[str, ...] = ()


class Podman:
    def __init__(self, socket: str = SOCKET) -> None:
        self._socket = socket

    def image(self, reference: str) -> Image | None:
        """None when it is not on this host. Nobody else is asked."""
        with self._client(f"look for the image {reference}", reference, WITHIN) as client:
            try:
                found = client.images.get(reference).attrs
            except ImageNotFound:
                return None
        digests = tuple(found.get("RepoDigests") or ())
        sets, size = tuple((found.get("Config") or {}).get("Env") or ()), int(found.get("Size", 0))
        return Image(found["Id"].removeprefix("sha256:"), found.get("Digest", ""), digests, size, sets)

    def pull(self, reference: str) -> Iterator[dict[str, Any]]:
        """Items of the stream, for podman_words.Layers. Rejected with the reason and what to do.

        Whether TLS is asked for is left to registries.conf: None keeps the library from saying yes. It also makes
        "repository:sha256:…" of a digest, unless all but the hexadecimal digits is said to be the repository."""
        repository, _, tag = reference.rpartition(":") if "@" in reference else (reference, "", "")
        if not tag:
            parts = words.name(reference)
            repository, tag = parts.repository, parts.tag
        with self._client(f"pull {reference}", reference, SILENCE) as client:
            for item in client.images.pull(repository, tag=tag, stream=True, decode=True, tls_verify=None):
                if "error" in item:
                    raise _rejected(f"pull {reference}", reference, str(item["error"]))
                yield item

    def keep(self, id: str, repository: str, tag: str) -> None:
        """One more name for an image. An image that loses its last name, as when its tag is pulled anew, cannot be
        found by its digest any more, although it is here."""
        with self._client(f"name the image {id[:12]} {repository}:{tag}", repository, WITHIN) as client:
            client.images.get(id).tag(repository, tag)

    def room(self) -> int:
        """Bytes free where images are kept, or where they are laid down while they come, if less."""
        with self._client("ask for podman's folders", "", WITHIN) as client:
            store = client.info()["store"]
        return min(_free(Path(folder)) for folder in (store["graphRoot"], store["imageCopyTmpDir"]))

    @contextmanager
    def _client(self, doing: str, reference: str, within: float) -> Iterator[podman.PodmanClient]:
        """A service that is away: an OSError, or an APIError without a response, whose cause has the words."""
        try:
            with podman.PodmanClient(base_url=f"http+unix://{self._socket}", timeout=within) as client:
                yield client
        except APIError as error:
            if error.response is None:
                raise self._away(doing, error.__cause__ or error) from None
            raise _rejected(doing, reference, _words(str(error.explanation or error))) from None
        except PodmanError as error:
            raise _rejected(doing, reference, str(error)) from None
        except (OSError, ValueError) as error:  # ValueError: it was cut off in the middle of a line
            raise self._away(doing, error) from None

    def _away(self, doing: str, error: BaseException) -> Unavailable:
        hint = "systemctl status podman.socket podman.service"
        return Unavailable(f"Cannot {doing}: podman does not answer at {self._socket}: {error}", hint=hint)


def _words(said: str) -> str:
    """The library passes the answer's JSON on as it is when a cause is missing in it."""
    try:
        return str(json.loads(said)["message"])
    except (ValueError, TypeError, KeyError):
        return said


def _free(folder: Path) -> int:
    """Of the file system that it is on, or will be on."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def _rejected(doing: str, reference: str, said: str) -> Rejected:
    why, hint = words.explain(said, words.name(reference).registry)
    return Rejected(f"Cannot {doing}: {why}", hint=hint)
