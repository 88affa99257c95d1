"""What podman says, in our words: names of images, the progress of a pull, and why one failed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Name:
    """A reference in its parts: `repository` with its registry; `tag` "latest" when there is none; `digest` "" or
    "sha256:…"."""

    repository: str
    tag: str = "latest"
    digest: str = ""

    @property
    def local(self) -> bool:
        """Made on this host (podman import, build, load): no registry knows it."""
        return self.repository.startswith("localhost/")

    @property
    def registry(self) -> str:
        return self.repository.partition("/")[0]

    def at(self, digest: str) -> str:
        return f"{self.repository}@{digest}"


def name(reference: str) -> Name:
    """A colon before the last slash is a port, not a tag."""
    rest, _, digest = reference.partition("@")
    head, colon, tag = rest.rpartition(":")
    if colon and "/" not in tag:
        return Name(head, tag, digest)
    return Name(rest, digest=digest)


def digest(wanted: str, own: str, known: Iterable[str], repository: str) -> str:
    """Of an image, the digest under which it can be had again: the one that was asked for, if it is this image's (the
    list of all platforms has another one than the image in it); else the image's own; else what the repository calls
    it. `own` and `known` are podman's Digest and RepoDigests."""
    theirs = sorted(entry.partition("@")[2] for entry in known if entry.partition("@")[0] == repository)
    if wanted and wanted in (own, *theirs):
        return wanted
    return own if own in theirs or not theirs else theirs[0]


@dataclass(slots=True)
class Layers:
    """A pull as it goes on; layers by the id that podman gives them. Bytes are compressed ones."""

    sizes: dict[str, int] = field(default_factory=dict)
    got: dict[str, int] = field(default_factory=dict)
    complete: set[str] = field(default_factory=set)

    def hear(self, item: Mapping[str, Any]) -> None:
        """One item of the stream, as of /images/pull in compatibility mode. A size is told only while a layer comes."""
        layer = item.get("id")
        if not isinstance(layer, str) or "status" not in item:
            return
        said = item.get("progressDetail") or {}
        self.got[layer] = max(self.got.get(layer, 0), int(said.get("current") or 0))
        self.sizes[layer] = max(self.sizes.get(layer, 0), int(said.get("total") or 0))
        if item["status"] in ("Download complete", "Already exists", "Pull complete"):
            self.complete.add(layer)
            self.got[layer] = self.sizes[layer]

    @property
    def bytes(self) -> int:
        return sum(self.got.values())

    @property
    def missing(self) -> int:
        """Bytes still to come, of the layers whose size is known."""
        return sum(size - self.got[layer] for layer, size in self.sizes.items() if layer not in self.complete)


SIGNS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        ("no space left on device", "disk quota exceeded"),
        "the disk is full",
        "make room where podman keeps its images (df -h /var/lib/containers /var/tmp); keep the image in use",
    ),
    (
        ("unauthorized", "authentication required", "invalid username/password", "denied", "403 (forbidden)"),
        "{registry} wants a login for it, or has no such image",
        "podman login {registry} on this node, as root; or check [image] reference",
    ),
    (
        ("manifest unknown", "name unknown", "manifest invalid", "repository does not exist"),
        "{registry} has no such image, or no longer",
        "check [image] reference; if the image was replaced there: strixd-cli image update, on every node",
    ),
    (("toomanyrequests", "rate limit"), "{registry} limits how often it is asked", "wait, or podman login {registry}"),
    (
        ("no such host", "name resolution", "server misbehaving"),
        "the name {registry} is not known here",
        "check this node's way to the internet: resolvectl query {registry}",
    ),
    (
        ("connection refused", "no route to host", "network is unreachable", "timeout", "deadline exceeded"),
        "{registry} cannot be reached",
        "check this node's way to the internet: curl -I https://{registry}/v2/",
    ),
    (
        ("x509", "certificate"),
        "the certificate of {registry} is not accepted",
        "check this node's clock (timedatectl), or give podman the registry's certificate (/etc/containers/certs.d)",
    ),
    (
        ("server gave http response to https",),
        "{registry} speaks no TLS",
        'allow it in /etc/containers/registries.conf.d: [[registry]] location = "{registry}", insecure = true',
    ),
    (
        ("short-name", "invalid reference format"),
        "that is no full name of an image",
        "[image] reference is REGISTRY/REPOSITORY:TAG",
    ),
)
"""Signs in podman's lower-cased words, what they mean, and what to do; the first that fits. As of podman 5.4 against
docker-registry 2.8; the words for rate limits and name servers from containers/image and Docker Hub."""


def explain(words: str, registry: str) -> tuple[str, str]:
    """What a failed pull means and what to do; its own words are kept in the meaning. Unknown words stand for
    themselves."""
    words = " ".join(words.split()) or "podman gives no reason"
    for signs, meaning, hint in SIGNS:
        if any(sign in words.lower() for sign in signs):
            return f"{meaning.format(registry=registry)} ({words})", hint.format(registry=registry)
    return words, "journalctl -u strixd-image -u podman"
