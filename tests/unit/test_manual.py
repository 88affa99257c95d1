"""The manual and the example against the product itself: no key, unit or version that the other does not know."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from strixd import __version__, config
from strixd.decode import leaves

ROOT = Path(__file__).parents[2]
FULL = config.read(ROOT / "tests/cases/config/full.toml").config
MANUAL = (ROOT / "packaging/cluster.toml.5").read_text().replace("\\(dq", '"')
REQUIRED = {"name", "role", "address"}


def _sections(text: str) -> dict[str, set[str]]:
    """Section: its keys, as `key = default`, or `key` where it is required."""
    parts = re.findall(r"^\.Ss (\w+)\n(.*?)(?=^\.S[sh] )", text, re.M | re.S)
    return {name: set(re.findall(r"^\.It Ic (.*)$", body, re.M)) for name, body in parts}


def _schema() -> dict[str, set[str]]:
    """The same of the schema: of the nodes the last one, which gives no more than it must."""
    found: dict[str, set[str]] = {}
    for path, value in leaves(FULL):
        section, key = str(path[0]), str(path[-1])
        default = "" if section == "node" and key not in (*REQUIRED, "gpus") else value
        written = key if key in REQUIRED else f"{key} = {_toml(default)}"
        found.setdefault(section, set()).add(written)
    return found


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value)


def test_the_manual_knows_the_keys_and_their_defaults() -> None:
    assert _sections(MANUAL) == _schema()


def test_the_manual_knows_the_units() -> None:
    text = (ROOT / "packaging/strixd.8").read_text()
    units = {file.name for file in (ROOT / "units").iterdir() if file.suffix in (".service", ".socket", ".slice")}
    assert units <= set(re.findall(r"strixd[\w-]*\.(?:service|socket|slice)", text))


def test_the_example_can_be_used_as_it_is() -> None:
    example = config.read(ROOT / "packaging/cluster.toml").config
    assert [node.name for node in example.nodes] == ["halo1", "halo2"]


def test_there_is_one_version() -> None:
    spec = (ROOT / "packaging/strixd.spec").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    newest = re.search(r"^%changelog\n\* .* - (\S+)$", spec, re.M)
    assert newest
    release = re.search(r"^Release:\s+(\d+)", spec, re.M)
    assert release
    assert re.findall(r"^Version:\s+(\S+)$", spec, re.M) == [project["version"]] == [__version__]
    assert newest[1] == f"{__version__}-{release[1]}"


def test_the_package_asks_for_the_modules_that_it_imports() -> None:
    """Each of the project's dependencies is one of Fedora's, at a version that it has (tests/rpm solves it)."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {re.split("[><=]", each)[0].lower() for each in project["dependencies"]}
    stub = (ROOT / "tests/rpm/files/fedora.spec").read_text()
    assert names == set(re.findall(r"python3\.14dist\((\w+)\)", stub))
