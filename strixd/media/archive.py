"""An OCI archive, as `podman save --format oci-archive` writes it: is it the image that cluster.toml asks for?"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

from strixd.errors import Refused
from strixd.media.contents import IMAGE, Item, item

_NAME = "org.opencontainers.image.ref.name"


def image(file: Path, reference: str) -> Item:
    """Raises Refused for another image, another format, or no archive: a node would pull after all, or not start. So it
    would for a digest: podman keeps layers unpacked and packs them anew, so the archive's is not the registry's."""
    if "@" in reference:
        words = f"cluster.toml asks for {reference}, and an archive has another digest than the registry"
        raise Refused(words, hint=f'reference = "{reference.partition("@")[0]}" in [image]; or without --image')
    hint = f"podman save --format oci-archive -o {file} {reference}"
    found = item(IMAGE, file)
    names = _names(file, hint)
    if reference not in names:
        held = ", ".join(names) or "an image without a name"
        raise Refused(f"{file} holds {held}, and cluster.toml asks for {reference}", hint=hint)
    return found


def _names(file: Path, hint: str) -> list[str]:
    try:
        with tarfile.open(file) as archive:
            opened = archive.extractfile("index.json")
            index: dict[str, Any] = json.load(opened) if opened else {}
        images = index["manifests"]
    except (tarfile.TarError, KeyError, ValueError) as error:
        raise Refused(f"{file} is no OCI archive: {str(error).partition(chr(10))[0]}", hint=hint) from None
    return [name for each in images if (name := each.get("annotations", {}).get(_NAME, ""))]
