"""What the installer wrote down with a secret in it is found wherever it leaves things, and removed; nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from strixd import leavings

SECRET = "5e" * 32
LEFT = [
    *("root/anaconda-ks.cfg", "root/original-ks.cfg", "var/log/anaconda/journal.log", "var/log/anaconda/dnf/a b.log"),
    *("var/log/strixd-bring.log", "var/log/strixd-settle.log"),
]


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """As after an installation: the secrets, and all that is left, without a word of them."""
    for name in LEFT:
        put(tmp_path, name, "nothing to see\n")
    put(tmp_path, "etc/strixd/cluster.key", f"{SECRET}\n")
    put(tmp_path, "etc/strixd/hf-token", "hf_abcdefghijklmnopqrstuvwxyz\n")
    put(tmp_path, "etc/strixd/cluster.toml", "[cluster]\n")
    return tmp_path


def put(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def names(root: Path) -> set[str]:
    return {str(each.relative_to(root)) for each in root.rglob("*") if not each.is_dir()}


@pytest.mark.parametrize("secret", [SECRET, "hf_abcdefghijklmnopqrstuvwxyz"], ids=["key", "token"])
@pytest.mark.parametrize("name", LEFT)
def test_a_file_with_a_secret_goes(host: Path, name: str, secret: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = names(host)
    put(host, name, f"cat > key <<< {secret}; more\n")
    assert leavings.look(host).read == len(LEFT)
    assert leavings.main(host) == 0
    assert before - names(host) == {name}
    said = capsys.readouterr().out
    assert f"removed /{name}, " in said
    assert secret not in said
    assert leavings.look(host).secret == ()


@pytest.mark.parametrize("key", [None, "", "nothing\n"], ids=["no-key", "empty", "short"])
def test_without_a_secret_nothing_is_removed(host: Path, key: str | None) -> None:
    """What is no key, but stands where one should be, is perhaps a word of any log."""
    for name in ("cluster.key", "hf-token"):
        (host / "etc/strixd" / name).unlink()
    if key is not None:
        put(host, "etc/strixd/cluster.key", key)
    before = names(host)
    assert leavings.main(host) == 0
    assert names(host) == before


def test_only_what_the_installer_left_is_removed(host: Path) -> None:
    put(host, "srv/other", SECRET)
    (host / "var/log/anaconda/elsewhere").symlink_to(host / "srv")
    before = names(host)
    assert leavings.main(host) == 0
    assert names(host) == before


def test_a_host_that_was_installed_by_hand(tmp_path: Path) -> None:
    assert leavings.look(tmp_path) == leavings.Leavings(0, ())
