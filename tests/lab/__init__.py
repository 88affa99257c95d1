"""The lab: real hosts on one machine, for tests, demonstrations and experiments.

Each host is a Debian root booted by systemd-nspawn with systemd as PID 1 in a network namespace of its own; the hosts
are joined by a fabric cable and by a management network with a container registry on it. Nothing here is product code,
and nothing in the product knows that it runs in a lab.
"""
