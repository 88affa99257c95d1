"""What keeps this host from serving, check by check, also without a running daemon; `python3 -m strixd.doctor`.

A check is data plus a pure function of facts (checks/). Facts are read by readers (read/), each bounded in time, all at
once. Nothing here changes the host.
"""
