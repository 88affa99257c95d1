"""A real container registry on the management network, from which hosts pull the image.

Its storage is laid out here as the registry itself would write it: no push, no container tool on the machine. It holds
two builds of the image, which differ in a label only, so that a moved tag can be tested.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.lab import clean
from tests.lab.cache import cached
from tests.lab.disk import mount_overlay
from tests.lab.host import wait_for
from tests.lab.layout import (
    MANAGEMENT_NETNS,
    REGISTRY_ADDRESS,
    REGISTRY_NAME,
    REGISTRY_PORT,
    cgroup,
    run_folder,
)
from tests.lab.roots import host_root, image_root
from tests.lab.shell import attempt, run

REPOSITORY = "strixd/vllm-cpu"
REFERENCE = f"{REGISTRY_NAME}:{REGISTRY_PORT}/{REPOSITORY}:latest"
BUILDS = ("first", "second")
OCI = "application/vnd.oci.image"
ADDRESS = f"{REGISTRY_ADDRESS}:{REGISTRY_PORT}"
CONFIG = f"""\
version: 0.1
log: {{level: warn}}
storage: {{filesystem: {{rootdirectory: /srv/storage}}}}
http: {{addr: "{ADDRESS}"}}
"""
# Not `ip netns exec`, which hides the cgroups.
IN_NETNS = ("nsenter", f"--net=/run/netns/{MANAGEMENT_NETNS}")
# In a mount namespace of its own: the storage is shown inside the host root, which has the program and its libraries.
RUN = 'echo $$ >"$1/cgroup.procs"; mount --bind "$2" "$3/srv"; exec chroot "$3" docker-registry serve /srv/config.yml'


def storage() -> Path:
    """The registry's storage with both builds in it, `latest` being the first."""
    return cached("registry", "\n".join(("registry 1", image_root().name, *BUILDS)), _lay_out)


def start(made: Path | None = None) -> None:
    """Start it (again) and wait until it answers."""
    folder, group = run_folder() / "registry", cgroup("registry")
    if made is not None:
        for part in ("up", "work", "root"):
            (folder / part).mkdir(parents=True)
        mount_overlay(made, folder, "registry")
    group.mkdir(parents=True, exist_ok=True)
    apart = [*IN_NETNS, "unshare", "--mount", "--propagation", "private"]
    command = [*apart, "sh", "-euc", RUN, "registry", str(group), str(folder / "root"), str(host_root())]
    with (folder / "log").open("ab") as log:
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    try:
        wait_for("the registry answers", _answers)
    except TimeoutError as late:
        raise TimeoutError(f"{late}; it says: {(folder / 'log').read_text()[-1000:]}") from None


def stop() -> None:
    """Unreachable from now on, as if its machine were off."""
    clean.kill_group(cgroup("registry"))


def digest(build: str) -> str:
    """The digest of "first" or "second", under which a host can pull it too."""
    return _link(run_folder() / "registry/root", f"_manifests/tags/{build}/current").read_text()


def move_tag(build: str) -> None:
    """Let `latest` mean another build from now on."""
    _point(run_folder() / "registry/root", "latest", digest(build))


def _answers() -> bool:
    look = [*IN_NETNS, "bash", "-c", f"</dev/tcp/{REGISTRY_ADDRESS}/{REGISTRY_PORT}"]
    return attempt(look, timeout=5).ok


def _lay_out(folder: Path) -> None:
    (folder / "config.yml").write_text(CONFIG)
    layer = folder / "layer.tar"
    run(["tar", "--numeric-owner", "--one-file-system", "-C", image_root(), "-cf", layer, "."], timeout=300)
    described = {"mediaType": f"{OCI}.layer.v1.tar", "size": layer.stat().st_size, "digest": _keep(folder, layer)}
    _link(folder, f"_layers/{described['digest']}").write_text(str(described["digest"]))
    for build in BUILDS:
        made = _manifest(folder, build, described)
        _point(folder, build, made)
    _point(folder, "latest", _link(folder, "_manifests/tags/first/current").read_text())


def _manifest(folder: Path, build: str, layer: dict[str, object]) -> str:
    inside = {"Cmd": ["/bin/bash"], "Labels": {"lab.build": build}}
    config = {
        "architecture": "amd64", "os": "linux", "config": inside,
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
    }  # fmt: skip
    described = _keep_json(folder, config, f"{OCI}.config.v1+json")
    _link(folder, f"_layers/{described['digest']}").write_text(str(described["digest"]))
    kind = f"{OCI}.manifest.v1+json"
    manifest = {"schemaVersion": 2, "mediaType": kind, "config": described, "layers": [layer]}
    return str(_keep_json(folder, manifest, kind)["digest"])


def _point(folder: Path, tag: str, made: str) -> None:
    for where in (f"revisions/{made}", f"tags/{tag}/current", f"tags/{tag}/index/{made}"):
        _link(folder, f"_manifests/{where}").write_text(made)


def _link(folder: Path, where: str) -> Path:
    """The registry finds a blob from a repository by a file named `link` that holds its digest."""
    file = folder / f"storage/docker/registry/v2/repositories/{REPOSITORY}" / where.replace(":", "/") / "link"
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


def _keep_json(folder: Path, content: Mapping[str, object], kind: str) -> dict[str, object]:
    file = folder / "content.json"
    file.write_text(json.dumps(content))
    return {"mediaType": kind, "size": file.stat().st_size, "digest": _keep(folder, file)}


def _keep(folder: Path, file: Path) -> str:
    """Move a file to where the registry keeps the content of that digest."""
    with file.open("rb") as content:
        found = hashlib.file_digest(content, "sha256").hexdigest()
    place = folder / "storage/docker/registry/v2/blobs/sha256" / found[:2] / found / "data"
    place.parent.mkdir(parents=True, exist_ok=True)
    file.rename(place)
    return f"sha256:{found}"
