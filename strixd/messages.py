"""The kinds of lines in the journal, by which they are found and explained (`journalctl -x`, units/strixd.catalog)."""

from __future__ import annotations

from typing import Final

IDS: Final = {
    "STARTED": "a86b34b063114166958245b399215c5f",
    "STOPPED": "55a46c354ce0426ba001afeaf7a488de",
    "CONFIG_REFUSED": "d5d9afbfae354018b01460cc770d8b0a",
    "ORDER": "551f745bcd564a8ea222d9d1a0c18914",
    "STEP_TAKEN": "33d9165169ea4807b6e73c1f375228ba",
    "ROLLED_BACK": "9f2a3a59abf74c7bb6648977a536e394",
    "PHASE": "e6d4235e48be4556b511f369097e7542",
    "CONDITION": "506048b8e72245e8b9de2a3a28202969",
    "BLOCKED": "837d59eb68fd4be49351f16eeea4db1d",
    "HELD": "6cc67a66ef4b42d1b27f2597bf4cb1f4",
    "STUCK": "f033e97669dc47e9bcb9bd374a2acc9d",
    "REBOOT_NEEDED": "2fd17d901c7a4ac9bb49393881d3cea1",
    "DRIFT": "83a8c551c5f445d5aa6f7e780b04186e",
    "INEFFECTIVE": "8e12d71da2414777ac46475916630268",
    "REBOOTING": "5138f82efab3424cbc1249025bad3b23",
    "EVIDENCE": "33efce307a6c412c86d7784469af9c0c",
    "INCIDENT_BEGAN": "d8468307135c461ca402c5a24d7ff5f8",
    "INCIDENT_ENDED": "24280f77a3f84c0c80320a8b7dc3a12f",
}


def fields(kind: str, **known: object) -> dict[str, str]:
    """For logging's `extra`: the message id, and STRIXD_RESOURCE and the like for what is known."""
    return {"MESSAGE_ID": IDS[kind]} | {f"STRIXD_{name.upper()}": str(value) for name, value in known.items()}
