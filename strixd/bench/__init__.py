"""`strixd-cli bench`: how fast the link and the model are, beside the last time and the guide's figures.

A program of its own, run by root; nothing of the daemon imports it. What measures the link runs in the Ray container
(strixd/probe/link) and is driven over its stdin and stdout; the model is asked over its HTTP API. What thinks (plan,
readings, history, load, table) does no I/O.
"""
