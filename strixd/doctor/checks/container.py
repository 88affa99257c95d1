"""What a rank meets inside the container, and the collective library that it has loaded."""

from __future__ import annotations

from strixd.desired import OBJECT_STORE
from strixd.doctor.checks.daemon import START, resource
from strixd.doctor.facts import Daemon, Denials, Digest, Graphics, Inside, Libraries, Own
from strixd.doctor.finding import Check, Judged, Verdict
from strixd.resources.effect import size

RDMA = "/dev/infiniband"
FULL = 0.9


def runs(unit: str) -> Judged:
    if unit == "active":
        return Judged("ok", "strixd-ray.service is active")
    verdict: Verdict = "warning" if unit in ("activating", "deactivating", "reloading") else "fault"
    return Judged(verdict, f"strixd-ray.service is {unit}", "strixd-cli status says why; strixd-cli logs ray")


def memlock(inside: Inside) -> Judged:
    """Only RDMA locks much memory: without a device of it a limit costs nothing."""
    if inside.memlock is None:
        return Judged("ok", "unlimited in the container")
    rdma = any(path.startswith(RDMA) for path in inside.devices)
    words = "RDMA cannot register memory" if rdma else "of no consequence without RDMA"
    mend = (
        "systemctl show -p LimitMEMLOCK strixd-ray; has something else a limit (a drop-in, podman's containers.conf)?"
    )
    return Judged("fault" if rdma else "warning", f"{inside.memlock} KiB in the container: {words}", mend)


def devices(inside: Inside, denials: Denials, own: Own) -> Judged:
    """The system's words are the same for a group that lacks and for SELinux: the audit records tell the two apart."""
    shut = {path: words for path, words in inside.devices.items() if words}
    if not shut:
        opened = ", ".join(inside.devices) or "none of them is on this host"
        return Judged("ok", f"opened in the container: {opened}", "", ", ".join(own.config.image.devices))
    read = "; ".join(f"{path}: {words}" for path, words in shut.items())
    denied = [line for line in denials.lines if any(path.rpartition("/")[2] in line for path in shut)]
    if denied and denials.enforcing:
        return Judged("fault", f"{read}; SELinux says: {denied[-1]}", "setsebool -P container_use_devices on")
    mend = "ls -lZ the device: root owns it, and its cgroup allows it? podman inspect strixd-ray lists its devices"
    return Judged("fault", f"{read}; SELinux has denied nothing", mend)


def shared_memory(inside: Inside) -> Judged:
    read = f"{size(inside.shm)}, {size(inside.shm_free)} free in /dev/shm of the container"
    wanted = f"{size(OBJECT_STORE)} for Ray's object store and room for the ranks"
    if inside.shm < OBJECT_STORE:
        return Judged(
            "fault", read, "strixd-cli restart ray; does the unit say --shm-size? systemctl cat strixd-ray", wanted
        )
    if inside.shm_free < inside.shm * (1 - FULL):
        return Judged("warning", read, "strixd-cli restart ray empties it, and ends the model", wanted)
    return Judged("ok", read, "", wanted)


def rccl(libraries: Libraries, graphics: Graphics, inside: Inside) -> Judged | None:
    """Only what a living rank has loaded counts. The library is the image's: strixd puts no other in its place."""
    if not libraries.ranks or not (libraries.loaded or graphics.targets):
        return None
    if not libraries.loaded:
        return Judged("warning", f"{libraries.ranks} ranks, and none has loaded librccl or libnccl", _IMAGE)
    for library in libraries.loaded:
        missing = ", ".join(each for each in graphics.targets if each not in library.targets)
        if missing and library.compressed:
            mend = 'NCCL_DEBUG = "INFO" in [image] environment makes it tell in strixd-cli logs ray'
            return Judged("unknown", f"{library.path}: whether it knows {missing} is in compressed code", mend)
        if missing:
            return Judged("fault", f"{library.path} knows nothing of {missing}", _IMAGE)
    if len(libraries.loaded) > 1:
        return Judged("warning", f"several are loaded: {', '.join(each.path for each in libraries.loaded)}", _IMAGE)
    (library,) = libraries.loaded
    if any(path.startswith(RDMA) for path in inside.devices) and not library.transport:
        return Judged("fault", f"{library.path} has no RDMA transport", _IMAGE)
    return Judged("ok", f"{library.path}, in {libraries.ranks} ranks")


_IMAGE = "another image: [image] reference in cluster.toml, or strixd-cli image update"


def digest(digest: Digest, daemon: Daemon) -> Judged | None:
    """The head compares what each member's strixd says; a member that has not joined says nothing."""
    if daemon.status is None:
        return Judged("unknown", daemon.why, START)
    if daemon.status["role"] != "head":
        return None
    read, ray = f"{digest.own[:19] or 'no image'} here", daemon.resource("ray")
    why = str(ray["why"]) if ray else ""
    if "runs image" in why:
        return Judged("fault", why, "strixd-cli image update on every node, or copy the record: the digest must be one")
    absent = [str(each["name"]) for each in daemon.status["members"] if not each["joined"]]
    if absent or not digest.own:
        return Judged("unknown", f"{read}; {', '.join(absent) or 'this node'} does not say", "strixd-cli status there")
    return Judged("ok", f"{read} and on all members")


CHECKS = (
    Check("container", "container", runs, "the container of Ray runs", "the ranks live in it"),
    Check(
        "memlock",
        "container",
        memlock,
        "no limit on locked memory, seen inside",
        "below that RDMA fails, or falls back to TCP in silence",
    ),
    Check(
        "devices",
        "container",
        devices,
        "every device of cluster.toml that this host has can be opened inside",
        "a device that is there and closed is found by nobody but the rank that fails",
    ),
    Check("shared-memory", "container", shared_memory, "room in /dev/shm", "without it the raylet crashes"),
    Check(
        "rccl",
        "container",
        rccl,
        "a collective library that knows this GPU and RDMA",
        "another library than expected makes ranks hang or crash",
        doubt="ok",
    ),
    Check("image", "image", resource("image"), "the image is here", "nothing starts without it"),
    Check(
        "image-digest",
        "image",
        digest,
        "the same image on all nodes",
        "ranks of different images differ in silence",
        doubt="ok",
    ),
)
