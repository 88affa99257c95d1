"""Names, digests, progress and failures, as podman 5.4 says them."""

from __future__ import annotations

import pytest

from strixd.host.podman_words import Layers, Name, digest, explain, name

A, B = "sha256:" + "a" * 64, "sha256:" + "b" * 64


@pytest.mark.parametrize(
    ("reference", "parts"),
    [
        ("docker.io/kyuz0/x:latest", Name("docker.io/kyuz0/x", "latest")),
        ("docker.io/kyuz0/x", Name("docker.io/kyuz0/x", "latest")),
        ("host:5000/x", Name("host:5000/x", "latest")),
        ("host:5000/x:1.2", Name("host:5000/x", "1.2")),
        (f"host:5000/x@{A}", Name("host:5000/x", "latest", A)),
        (f"host:5000/x:1@{A}", Name("host:5000/x", "1", A)),
    ],
)
def test_names(reference: str, parts: Name) -> None:
    assert name(reference) == parts


def test_local_images_have_no_registry() -> None:
    assert name("localhost/x:1").local
    assert not name("localhost:5000/x:1").local


@pytest.mark.parametrize(
    ("wanted", "own", "known", "expected"),
    [
        ("", A, (f"r/x@{A}",), A),
        ("", A, (f"r/x@{A}", f"r/x@{B}"), A),
        (B, A, (f"r/x@{A}", f"r/x@{B}"), B),
        ("", A, (f"r/x@{B}", f"other@{A}"), B),
        (B, A, (f"r/x@{A}",), A),
        ("", A, (), A),
    ],
)
def test_the_digest_that_can_be_pulled(wanted: str, own: str, known: tuple[str, ...], expected: str) -> None:
    assert digest(wanted, own, known, "r/x") == expected


def test_layers_as_they_come() -> None:
    layers = Layers()
    for item in (
        {"status": "Already exists", "progressDetail": {}, "id": "1"},
        {"status": "Pulling fs layer", "progressDetail": {}, "id": "2"},
        {"status": "Downloading", "progressDetail": {"current": 40, "total": 100}, "id": "2"},
        {"status": "Downloading", "progressDetail": {"current": 30, "total": 200}, "id": "3"},
        {"stream": "Trying to pull…"},
        {"status": "no layer"},
    ):
        layers.hear(item)
    assert (len(layers.got), len(layers.complete), layers.bytes, layers.missing) == (3, 1, 70, 230)
    layers.hear({"status": "Download complete", "progressDetail": {}, "id": "2"})
    assert (len(layers.complete), layers.bytes, layers.missing) == (2, 130, 170)


@pytest.mark.parametrize(
    ("words", "meaning", "hint"),
    [
        ("unauthorized: authentication required", "wants a login", "podman login r.io"),
        ("denied: requested access to the resource is denied", "wants a login", "podman login r.io"),
        ("manifest unknown: manifest unknown", "no such image, or no longer", "strixd-cli image update"),
        ("write /var/tmp/x: no space left on device", "the disk is full", "make room"),
        ("network is unreachable", "cannot be reached", "way to the internet"),
        ("connection refused", "cannot be reached", "way to the internet"),
        ("lookup r.io on 127.0.0.53:53: no such host", "name r.io is not known", "resolvectl query r.io"),
        ("tls: failed to verify certificate: x509: expired", "certificate", "clock"),
        ("http: server gave HTTP response to HTTPS client", "no TLS", "registries.conf"),
        ("toomanyrequests: You have reached your pull rate limit", "limits", "wait"),
        ('short-name "x:latest" did not resolve to an alias', "no full name", "REGISTRY/REPOSITORY:TAG"),
    ],
)
def test_failures_are_named_with_podmans_words_kept(words: str, meaning: str, hint: str) -> None:
    why, then = explain(words, "r.io")
    assert meaning in why
    assert why.endswith(f"({words})")
    assert hint in then


def test_unknown_words_stand_for_themselves() -> None:
    assert explain("a\n b", "r.io")[0] == "a b"
    assert explain("", "r.io")[0] == "podman gives no reason"
