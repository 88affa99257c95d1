"""Everything that can be said to strixd-cli, as data: parsed by parse.py, told by help.py, and one day turned into
shell completions and a man page. No logic here."""

from __future__ import annotations

from strixd.api.wire import ADDRESS
from strixd.cli.bench_words import BENCH
from strixd.cli.doctor_words import DOCTOR, REPORT
from strixd.cli.grammar import Command, Option, Word

PHASES = ("starting", "converging", "ready", "degraded", "drained", "paused", "stuck")
UNITS = ("daemon", "ray", "vllm")

SOCKET = Option("--socket", f"the control socket (or STRIXD_SOCKET; else {ADDRESS})", value="PATH")
HELP = Option("--help", "what this command does", short="h")
VERSION = Option("--version", "the versions of strixd-cli and of the daemon")
EVERYWHERE = (SOCKET, HELP)

_JSON = Option("--json", "as JSON, for programs")
_FILE = Word("FILE", "the file (else /etc/strixd/cluster.toml)", optional=True)

COMMANDS = (
    Command(
        "serve",
        "serve:serve",
        "serve a model, and tell how far it is until it answers",
        words=(Word("MODEL", "a model of the hub, or a folder below the model folder"),),
        rest="ARGUMENT",
        detail="The order is kept over reboots. The command ends when a first completion has been produced, or with "
        "the layer that is in the way and what to do. Ctrl-C only ends the command: the order stays. "
        "What follows -- goes to vllm serve as it is.",
        examples=("strixd-cli serve Qwen/Qwen3-235B-A22B-GPTQ-Int4", "strixd-cli serve tiny -- --max-model-len 4096"),
    ),
    Command(
        "stop",
        "order:stop",
        "take the order back: no model is served",
        detail="The container of Ray and the membership stay as they are.",
        examples=("strixd-cli stop",),
    ),
    Command(
        "drain",
        "serve:drain",
        "let what runs finish, and serve nothing until undrain",
        detail="The model stays ordered, over reboots too, and is not served: its server takes no new requests, those "
        "that run have [model] drain seconds (60) to end, then it is stopped. Ends when the server has. Until undrain "
        "serve is refused, so that nobody serves a cluster that somebody is working on. On the head.",
        examples=("strixd-cli drain",),
    ),
    Command(
        "undrain",
        "serve:undrain",
        "serve the ordered model again after drain",
        detail="Ends when it answers again, or with the layer that is in the way and what to do.",
        examples=("strixd-cli undrain",),
    ),
    Command(
        "restart",
        "serve:restart",
        "end the model's server or this node's Ray, and start it anew",
        words=(Word("WHAT", "which of them (else vllm)", choices=("ray", "vllm"), optional=True),),
        detail="vllm, on the head: requests that run are finished first, as by drain. ray, on any node: at once, and "
        "on the head the model ends with it. Ends when the model answers again or, where none is served, when Ray has "
        "its members. It counts as no incident on the node on which it is ordered.",
        examples=("strixd-cli restart", "strixd-cli restart ray"),
    ),
    Command(
        "incidents",
        "incidents:incidents",
        "when the model did not answer, for how long, and why",
        words=(Word("N", "so many incidents (else 10)", optional=True, number=True),),
        options=(_JSON,),
        detail="The newest first; one that still lasts is marked open. Below each the times from the first bad sign to "
        "the first completion.",
        examples=("strixd-cli incidents", "strixd-cli incidents 50 --json"),
    ),
    Command(
        "status",
        "look:status",
        "what is true here: node, phase, resources, members, model, last incident",
        options=(_JSON,),
        detail="As of the daemon's last pass; every fact says when it was seen.",
        examples=("strixd-cli status", "strixd-cli status --json | jq -r .phase"),
    ),
    Command(
        "plan",
        "look:plan",
        "what would change now, as steps; changes nothing",
        options=(Option("--rollback", "the steps back instead, in their order"), _JSON),
        detail="Reads cluster.toml and the host at this moment. Each step is shown with the step back.",
        examples=("strixd-cli plan", "strixd-cli plan --rollback"),
    ),
    Command(
        "apply",
        "change:apply",
        "read cluster.toml again, lift every hold, and make it so",
        detail="Kernel arguments, link and firewall are one change: it holds, or all of it is taken back. Tells each "
        "step, and ends after a pass over all resources; with status 1 when one of these settings was tried in vain. "
        "What undo has left alone is taken up again. Ctrl-C only ends the command.",
        examples=("sudoedit /etc/strixd/cluster.toml && strixd-cli apply",),
    ),
    Command(
        "history",
        "change:history",
        "what strixd changed in the settings of this host: when, for whom",
        words=(Word("N", "so many changes (else 10)", optional=True, number=True),),
        options=(_JSON,),
        detail="The newest first. A change is done, failed (all of it was taken back), undone (by strixd-cli undo), or "
        'left over (not all could be taken back: a person must look). "drift" stands for a setting that somebody else '
        "had changed.",
        examples=("strixd-cli history", "strixd-cli history 50 --json"),
    ),
    Command(
        "undo",
        "change:undo",
        "take back the newest change of settings that is done",
        options=(Option("--all", "one after the other, until none is left"),),
        detail="As a new change, which holds or is taken back as any other. Its settings are then left alone, over "
        "reboots too, until strixd-cli apply. strixd-cli history tells which change it will be. With --all this host's "
        "settings are as strixd found them, as far back as its history goes: before the package is erased.",
        examples=("strixd-cli undo", "strixd-cli undo --all"),
    ),
    DOCTOR,
    REPORT,
    Command(
        "watch",
        "follow:watch",
        "the status each time it changes",
        detail="On a terminal the screen of status, kept up to date; else one line per change. Ends with Ctrl-C.",
        examples=("strixd-cli watch",),
    ),
    Command(
        "metrics",
        "metrics:metrics",
        "what Prometheus is told, as OpenMetrics",
        detail="From /run/strixd/metrics.sock. Counters begin at zero with the daemon. Prometheus finds the same at "
        "the address that [metrics] listen in cluster.toml names, if it does.",
        examples=("strixd-cli metrics | grep incidents",),
    ),
    Command(
        "wait",
        "follow:wait",
        "wait until this node is in a phase",
        words=(Word("PHASE", "the phase to wait for", choices=PHASES),),
        options=(Option("--timeout", "give up after so many seconds", value="SECONDS", number=True),),
        detail="When time is up it names what is missing and ends with status 75.",
        examples=("strixd-cli wait ready --timeout 600",),
    ),
    BENCH,
    Command(
        "logs",
        "local:logs",
        "the journal of the daemon, of Ray and of vLLM",
        words=(Word("UNIT", "only this one", choices=UNITS, optional=True),),
        options=(
            Option("--follow", "go on with what comes", short="f"),
            Option("--lines", "so many lines (else 100)", value="N", short="n", number=True),
        ),
        examples=("strixd-cli logs vllm -f", "strixd-cli logs daemon -n 500"),
    ),
    Command(
        "init",
        "init:init",
        "write a first cluster.toml, by asking or from options; needs no daemon",
        options=(
            Option("--nodes", "host names, the head first, with commas between", value="NAMES"),
            Option("--cluster", "the name of the cluster (else halo)", value="NAME"),
            Option("--card", "this host's interface of the link (else the one that fits)", value="INTERFACE"),
            Option("--network", "of the link (else 192.168.100.0, as large as it must be)", value="NETWORK"),
            Option("--file", "where (else /etc/strixd/cluster.toml)", value="PATH"),
        ),
        detail="On a terminal it asks for what no option says, and tells which cards it finds. The card is named by "
        "its driver where that is enough, so that the file is right on every node. A file that is there stays.",
        examples=("sudo strixd-cli init", "sudo strixd-cli init --nodes halo1,halo2 --card enp194s0np0"),
    ),
    Command(
        "config check",
        "settings:check",
        "whether a cluster.toml can be used; needs no daemon",
        words=(_FILE,),
        detail="Every complaint comes at once, as FILE:LINE: KEY: what is wrong.",
        examples=("strixd-cli config check ./cluster.toml",),
    ),
    Command(
        "config show",
        "settings:show",
        "every setting with its effective value and where it came from; needs no daemon",
        words=(_FILE,),
        examples=("strixd-cli config show",),
    ),
    Command(
        "pause",
        "order:pause",
        "change nothing on this host until resume",
        detail="What runs goes on running, but nothing is restarted or put right. Survives reboots.",
        examples=("strixd-cli pause",),
    ),
    Command(
        "resume",
        "order:resume",
        "take the host in hand again after pause",
        examples=("strixd-cli resume",),
    ),
    Command(
        "shell",
        "local:shell",
        "a terminal in the toolbox container, where Ray runs",
        examples=("sudo strixd-cli shell",),
    ),
    Command(
        "image update",
        "order:image_update",
        "take the newest image of the configured reference",
        detail="Until then the digest recorded at the first pull is kept: a tag that floats is somebody else's change.",
        examples=("strixd-cli image update",),
    ),
    Command(
        "key new",
        "secret:key_new",
        "make the cluster key, with which the nodes' Ray know each other",
        options=(
            Option("--replace", "even when there is one already"),
            Option("--file", "where (else /etc/strixd/cluster.key)", value="PATH"),
        ),
        detail="The key is never shown. All nodes need the same one: copy the file.",
        examples=("sudo strixd-cli key new",),
    ),
    Command(
        "key import",
        "secret:key_import",
        "take the cluster key of another node",
        options=(
            Option("--replace", "even when there is another already"),
            Option("--file", "where (else /etc/strixd/cluster.key)", value="PATH"),
        ),
        detail="Read from standard input; a terminal does not show it. A node that was installed without the key waits "
        "for it, and goes on by itself.",
        examples=("ssh root@halo1 cat /etc/strixd/cluster.key | sudo strixd-cli key import",),
    ),
    Command(
        "token set",
        "secret:token_set",
        "keep a Hugging Face token, for models behind a licence",
        options=(Option("--file", "where (else /etc/strixd/hf-token)", value="PATH"),),
        detail="Read from standard input; a terminal does not show it.",
        examples=("sudo strixd-cli token set", "sudo strixd-cli token set < token.txt"),
    ),
    Command(
        "version",
        "look:version",
        "the versions of strixd-cli and of the daemon",
        examples=("strixd-cli version",),
    ),
    Command(
        "help",
        "help:help_command",
        "what there is, or what one command does",
        words=(Word("COMMAND", "the command", optional=True), Word("SUBCOMMAND", "its second word", optional=True)),
        examples=("strixd-cli help serve", "strixd-cli help config check"),
    ),
)

EXIT_STATUSES = {
    0: "done",
    1: "it was tried and failed, or the system said no; doctor: warnings",
    2: "the command or the request makes no sense; doctor: faults",
    3: "the ordered model cannot answer as things are (the order stays)",
    69: "strixd does not run or does not answer, or a service it needs is not there",
    75: "the time to wait is over",
    77: "not permitted",
    78: "cluster.toml cannot be used",
    130: "interrupted by Ctrl-C (an order that was given stays)",
    141: "nobody reads the output any more",
}
