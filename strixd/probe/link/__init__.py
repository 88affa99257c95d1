"""The link between two nodes, measured from both of its ends.

    python3 …/strixd/probe/link/__main__.py                          this end: a job, a JSON object in a line, on stdin
    python3 -m strixd.probe.link --answer ADDRESS PORT TOKEN          the other end, by hand

This end (here.py) listens on its own address of the fabric, on a port of the kernel's choice, for one connection at a
time. The other end (there.py) is a task of Ray's, pinned to that node, or started by hand; it calls back with the token
that it was given, does one thing after another as told over that connection, and ends when it closes, or when its time
is over. What measures is TCP by this Python alone, or iperf3 and perftest where both ends have them; each of these runs
under timeout(1), so that it ends by itself whatever becomes of us.

As all of the probe it stands alone: Python 3.10 or newer, its library, and Ray. Its code goes to the other end by
value, so that end needs none of it. Stdin is held open for as long as somebody wants the result: its end is the end.

Said on stdout, a JSON object a line: {"peer", "by_hand": the command}, {"peer", "what", …what came of it}, or
{"peer", "failed": why}.
"""
