"""Whether a medium holds all that a node is installed from: what packages require, and who provides it."""

from __future__ import annotations

import lzma
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from strixd import __version__
from strixd.errors import Rejected
from strixd.media import repodata
from strixd.media.capability import Capability, Package, meets, order, read
from strixd.media.supply import WANTED, missing, supply
from tests.media import pieces
from tests.media.lab import Parts, cluster, rendered
from tests.media.lab import read as handler
from tests.media.pieces import run

NEWER = ["1.0~rc1", "1.0", "1.0^git1", "1.0a", "1.0.1", "1.5", "1.10", "2", "10", "10.1~~", "10.1"]


def test_versions_are_ordered_as_rpm_orders_them() -> None:
    compared = [(one, other) for one in NEWER for other in NEWER]
    script = "".join(f'print(rpm.vercmp("{one}","{other}").." ")' for one, other in compared)
    said = [int(word) for word in run("rpm", "--eval", f"%{{lua:{script}}}").split()]
    mine = [(order(one) > order(other)) - (order(one) < order(other)) for one, other in compared]
    assert mine == said
    assert all(order(older) < order(newer) for older, newer in pairwise(NEWER))


def one(text: str) -> Capability:
    """ "a >= 1" as a rich dependency says it."""
    found = read(Capability(f"({text})"))
    assert not isinstance(found, Capability)
    assert isinstance(found.operands[0], Capability)
    return found.operands[0]


@pytest.mark.parametrize(
    ("provided", "required", "met"),
    [
        ("a", "a", True),
        ("a", "b", False),
        ("a = 1", "a", True),
        ("a", "a >= 1", False),
        ("python(abi) = 3.14", "python(abi) = 3.14", True),
        ("python(abi) = 3.13", "python(abi) = 3.14", False),
        ("podman = 5:5.6.0-1.fc43", "podman >= 5:5.4", True),
        ("podman = 5.6.0-1.fc43", "podman >= 5:5.4", False),
        ("a = 1:1", "a < 2", False),
        ("a = 1.2-3", "a = 1.2", True),
        ("a = 1.2-3", "a = 1.2-4", False),
        ("a = 1.2-3", "a < 1.2", False),
        ("a = 1.2-3", "a <= 1.2", True),
        ("a = 1.9", "a > 1.10", False),
        ("a >= 3", "a < 2", False),
        ("a <= 3", "a < 2", True),
        ("a > 1", "a <= 2", True),
    ],
)
def test_who_meets_what(provided: str, required: str, met: bool) -> None:
    assert meets(one(provided), one(required)) == met


def package(name: str, *requires: str, provides: tuple[str, ...] = ()) -> Package:
    needs = tuple(Capability(each) if each.startswith("(") else one(each) for each in requires)
    return Package(name, "1", (one(f"{name} = 1"), *map(one, provides)), needs)


STRIXD = package("strixd", "python(abi) = 3.14", "rpmlib(X) <= 4", "/bin/sh", "lib(podman) >= 5")
DVD = (
    package("python3", provides=("python(abi) = 3.14", "/bin/sh")),
    package("broken", "what-nobody-has"),
)


@pytest.mark.parametrize(
    ("own", "dvd", "lacks"),
    [
        ((STRIXD,), DVD, ["lib(podman) >= 5"]),
        ((STRIXD,), (), ["/bin/sh", "lib(podman) >= 5", "python(abi) = 3.14"]),
        ((), DVD, ["strixd"]),
        ((STRIXD, package("p", provides=("lib(podman) = 5.6",))), DVD, []),
        ((STRIXD, package("p", provides=("lib(podman) = 4.9",))), DVD, ["lib(podman) >= 5"]),
        ((STRIXD, package("p", "q", provides=("lib(podman) = 5.6",)), package("q", "r")), DVD, ["r"]),
        ((STRIXD, package("p", "strixd", provides=("lib(podman) = 5.6",))), DVD, []),
        ((STRIXD, package("p", provides=("lib(podman) = 5.6",)), package("strixd-media", "xorriso")), DVD, []),
        ((package("strixd", "(lib(a) >= 2 with lib(a) < 3)"), package("a", provides=("lib(a) = 2.5",))), (), []),
        ((package("strixd", "(a(x)(64bit) or (b and c))"), package("b"), package("c", "d")), (), ["d"]),
        ((package("strixd", "(a or b)"),), (), ["(a or b)"]),
        ((package("strixd", "(a if b)"),), (), []),
        ((package("strixd", "(a if b)"), package("b")), (), ["(a if b)"]),
        ((package("strixd", "(a if b else c)"),), (), ["(a if b else c)"]),
        ((package("strixd", "(a without b)"), package("a")), (), []),
        ((package("strixd", "(a unless b)"),), (), ["(a unless b)"]),
    ],
)
def test_what_is_missing(own: tuple[Package, ...], dvd: tuple[Package, ...], lacks: list[str]) -> None:
    assert list(missing(["strixd"], own, dvd)) == lacks


def test_it_is_told_what_the_nodes_need_the_internet_for() -> None:
    rest = tuple(map(package, WANTED))
    assert "from https://m" in supply("https://m", rest, rest).words
    assert supply("", rest, ()) == supply("", (), ())
    assert "Fedora's packages come from its mirrors" in supply("", rest, ()).words
    assert supply("", (), rest).complete
    found = supply("", (STRIXD,), (*DVD, *(each for each in rest if each.name != "strixd")))
    assert not found.complete
    assert found.words.endswith("this medium has no lib(podman) >= 5.")
    assert found.hint.endswith("dnf download --resolve --alldeps 'lib(podman) >= 5'")


def test_nothing_is_forgotten_that_the_kickstart_installs() -> None:
    asked = handler(rendered(cluster()), "F44").handler.packages
    assert asked.groupList[0].name == "core"
    assert sorted(asked.packageList) == sorted(WANTED)


@pytest.fixture(scope="session")
def rpms(parts: Parts) -> Path:
    """Those of strixd as they ask for more, and all else that the kickstart names."""
    folder = parts.folder / "asking"
    for name in WANTED:
        ours = name.startswith("strixd")
        more = ("Requires: (lib(podman) >= 5 with lib(podman) < 6)",) if name == "strixd" else ()
        pieces.rpm(folder if ours else parts.folder / "of-fedora", name, __version__, *more)
    pieces.rpm(folder, "python3-strixd", __version__)
    return folder


@pytest.mark.parametrize("form", ["gz", "xz", "zst", "plain"])
def test_the_list_of_packages_is_read_in_each_of_its_forms(rpms: Path, tmp_path: Path, form: str) -> None:
    run("createrepo_c", "--no-database", "--general-compress-type=xz", "-o", tmp_path, rpms)
    listing = tmp_path / repodata.primary(tmp_path)
    plain = tmp_path / "repodata/primary.xml"
    plain.write_bytes(lzma.decompress(listing.read_bytes()))
    listing.unlink()
    made = plain if form == "plain" else plain.with_suffix(f".xml.{form}")
    if form != "plain":
        packer = {"gz": "gzip", "xz": "xz", "zst": "zstd"}[form]
        made.write_bytes(subprocess.run([packer, "-c", plain], capture_output=True, check=True).stdout)
    index = tmp_path / repodata.INDEX
    index.write_text(index.read_text().replace(listing.name, made.name))
    found = {each.name: each for each in repodata.packages(tmp_path)}
    assert (sorted(found), found["strixd"].version) == (["python3-strixd", "strixd", "strixd-selinux"], __version__)
    assert Capability("(lib(podman) >= 5 with lib(podman) < 6)") in found["strixd"].requires
    assert Capability("strixd", "EQ", "0", __version__, "1") in found["strixd"].provides


@pytest.mark.parametrize("damage", ["no-index", "no-xml", "no-listing", "cut-off", "another-form"])
def test_a_list_that_cannot_be_read_is_named(rpms: Path, tmp_path: Path, damage: str) -> None:
    run("createrepo_c", "--no-database", "--general-compress-type=gz", "-o", tmp_path, rpms)
    listing, index = tmp_path / repodata.primary(tmp_path), tmp_path / repodata.INDEX
    if damage == "no-index":
        index.unlink()
    elif damage == "no-xml":
        index.write_text("<repomd")
    elif damage == "no-listing":
        index.write_text("<repomd/>")
    elif damage == "cut-off":
        listing.write_bytes(listing.read_bytes()[:50])
    else:
        index.write_text(index.read_text().replace("primary.xml.gz", "primary.xml.new"))
    with pytest.raises(Rejected, match=f"^Cannot read {tmp_path}/repodata/"):
        repodata.packages(tmp_path)


@pytest.mark.parametrize("with_it", [False, True], ids=["without", "with"])
def test_a_dvd_for_nodes_without_internet(parts: Parts, rpms: Path, out: Path, quick: str, with_it: bool) -> None:
    if with_it:
        pieces.rpm(rpms, "python3-podman", "5.6.0", "Provides: lib(podman) = 5.6.0")
    iso = pieces.fedora(parts.folder / f"dvd-{with_it}", packages=parts.folder / "of-fedora")
    done = parts.build(out, "--rpms", rpms, "--iso", iso, PATH=quick)
    assert done.returncode == 0, done.stderr
    assert ("The nodes need no internet" in done.stdout) == with_it
    assert ("no (lib(podman) >= 5 with lib(podman) < 6)" in done.stdout) == (not with_it)
    listed = run("xorriso", "-indev", out, "-find", "/strixd", "-maxdepth", "1")
    assert ("'/strixd/complete'" in listed) == with_it
