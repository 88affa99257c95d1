"""Every kind of line has an id of its own and an explanation that ends in something to type."""

from __future__ import annotations

import re
from pathlib import Path

from strixd.messages import IDS, fields

CATALOG = (Path(__file__).parents[2] / "units/strixd.catalog").read_text()
ENTRIES = dict(re.findall(r"^-- ([0-9a-f]{32})\n(.*?)(?=\n-- |\Z)", CATALOG, re.M | re.S))
KNOWN = {"STRIXD_RESOURCE", "STRIXD_STEP", "STRIXD_PASS", "STRIXD_INCIDENT", "STRIXD_CODE"}


def test_ids_are_version_4_uuids_and_distinct() -> None:
    assert len(set(IDS.values())) == len(IDS)
    assert all(re.fullmatch(r"[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}", number) for number in IDS.values())


def test_catalog_and_code_agree() -> None:
    assert set(ENTRIES) == set(IDS.values())


def test_every_entry_explains_and_says_what_to_type() -> None:
    for entry in ENTRIES.values():
        head, _, body = entry.partition("\n\n")
        assert re.match(r"Subject: \S.*\nDefined-By: strixd$", head)
        assert re.search(r"^\S.*:  +(strixd-cli|journalctl|systemctl) ", body, re.M)


def test_only_known_fields_are_put_in() -> None:
    assert set(re.findall(r"@(\w+)@", CATALOG)) <= KNOWN
    assert set(re.findall(r"MESSAGE_ID=(\w+)", CATALOG)) <= set(IDS.values())


def test_fields_for_a_line() -> None:
    assert fields("HELD", resource="ray") == {"MESSAGE_ID": IDS["HELD"], "STRIXD_RESOURCE": "ray"}
