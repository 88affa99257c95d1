"""What of a new node only a person can try, as data: told at the end of `doctor --first-install`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Trial:
    """`command`: what to type; `expected`: what is then to be seen."""

    do: str
    command: str
    expected: str


TRIALS = (
    Trial(
        "On the head, while nothing is served, measure the link.",
        "strixd-cli stop; strixd-cli bench link",
        "about 50 Gb/s and 5 µs over RDMA with an E810 in an x4 slot; each figure stands beside the guide's",
    ),
    Trial(
        "On the head, serve a model, and measure that.",
        "strixd-cli serve MODEL && strixd-cli bench model",
        "a first completion; then tokens per second beside the guide's figures",
    ),
    Trial(
        "Pull the cable between the nodes for ten seconds, and put it back.",
        "strixd-cli watch",
        "the missing carrier is named, and the phase is ready again, by itself",
    ),
    Trial(
        "Cut a node's power while the model answers, and switch it on again.",
        "strixd-cli wait ready --timeout 1800 && strixd-cli incidents",
        "ready without another command; the incident names the node and what took how long",
    ),
    Trial(
        "From a machine that is not on the link between the nodes, knock at Ray's port.",
        "nc -zvw3 THIS-HOST 6379",
        "refused; and SSH to this host still works",
    ),
    Trial(
        "Let Fedora write its boot menu anew, and look again.",
        "grub2-mkconfig -o /boot/grub2/grub.cfg && strixd-cli doctor --first-install",
        "arguments and boot-tool are ok as before",
    ),
    Trial(
        "At the next kernel that Fedora brings, look before the reboot, and after it.",
        "dnf upgrade kernel && strixd-cli doctor --first-install",
        "boot-tool names the new kernel; after systemctl reboot, arguments and effective are ok",
    ),
    Trial(
        "Install the package anew, or a newer one, while the model answers.",
        "dnf reinstall ./strixd-[0-9]*.noarch.rpm && strixd-cli status",
        "strixd is another process, the model's has run on, and no incident is there",
    ),
    Trial(
        "Take back what was changed, look, and apply it again.",
        "strixd-cli undo --all && strixd-cli history && strixd-cli apply",
        "every change is undone; then all is as before, after a reboot for the kernel arguments",
    ),
    Trial(
        "Send this to whoever works on strixd.",
        "strixd-cli report",
        "an archive with all of the above, without secrets, names and addresses",
    ),
)
