"""The words of doctor and report."""

from __future__ import annotations

from strixd.cli.grammar import Command, Option, Word

DOCTOR = Command(
    "doctor",
    "doctor:doctor",
    "what keeps this host from serving, from the BIOS to the model",
    options=(
        Option("--json", "all findings, as JSON, for programs"),
        Option("--fix", "let strixd apply its settings first, then look"),
        Option("--first-install", "look at what the installation left, too, and tell what to try by hand"),
    ),
    detail="Needs no running strixd, and changes nothing. What is wrong is shown with what was read, what it "
    "should be, why it matters and what mends it; the first thing that explains others is marked as their cause. "
    "As root it sees most. --fix does what strixd-cli apply does. Ends with status 1 for warnings and for what "
    "could not be read, with 2 for faults. --first-install is for the first minutes of a new node: what is well is "
    "shown with what was read, too, and then come the steps that only a person can try.",
    examples=(
        "sudo strixd-cli doctor",
        "sudo strixd-cli doctor --fix",
        "sudo strixd-cli doctor --json",
        "sudo strixd-cli doctor --first-install",
    ),
)
REPORT = Command(
    "report",
    "doctor:report",
    "one archive for a bug report, without secrets and addresses",
    words=(Word("FILE", "where (else ./strixd-report-TIME.tar.gz); none may be there", optional=True),),
    detail="doctor, status, incidents, effective settings, versions, journals and links. Keys, tokens, prompts "
    "and answers are masked; addresses, names and serial numbers are replaced, equal ones alike. It tells what is "
    "in it before it writes it. Look through it all the same before you give it away.",
    examples=("sudo strixd-cli report", "sudo strixd-cli report /tmp/report.tar.gz"),
)
