"""`python3 -m strixd.evidence [REASON]`: save evidence; the work of strixd-evidence.service, ten seconds at most.

Without a reason the one in /run/strixd/evidence-request.json is taken, once. The folder is told in the journal.
"""

from __future__ import annotations

import logging
import socket
import sys
import time
from pathlib import Path

from strixd import __version__
from strixd.errors import StrixdError
from strixd.evidence import bundle
from strixd.evidence.redact import Redaction
from strixd.evidence.sources import all_sources, secrets_in_time
from strixd.host.files import read_text, remove_file
from strixd.host.journal import setup_logging
from strixd.messages import fields
from strixd.resources.image import loads
from strixd.workload import EVIDENCE_REQUEST

log = logging.getLogger("strixd.evidence")


def main() -> int:
    setup_logging(debug=False, identifier="strixd-evidence")
    try:
        unit, why = _asked()
        folder = bundle.make(unit, time.time())
        troubles = _save(folder, unit, why)
    except (OSError, StrixdError) as error:
        log.warning("Cannot save evidence: %s", error)
        return 1
    log.info(
        "Evidence about %s (%s) is in %s", unit or "this node", why, folder, extra=fields("EVIDENCE", evidence=folder)
    )
    for trouble in troubles:
        log.info("%s", trouble)
    return 0


def _asked() -> tuple[str, str]:
    """The unit that is about to be restarted, and why."""
    if sys.argv[1:]:
        return "", " ".join(sys.argv[1:])
    request = loads(read_text(EVIDENCE_REQUEST))
    remove_file(EVIDENCE_REQUEST)
    return str(request.get("unit", "")), str(request.get("why", "")) or "asked for by hand"


def _save(folder: Path, unit: str, why: str) -> list[str]:
    """The sources that failed, a line each."""
    known, complete = secrets_in_time()
    redaction = Redaction(known)
    told = bundle.collect(folder, all_sources(), redaction)
    head = (
        f"unit: {unit or '-'}",
        f"why: {why}",
        f"host: {socket.gethostname()}, boot {(read_text('/proc/sys/kernel/random/boot_id') or '').strip()}",
        f"at: {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}, strixd {__version__}",
        "masked: prompts, answers, tokens and keys" + ("" if complete else "; environments could not be read in time"),
        "",
    )
    lines = [redaction.text(line) for line in (*head, *told)]
    (folder / "summary.txt").write_text("\n".join(lines) + "\n")
    return [line for line in told if ": failed: " in line or line.endswith("is kept")]


if __name__ == "__main__":
    sys.exit(main())
