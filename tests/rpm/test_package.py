"""What is in the packages, what they ask for, and that they are the same each time."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from strixd import __version__
from tests.lab.install import SYSTEM_PYTHON, build_packages, other_version
from tests.lab.layout import PROJECT
from tests.lab.shell import run
from tests.rpm.stage import Stage

pytestmark = pytest.mark.lab

ITSELF = f"= {__version__}-1.fc43"
SITE = "/usr/lib/python3.14/site-packages/"
REQUIRES = {
    "strixd": {
        "/bin/sh",
        "/usr/bin/python3",
        "NetworkManager >= 1:1.50",
        "grubby",
        "podman >= 5:5.4",
        "python(abi) = 3.14",
        f"python3-strixd {ITSELF}",
        "python3.14dist(podman) >= 5.4",
        "python3.14dist(pydbus) >= 0.6",
        "python3.14dist(pygobject) >= 3.50",
        "python3.14dist(pyroute2) >= 0.7.7",
        "python3.14dist(sdnotify) >= 0.3.2",
        "systemd",
    },
    "python3-strixd": {"python(abi) = 3.14"},
    "strixd-media": {
        "/usr/bin/python3",
        "createrepo_c",
        "dosfstools",
        "isomd5sum",
        "mtools",
        "pykickstart",
        "python(abi) = 3.14",
        f"python3-strixd {ITSELF}",
        "xorriso",
        "zstd",
    },
    "strixd-selinux": {
        "/bin/sh",
        "container-selinux",
        "libselinux-utils",
        "policycoreutils",
        "selinux-policy",
        "selinux-policy-base",
    },
}
PROVIDES = {
    "strixd": {
        f"strixd {ITSELF}",
        "python3.14dist(strixd) = 0.1",
        "python3dist(strixd) = 0.1",
        "group(strixd) = ZyBzdHJpeGQgLQAA",  # "g strixd -", the line of sysusers.d
        "group(strixd-observe) = ZyBzdHJpeGQtb2JzZXJ2ZSAt",
    },
    "python3-strixd": {f"python3-strixd {ITSELF}"},
    "strixd-media": {f"strixd-media {ITSELF}"},
    "strixd-selinux": {f"strixd-selinux {ITSELF}"},
}
RECOMMENDS = {
    *("ethtool", "firewalld", "libibverbs-utils", "perftest", "rdma-core"),
    f"(strixd-selinux {ITSELF} if selinux-policy-targeted)",
}


def told(packages: Path, name: str, *question: str) -> set[str]:
    lines = run(["rpm", "-qp", *question, of(packages, name)]).stdout.splitlines()
    return {line for line in lines if line and not line.startswith("rpmlib(")}


def of(packages: Path, name: str) -> Path:
    return next(packages.glob(f"{name}-{__version__}-*.noarch.rpm"))


def test_the_same_source_gives_the_same_bytes(packages: Path) -> None:
    again = build_packages()
    names = sorted(file.name for file in packages.iterdir())
    assert len(names) == 5
    assert [name for name in names if (packages / name).read_bytes() != (again / name).read_bytes()] == []
    assert names == sorted(file.name for file in again.iterdir())
    shutil.rmtree(again)


def test_dist_holds_one_version_and_what_others_put_there(tmp_path: Path) -> None:
    """As strixd-media wants a folder. The checkout is another one, whose dist/ nobody misses."""
    project = other_version("0.0.2", tmp_path / "source")
    others = {"other-0.0.1-1.fc43.noarch.rpm", "strixd-tools-0.0.1-1.fc43.noarch.rpm", "strixd.rpm", "notes-0.0.1-1"}
    ours = {f"{name}-0.0.1-1.fc43.noarch.rpm" for name in REQUIRES} | {"strixd-0.0.1-1.fc43.src.rpm"}
    (project / "dist").mkdir()
    for name in others | ours:
        (project / "dist" / name).touch()
    run([SYSTEM_PYTHON, project / "packaging/build.py"], timeout=300)
    assert {file.name for file in (project / "dist").iterdir()} == others | {
        name.replace("0.0.1", "0.0.2") for name in ours
    }


@pytest.mark.parametrize("name", REQUIRES)
def test_they_ask_for_what_fedora_has(packages: Path, name: str) -> None:
    assert told(packages, name, "--requires") == REQUIRES[name]
    assert told(packages, name, "--provides") == PROVIDES[name]
    assert told(packages, name, "--recommends") == (RECOMMENDS if name == "strixd" else set())


def test_what_the_policy_is_loaded_into_and_by_is_there_before(packages: Path) -> None:
    """rpm breaks a circle of packages at what is merely required: that may come after %post has loaded the module."""
    asked = told(packages, "strixd-selinux", "--qf", "[%{REQUIRENAME} %{REQUIREFLAGS:deptype}\n]")
    before = {name for name, kinds in map(str.split, asked) if "post" in kinds.split(",")}
    assert before >= {"container-selinux", "selinux-policy-base", "policycoreutils", "libselinux-utils"}


def test_every_module_is_in_one_package(packages: Path) -> None:
    ours = {str(file.relative_to(PROJECT)) for file in (PROJECT / "strixd").rglob("*.py")}
    shipped = [line.removeprefix(SITE) for name in REQUIRES for line in told(packages, name, "-l") if SITE in line]
    assert sorted(line for line in shipped if line.endswith(".py")) == sorted(ours)


def test_what_the_manuals_say_is_installed_is(packages: Path) -> None:
    """The interface for programs, the example, the templates: each under the name that a person reads."""
    texts = [file.read_text() for file in (PROJECT / "packaging").glob("*.[158]")]
    named = {name for text in texts for name in re.findall(r"^\.(?:It )?Pa (/usr/\S+)", text, re.M)}
    assert "/usr/share/varlink/io.strixd.varlink" in named
    assert named - {line for name in REQUIRES for line in told(packages, name, "-l")} == set()


ALONE = {
    ("python3-strixd",): "import strixd.config",
    ("python3-strixd", "strixd-media"): "import strixd.media.__main__",
}


@pytest.mark.parametrize("names", ALONE, ids=" ".join)
def test_it_stands_without_the_daemon(packages: Path, tmp_path: Path, names: tuple[str, ...]) -> None:
    """All that it imports is in these packages. (The program ends at once: it was told nothing to do.)"""
    for line in (line for name in names for line in told(packages, name, "-l") if line.endswith(".py")):
        file = line.removeprefix(SITE)
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_bytes((PROJECT / file).read_bytes())
    ask = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {ALONE[names]}"
    done = subprocess.run([sys.executable, "-I", "-c", ask], capture_output=True, text=True, check=False)
    assert "Error" not in done.stderr.replace("strixd-media:", "")
    assert done.returncode == (2 if "strixd-media" in names else 0)


def test_the_policy_module_allows_what_is_written_and_no_more(packages: Path, fedora: Stage) -> None:
    """Read by the program with which SELinux's own tools read it."""
    place = fedora.put("policy", [of(packages, "strixd-selinux")])
    module = "usr/share/selinux/packages/targeted/strixd.pp"
    script = f"cd {place}; rpm2archive -n - <*.rpm | tar x; bunzip2 {module}.bz2; /usr/libexec/selinux/hll/pp {module}"
    rules = re.findall(r"\(allow (.*)\)", fedora.sh(script))
    assert rules == [
        "container_t infiniband_device_t (chr_file (append getattr ioctl lock map open read write))",
        "container_t hsa_device_t (chr_file (map))",
    ]


def test_the_linter_has_no_complaint(packages: Path, fedora: Stage) -> None:
    place = fedora.put("lint", [*packages.iterdir(), *(PROJECT / "packaging").glob("strixd.*")])
    done = fedora.attempt(
        "bash", "-c", f"cd {place} && rpmlint --strict --rpmlintrc strixd.rpmlintrc *.rpm strixd.spec"
    )
    assert done.ok, done.stdout
    assert "unused-rpmlintrc-filter" not in done.stdout


def test_every_filter_of_the_linter_has_a_reason() -> None:
    text = (PROJECT / "packaging/strixd.rpmlintrc").read_text()
    groups = re.split(r"^(?=# )", text.partition("\n\n")[2], flags=re.M)
    assert all(re.match(r"# \S.*\.\n(addFilter\(.*\)\n)+", group) for group in groups if group)
