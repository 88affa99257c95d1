"""The probe: the command of the Ray container. It starts Ray, and tells strixd who is in the cluster.

    python3 …/strixd/probe/__main__.py --socket PATH -- ray start --head --labels=strixd-node=NAME … --block

It runs with the image's Python and the image's own Ray, so this folder stands alone: Python 3.10 or newer, and no other
part of strixd. Two processes: the wrapper (PID 1, wrapper.py) never loads Ray; it waits until the head of a worker
listens, starts the command, reaps and forwards signals. The look (look.py) is Ray's client, and may crash or hang
without taking the model down. Once a second it tries to reach strixd's socket; connected, it sends a report at once
when one differs and at least every 10 s, and keeps strixd's record of this node in Ray's key-value store for as long as
strixd is there, with what it measures here itself (vitals.py).

Another program lies in link/: it measures the link, when a person asks for that.

Report, a JSON object a line: at, session (the cluster's), own_session (this raylet's), version (Ray's), error, members
(name, address, alive, gpus, record, age: seconds since the record was last seen to be renewed).
Record, text by name: what strixd gave, and
    ranks  the living processes of a model in this container
    cpu    seconds of CPU that this container has used so far, "" where the kernel does not say
    bytes  what the model folder and the caches take on the disk, "" until they were walked through once
A change of `cpu` and `bytes` alone is told with the next report and causes none; one of `ranks` is in the store and in
a report at once.
Order, a JSON object a line: {"record": {"key": "text", …}}.
Exit status: 64: RAY_AUTH_MODE=token and this image's Ray knows no tokens; 127: the command cannot be started; 128+N:
signal N was sent to the wrapper, or ended the command; otherwise the command's own.
"""
