"""The words of bench."""

from __future__ import annotations

from strixd.cli.grammar import Command, Option, Word

RUNGS = ("tcp", "rdma", "thunderbolt")

BENCH = Command(
    "bench",
    "bench:bench",
    "how fast the link or the model is, beside the last time",
    words=(Word("WHAT", "which of them (else link)", choices=("link", "model"), optional=True),),
    options=(
        Option("--rung", f"of the link only this one: {', '.join(RUNGS)}", value="RUNG", choices=RUNGS),
        Option("--force", "also while a model is served, which slows both"),
        Option("--json", "as JSON, for programs"),
    ),
    detail="link: latency and bandwidth to each peer, by TCP and, where there is RDMA, by perftest; half a minute for "
    "each. The other end is a task of Ray's; where a peer is no member, the command is told that starts it there by "
    "hand. model, on the head: time to first token, and tokens per second with 1, 4 and 16 streams, under a load that "
    "is always the same; it takes the turn of others. What is worse than the last time is said.",
    examples=("sudo strixd-cli bench", "sudo strixd-cli bench link --rung rdma", "sudo strixd-cli bench model --json"),
)
