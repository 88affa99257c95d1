"""What both workloads' containers get on their host: the image that is here, the way over the link, the keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256

from strixd import collectives
from strixd.ports import Files
from strixd.quadlet import Container
from strixd.resources import image


async def fingerprint(files: Files, *paths: str) -> str:
    """Differs when a key does, and tells nothing of it: keys are random. "" when there is none."""
    keys = "".join([await files.read(path) or "" for path in paths if path]).strip()
    return sha256(keys.encode()).hexdigest()[:16] if keys else ""


def with_host(base: Container, report: image.Report, told: Mapping[str, str]) -> Container:
    """`told`: of the link, which differs from node to node: it is set here and never copied from the head to a
    worker. What the file says counts more."""
    environment = {**told, **base.environment}
    before = base.before + collectives.first_words(environment)
    return replace(base, image=image.runnable(report), environment=environment, before=before, link=told)
