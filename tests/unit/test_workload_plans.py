"""What Ray's and vLLM's resources make of what is seen: tables of observations and the plan that must follow."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from strixd.fabric import Fabric, Pick
from strixd.occupied import AGAIN, Seat, conflicts, who
from strixd.plan import Condition, Plan, Step
from strixd.ports import Answer, Card, Holder, Link, Member, Progress, RayReport, Unit
from strixd.quadlet import Container, render
from strixd.resources import drain, image, leftovers, members, ray, vllm
from strixd.resources.publish import Publish
from strixd.sim import World, simulated_host
from strixd.sim.world import VLLM
from strixd.workload import Gather, Start, Stop, WriteUnit

HEAD = members.Peer("halo1", "head", "10.0.0.1", 1)
WORKER = members.Peer("halo2", "worker", "10.0.0.2", 1)
KEY = "/etc/strixd/cluster.key"
PICK = Pick(Link("eth1", "02:00:00:00:00:01", carrier=True))
PRESENT = image.Report(reference="example.org/i:1", state="present", digest="sha256:aa", id="bb", boot="b1")
CARD = Card("eth1", carrier=True)
LINK = {"rdma": "no RDMA device is bound to eth1", "rung": "tcp"}
RECORD = {"boot": "b1", "digest": "sha256:aa", "settings": "s", "version": "1", **LINK}


def wanted(node: members.Peer = HEAD) -> ray.Desired:
    return ray.Desired(
        node=node,
        head=HEAD,
        port=6379,
        peers=(HEAD, WORKER),
        fabric=Fabric(interface="eth1"),
        management=(),
        container=Container(ray.NAME, "Ray", "", ("ray",)),
        reference="example.org/i:1",
        key=KEY,
        settings="s",
        version="1",
        retry_after=0.0,
    )


def member(peer: members.Peer, **changes: object) -> Member:
    return replace(Member(peer.name, peer.address, alive=True, gpus=1, record=RECORD), **changes)  # type: ignore[arg-type]


def report(*members: Member, own: str = "s1", error: str = "") -> RayReport:
    return RayReport(at=1.0, session="s1", own_session=own, version="2.60.0", members=members, error=error)


def seen(desired: ray.Desired, said: RayReport | None, **changes: object) -> ray.Observed:
    unit = Unit("strixd-ray.service", loaded=True, active="active", invocation="i1", since=10.0)
    observed = ray.Observed(PICK, PRESENT, "b1", None, unit, (), "print", said, RECORD, now=20.0, card=CARD)
    running = replace(observed, text=render(ray.complete(desired, observed)))
    return replace(running, **changes)  # type: ignore[arg-type]


BOTH = (member(HEAD), member(WORKER))


@pytest.mark.parametrize(
    ("said", "condition", "words"),
    [
        (report(*BOTH), "ok", ""),
        (None, "waiting", "probe"),
        (report(error="no answer from Ray"), "waiting", "no answer from Ray"),
        (report(member(HEAD)), "waiting", "1 of 2 members; halo2 (10.0.0.2) has not joined"),
        (report(member(HEAD), member(WORKER, alive=False)), "waiting", "halo2"),
        (report(*BOTH, member(WORKER)), "waiting", "halo2 (10.0.0.2) is listed twice"),
        (report(member(HEAD), member(WORKER, address="192.168.1.9")), "waiting", "192.168.1.9"),
        (report(member(HEAD), member(WORKER, gpus=0)), "waiting", "brings 0 GPUs"),
        (report(member(HEAD), member(WORKER, record={})), "waiting", "has not said yet"),
        (report(member(HEAD), member(WORKER, record=RECORD | {"digest": "sha256:cc"})), "waiting", "sha256:cc"),
        (report(member(HEAD), member(WORKER, record=RECORD | {"settings": "x"})), "waiting", "cluster.toml"),
    ],
)
def test_head_is_ok_only_when_every_member_is_there_and_alike(
    said: RayReport | None, condition: Condition, words: str
) -> None:
    plan = ray.Ray().plan(wanted(), seen(wanted(), said))
    assert (plan.condition, plan.steps) == (condition, ())
    assert words in plan.why


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"address": "192.168.1.9"}, "strixd-cli apply on halo2"),
        ({"gpus": 0}, "strixd-cli doctor on halo2"),
        ({"record": {}}, "run strixd-cli status on that node"),
        ({"record": RECORD | {"digest": "sha256:cc"}}, "strixd-cli image update"),
        ({"record": RECORD | {"settings": "x"}}, "copy the same file to every node"),
    ],
)
def test_what_to_do_about_a_member_that_differs_mends_that_difference(changes: dict[str, object], words: str) -> None:
    plan = ray.Ray().plan(wanted(), seen(wanted(), report(member(HEAD), member(WORKER, **changes))))
    assert words in plan.hint


def test_worker_is_ok_when_it_has_joined_whoever_else_is_missing() -> None:
    desired = wanted(WORKER)
    plan = ray.Ray().plan(desired, seen(desired, report(member(HEAD), member(WORKER))))
    assert plan.condition == "ok"


def test_worker_whose_head_was_replaced_starts_again_at_once() -> None:
    desired = wanted(WORKER)
    plan = ray.Ray().plan(desired, seen(desired, report(*BOTH, own="s0")))
    assert [type(step) for step in plan.steps] == [Stop, Start]


def test_worker_that_waits_for_its_head_is_left_alone() -> None:
    desired = wanted(WORKER)
    plan = ray.Ray().plan(desired, seen(desired, report(error="no head at 10.0.0.1:6379"), now=10_000.0))
    assert plan.steps == ()
    assert "halo1" in plan.hint


def test_another_cluster_key_is_named_with_what_to_copy() -> None:
    desired = wanted(WORKER)
    plan = ray.Ray().plan(desired, seen(desired, report(error="the head at 10.0.0.1:6379 has another cluster key")))
    assert KEY in plan.hint
    assert "halo1" in plan.hint


@pytest.mark.parametrize(("now", "steps"), [(20.0, []), (10.0 + ray.UNLISTED_AFTER + 1, [Stop, Start])])
def test_node_that_ray_does_not_list_is_started_again_after_a_while(now: float, steps: list[type]) -> None:
    plan = ray.Ray().plan(wanted(), seen(wanted(), report(member(WORKER)), now=now))
    assert [type(step) for step in plan.steps] == steps
    assert plan.condition == ("held" if steps else "waiting"), "what is ended for it is a cause"


def test_record_is_published_once() -> None:
    plan = ray.Ray().plan(wanted(), seen(wanted(), report(*BOTH), published={}))
    assert plan.steps == (Publish(tuple(sorted(RECORD.items()))),)


def with_ranks(peer: members.Peer, count: int, **changes: object) -> Member:
    return member(peer, record=RECORD | {"ranks": str(count)}, **changes)


@pytest.mark.parametrize(
    ("listed", "ranks"),
    [
        ((with_ranks(HEAD, 1), with_ranks(WORKER, 2)), 3),
        ((with_ranks(HEAD, 1), with_ranks(WORKER, 0)), 1),
        ((with_ranks(HEAD, 1), with_ranks(WORKER, 2, alive=False)), 1),
        ((with_ranks(HEAD, 1), with_ranks(WORKER, 2, age=60.0)), None),
        ((with_ranks(HEAD, 1), member(WORKER, record={})), None),
        ((), 0),
    ],
)
def test_ranks_are_counted_where_every_node_tells_of_them(listed: tuple[Member, ...], ranks: int | None) -> None:
    assert leftovers.counted(listed) == ranks


LEFT = report(member(HEAD), with_ranks(WORKER, 2))


@pytest.mark.parametrize(
    ("said", "own", "ended", "words"),
    [
        (LEFT, 0, 0.0, ""),  # the server is up: they are its own
        (LEFT, 0, 15.0, "2 ranks of the former run are still there, on halo2"),
        (report(*BOTH), 1, 15.0, "1 rank of the former run is still there, on halo1"),
        (report(with_ranks(HEAD, 1), member(WORKER)), 0, 15.0, "on halo1"),  # it told so itself
        (
            report(with_ranks(HEAD, 1), with_ranks(WORKER, 1)),
            1,
            15.0,
            "2 ranks of the former run are still there, on halo1, h",
        ),
        (report(member(HEAD), with_ranks(WORKER, 2, age=16.0)), 0, 15.0, ""),  # nobody vouches for that any more
        (report(member(HEAD), with_ranks(WORKER, 0)), 0, 15.0, ""),
        (report(member(HEAD), member(WORKER, record=RECORD | {"ranks": "?"})), 0, 15.0, ""),
    ],
)
def test_ranks_of_an_ended_model_are_waited_for(said: RayReport, own: int, ended: float, words: str) -> None:
    plan = ray.Ray().plan(wanted(), seen(wanted(), said, ranks=own, ended=ended))
    assert plan.steps == ()
    assert words in plan.why
    assert plan.condition == ("waiting" if words else "ok")


@pytest.mark.parametrize(
    ("gpu", "age", "ended", "words"),
    [
        ("63", 1.0, 15.0, "GPU memory of the former run is not free yet: 63 GiB on halo2"),
        ("0", 1.0, 15.0, ""),
        ("", 1.0, 15.0, ""),  # no such GPU, or an older probe
        ("63", 16.0, 15.0, ""),
        ("63", 1.0, 0.0, ""),  # the server is up
        ("63", 1.0, 1.0, ""),  # for longer than the kernel takes: another program's
    ],
)
def test_gpu_memory_of_an_ended_model_is_waited_for(gpu: str, age: float, ended: float, words: str) -> None:
    said = report(member(HEAD), member(WORKER, record=RECORD | {"ranks": "0", "gpu": gpu}, age=age))
    plan = ray.Ray().plan(wanted(), seen(wanted(), said, ended=ended, now=32.0))
    assert (plan.steps, plan.why) == ((), words)
    assert plan.condition == ("waiting" if words else "ok")
    assert bool(plan.again) == bool(words)


@pytest.mark.parametrize("resource", ["ray", "vllm"])
def test_without_the_link_the_next_command_is_named(resource: str) -> None:
    gone = Pick(why="no link is interface enp1s0; links here: lo")
    if resource == "ray":
        plan = ray.Ray().plan(wanted(), replace(seen(wanted(), None), pick=gone))
    else:
        plan = vllm.Vllm().plan(served(), watched(served(), pick=gone))
    assert (plan.condition, plan.why) == ("blocked", gone.why)
    assert plan.hint.startswith("ip -br link")


def test_a_probe_that_has_not_reported_says_where_to_look() -> None:
    assert ray.Ray().plan(wanted(), seen(wanted(), None)).hint == "strixd-cli logs ray"


@pytest.mark.parametrize(
    ("said", "echo"),
    [
        (None, True),  # strixd, or Ray, has just started
        (LEFT, True),
        (report(member(HEAD), member(WORKER, record=RECORD | {"gpu": "63"})), True),
        (report(member(HEAD)), False),
        (report(*BOTH), False),
    ],
)
def test_what_follows_from_an_end_or_a_start_explains_no_incident(said: RayReport | None, echo: bool) -> None:
    assert ray.Ray().plan(wanted(), seen(wanted(), said, ended=15.0)).echo == echo


def test_after_a_while_the_head_says_that_its_server_is_down_and_takes_it_back() -> None:
    late = seen(wanted(), LEFT, ended=9.0)
    plan = ray.Ray().plan(wanted(), late)
    (publish,) = plan.steps
    assert isinstance(publish, Publish)
    said = dict(publish.record)
    assert said == RECORD | {"server": "down"}
    assert plan.condition == "waiting"
    gone = replace(late, report=report(*BOTH), published=said)
    assert ray.Ray().plan(wanted(), gone).steps == (Publish(tuple(sorted(RECORD.items()))),)
    up = replace(late, ended=0.0, published=said)
    assert ray.Ray().plan(wanted(), up).steps == (Publish(tuple(sorted(RECORD.items()))),)


def test_after_a_while_the_head_ends_what_is_left_in_its_own_container() -> None:
    plan = ray.Ray().plan(wanted(), seen(wanted(), report(*BOTH), ranks=1, ended=9.0))
    assert [type(step) for step in plan.steps] == [Stop, Start]
    assert plan.why == "1 rank of an ended model left over"


@pytest.mark.parametrize(
    ("server", "age", "ranks", "steps"),
    [
        ("down", 1.0, 1, [Stop, Start]),
        ("down", 1.0, 0, []),
        ("down", 16.0, 1, []),
        ("", 1.0, 1, []),
    ],
)
def test_a_worker_ends_its_ranks_when_its_head_says_so(server: str, age: float, ranks: int, steps: list[type]) -> None:
    desired = wanted(WORKER)
    head = member(HEAD, record=RECORD | {"server": server}, age=age)
    plan = ray.Ray().plan(desired, seen(desired, report(head, member(WORKER)), ranks=ranks))
    assert [type(step) for step in plan.steps] == steps


def test_another_version_of_strixd_is_a_fact_and_no_hindrance() -> None:
    plan = ray.Ray().plan(
        wanted(), seen(wanted(), report(member(HEAD), member(WORKER, record=RECORD | {"version": "2"})))
    )
    assert (plan.condition, plan.facts[2:]) == ("ok", ("halo2 runs strixd 2, this node 1",))


def test_without_the_cluster_key_nothing_starts() -> None:
    plan = ray.Ray().plan(wanted(), seen(wanted(), None, keys="", text=None))
    assert (plan.condition, plan.steps) == ("blocked", ())
    assert "strixd-cli key new" in plan.hint


def test_another_cluster_key_is_a_whole_restart() -> None:
    plan = ray.Ray().plan(wanted(), seen(wanted(), report(*BOTH), keys="another"))
    assert [type(step) for step in plan.steps] == [Stop, WriteUnit, Start]


def test_open_api_without_a_key_is_blocked() -> None:
    plan = vllm.Vllm().plan(replace(served(), api_key="/etc/strixd/api.key"), watched(served()))
    assert (plan.condition, plan.steps) == ("blocked", ())


def test_changed_settings_are_a_whole_restart() -> None:
    plan = ray.Ray().plan(wanted(), seen(wanted(), report(*BOTH), text="older"))
    assert [type(step) for step in plan.steps] == [Stop, WriteUnit, Start]


@pytest.mark.parametrize("text", ["other", None])
def test_nothing_starts_while_the_run_before_is_on_its_way_to_its_end(text: str | None) -> None:
    """Its ranks, its GPU memory and its port are still its own."""
    ending = Unit("strixd-ray.service", True, "deactivating", "success", 0, "i0", 10.0)
    plans = (
        ray.Ray().plan(wanted(), seen(wanted(), None, unit=ending, text=text)),
        vllm.Vllm().plan(served(), watched(served(), unit=ending, text=text)),
    )
    assert [(plan.condition, plan.steps) for plan in plans] == [("waiting", ())] * 2


def test_image_without_tokens_is_named_and_not_tried_again() -> None:
    unit = Unit("strixd-ray.service", True, "failed", "exit-code", ray.NO_TOKENS, "i1", 10.0)
    plan = ray.Ray().plan(wanted(), seen(wanted(), None, unit=unit))
    assert (plan.condition, plan.steps) == ("stuck", ())


@pytest.mark.parametrize(("result", "status"), [("exit-code", 1), ("success", 0), ("signal", 9)])
def test_any_other_end_is_a_failure_and_starts_again(result: str, status: int) -> None:
    unit = Unit("strixd-ray.service", True, "failed", result, status, "i1", 10.0)
    plan = ray.Ray().plan(wanted(), seen(wanted(), None, unit=unit))
    assert [type(step) for step in plan.steps] == [Start]
    assert plan.condition == "held"


def served() -> vllm.Desired:
    command = vllm.command(model="m", port=8000, listen="127.0.0.1", parallel=2, arguments=())
    return vllm.Desired(
        container=Container(vllm.NAME, "vLLM", "", command),
        model="m",
        local="/models/m",
        cached="/models/hub/models--cached/refs",
        path="/m/m",
        url="http://127.0.0.1:8000",
        listen=Seat("127.0.0.1", 8000, "[model] port"),
        key=KEY,
        api_key="",
        fabric=Fabric(interface="eth1"),
        management=(),
        retry_after=0.0,
        grows=(),
    )


def watched(desired: vllm.Desired, **changes: object) -> vllm.Observed:
    unit = Unit("strixd-vllm.service", loaded=True, active="active", invocation="i1", since=10.0)
    observed = vllm.Observed(PICK, PRESENT, None, unit, ("/models/m",), "print", False, Answer(), now=20.0)
    text = render(vllm.complete(desired, observed)) if desired.container else None
    return replace(replace(observed, text=text), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", [None, "an earlier text"])
@pytest.mark.parametrize(("left", "begins"), [({}, True), ({"halo2": 1}, False)])
def test_nothing_is_started_beside_ranks_not_counted_yet(text: str | None, left: dict[str, int], begins: bool) -> None:
    desired = served()
    ended = Unit("strixd-vllm.service", loaded=True, active="failed", result="signal", status=9, invocation="i1")
    observed = watched(desired, unit=ended, left=left)
    plan = vllm.Vllm().plan(desired, replace(observed, text=text or observed.text))
    assert any(isinstance(step, Start) for step in plan.steps) is begins
    named = (plan.why, bool(plan.hint)) == ("1 rank of the former run is still there, on halo2", True)
    assert named is (bool(text) and not begins), "what has ended says that instead"


def test_served_means_that_a_completion_came_out() -> None:
    desired = served()
    loading = vllm.Vllm().plan(desired, watched(desired))
    answering = vllm.Vllm().plan(desired, watched(desired, answer=Answer(at=15.0, seconds=0.1, proven=True)))
    late = Answer(15.0, 0.1, 19.0, "timed out", failing=17.0, proven=True)
    silent = vllm.Vllm().plan(desired, watched(desired, answer=late))
    others = vllm.Vllm().plan(desired, watched(desired, answer=Answer(heard_at=15.0, proven=True)))
    plans = (loading, answering, silent, others)
    assert [p.condition for p in plans] == ["waiting", "ok", "waiting", "waiting"]
    assert not any(p.steps for p in plans)
    assert "timed out" in silent.why
    assert "works for others" in others.why


@pytest.mark.parametrize(
    ("answer", "acts"),
    [
        (Answer(at=10.0, failed_at=19.0, error="HTTP 500", failing=15.0), False),  # its engine may just have died
        (Answer(at=10.0, failed_at=20.0, error="HTTP 500", failing=15.0), True),
        (Answer(at=10.0, failed_at=19.0, error="no completion within 20 s", failing=-1.0), True),
        (Answer(failed_at=20.0, error="no completion within 20 s", failing=1.0), True),  # answered another strixd
        (Answer(at=19.5, failed_at=19.0), False),
    ],
)
def test_a_server_that_goes_on_failing_is_stopped_and_started(answer: Answer, acts: bool) -> None:
    plan = vllm.Vllm().plan(served(), watched(served(), answer=replace(answer, proven=True)))
    assert [type(step) for step in plan.steps] == ([Gather, Stop] if acts else [])
    assert bool(plan.calm) == (answer.failed_at > answer.at), "a link that has just come back gets its time"


@pytest.mark.parametrize(
    ("progress", "answer", "acts"),
    [
        (Progress(still=100.0, idle=100.0), Answer(), False),
        (Progress(still=100.0, idle=1.0), Answer(), False),
        (Progress(still=1.0, idle=900.0), Answer(), False),
        (Progress(still=130.0, idle=130.0), Answer(), True),  # nothing at all for more than two minutes
        (Progress(still=1.0, idle=1.0, short=14.0), Answer(), False),  # it may end by itself for the rank that ended
        (Progress(still=1.0, idle=1.0, short=16.0), Answer(), True),
        (Progress(still=3599.0, idle=1.0), Answer(), False),  # compiles
        (Progress(still=3601.0, idle=1.0), Answer(), True),
        (Progress(1.0, 1.0), Answer(failed_at=990.0, error="HTTP 500 to a completion", heard_at=950.0), False),
        (Progress(1.0, 1.0), Answer(failed_at=999.0, error="HTTP 500 to a completion", heard_at=900.0), True),
        (Progress(1.0, 1.0), Answer(failed_at=999.0, error="no completion within 20 s", heard_at=900.0), False),
    ],
)
def test_a_start_has_as_long_as_it_makes_progress(progress: Progress, answer: Answer, acts: bool) -> None:
    plan = vllm.Vllm().plan(served(), watched(served(), answer=answer, progress=progress, now=1000.0))
    assert [type(step) for step in plan.steps] == ([Gather, Stop] if acts else [])
    assert plan.condition == ("held" if acts else "waiting")


def test_a_local_folder_is_served_by_path_and_a_hub_model_by_name() -> None:
    desired = served()
    assert "exec vllm serve /m/m " in (watched(desired).text or "")
    assert "exec vllm serve m " in (watched(replace(desired, local="/elsewhere")).text or "")


def test_no_order_means_no_unit() -> None:
    desired = replace(served(), container=None, model="")
    plan = vllm.Vllm().plan(desired, watched(served()))
    assert [str(step).split()[0] for step in plan.steps] == ["stop", "remove"]


@pytest.mark.parametrize(
    ("result", "status", "line", "condition"),
    [
        ("success", 0, "", "held"),  # vLLM's engine died: exit status 0 is no sign of intent
        ("signal", 9, "", "held"),
        ("exit-code", 1, "Errno 98 address already in use", "held"),
        ("exit-code", 2, "vllm: error: unrecognized arguments: --nope", "stuck"),
        ("exit-code", 1, "HFValidationError: Repo id must be in the form", "stuck"),
        ("exit-code", 1, "attention heads (4) must be divisible by tensor parallel size (3).", "stuck"),
        ("exit-code", 1, "Model architectures ['Foo'] are not supported for now. Supported", "stuck"),
        ("exit-code", 1, "Unknown quantization method: foo. Must be one of", "stuck"),
        ("exit-code", 1, "Free memory on device cuda:0 (60.0/96.0 GiB) on startup is less than desired GPU", "held"),
    ],
)
def test_ends(result: str, status: int, line: str, condition: Condition) -> None:
    unit = Unit("strixd-vllm.service", True, "failed", result, status, "i1", 10.0)
    plan = vllm.Vllm().plan(served(), watched(served(), unit=unit, words=("before", line)))
    assert plan.condition == condition
    assert bool(plan.steps) == (condition == "held")


@pytest.mark.parametrize(
    "line",
    [
        "ValueError: 1 GiB is less than requested memory for kv",
        "ValueError: No available memory for the cache blocks. Try increasing",
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB. GPU 0 has",
    ],
)
def test_want_of_memory_is_hopeless_where_it_never_was_enough(line: str) -> None:
    """Whether it ever was, the engine knows."""
    unit = Unit("strixd-vllm.service", True, "failed", "exit-code", 1, "i1", 10.0)
    plan = vllm.Vllm().plan(served(), watched(served(), unit=unit, words=(line, "after")))
    assert (plan.condition, plan.hopeless, [type(step) for step in plan.steps]) == ("held", True, [Start])
    assert "not enough" in plan.why


def test_a_folder_that_is_here_and_holds_no_model_is_said_at_once() -> None:
    unit = Unit("strixd-vllm.service", True, "failed", "exit-code", 1, "i1", 10.0)
    line = "ValueError: Invalid repository ID or local directory specified: '/models/m'."
    seen = watched(served(), unit=unit, words=(line,))
    plan = vllm.Vllm().plan(served(), replace(seen, present=(served().local,)))
    assert (plan.condition, plan.steps) == ("stuck", ())
    assert "holds no model" in plan.why
    from_the_hub = vllm.Vllm().plan(served(), replace(seen, present=()))
    assert from_the_hub.condition != "stuck"


def test_a_new_order_tries_again_what_was_given_up() -> None:
    unit = Unit("strixd-vllm.service", True, "failed", "exit-code", 2, "i1", 10.0)
    desired = replace(served(), retry_after=11.0)
    plan = vllm.Vllm().plan(desired, watched(desired, unit=unit, words=("error: x",)))
    assert [type(step) for step in plan.steps] == [Start]


RUNS = drain.Observed(engine=True)


def draining(seen: drain.Observed, *, seconds: int = 60, drained: bool = True) -> Plan:
    order = drain.Desired(seconds, drained, restart="i0")
    desired = replace(served(), container=None, model="", drain=order) if drained else replace(served(), drain=order)
    return vllm.Vllm().plan(desired, watched(served(), draining=seen))


def test_a_drain_lets_the_engine_finish_and_ends_it_when_time_is_over() -> None:
    assert draining(RUNS).steps == (drain.Interrupt("strixd-vllm.service", "i1"),)
    asked = replace(RUNS, asked=61.0)
    waiting = draining(replace(RUNS, asked=20.0))
    assert (waiting.condition, waiting.steps) == ("waiting", ())
    assert "40 s" in waiting.why
    (late,) = draining(asked).steps
    assert isinstance(late, drain.End)
    assert "after 60 s" in late.cut
    (idle,) = draining(replace(asked, engine=False)).steps
    assert isinstance(idle, drain.End)
    assert idle.cut == "", "its engine had finished, the server only takes long to end"


@pytest.mark.parametrize("drained", [True, False])
@pytest.mark.parametrize(
    ("answer", "steps"),
    [
        (Answer(), ()),  # strixd has just started: not asked yet
        (Answer(failed_at=9.0, error="no completion: connection refused"), (drain.End(VLLM, "i1", ""),)),
        (Answer(failed_at=9.0, error="no completion within 20 s", heard_at=3.0), (drain.Interrupt(VLLM, "i1"),)),
        (Answer(failed_at=9.0, error="connection refused", proven=True), (drain.Interrupt(VLLM, "i1"),)),
    ],
)
def test_only_a_server_that_listens_can_have_requests(answer: Answer, steps: tuple[Step, ...], drained: bool) -> None:
    order = drain.Desired(60, drained, restart="i1")
    desired = replace(served(), drain=order, **({"container": None} if drained else {}))  # type: ignore[arg-type]
    seen = replace(RUNS, requests=drain.requests(answer))
    plan = vllm.Vllm().plan(desired, watched(served(), draining=seen))
    assert (plan.condition, plan.steps) == ("waiting", steps)


@pytest.mark.parametrize("mark", ["i1", "i1 soon", "i1 1795968470.25", "i0 90.0"])
def test_a_mark_that_is_not_of_this_run_and_boot_is_none(mark: str) -> None:
    """Among them one of a strixd that wrote times of the day."""
    assert asyncio.run(_marked(mark)).asked is None
    assert asyncio.run(_marked("i1 90.0")).asked == pytest.approx(10.0, abs=1.0)


async def _marked(text: str) -> drain.Observed:
    world = World()
    world.disk.put(drain.MARK, text, 0o644)
    unit = Unit(VLLM, loaded=True, active="active", invocation="i1")
    return await drain.observe(simulated_host(world), drain.Desired(60), unit)


@pytest.mark.parametrize(("seen", "seconds"), [(drain.Observed(), 60), (RUNS, 0)])
def test_a_server_without_engine_or_time_is_ended_at_once(seen: drain.Observed, seconds: int) -> None:
    (step,) = draining(seen, seconds=seconds).steps
    assert isinstance(step, drain.End)
    assert bool(step.cut) == seen.engine


def test_drained_is_ok_and_leaves_no_unit() -> None:
    order = drain.Desired(60, drained=True)
    desired = replace(served(), container=None, model="", drain=order)
    over = Unit("strixd-vllm.service", True, "inactive", "success", 0, "i1", 10.0)
    plan = vllm.Vllm().plan(desired, watched(served(), unit=over, draining=drain.Observed(cut="some were cut off")))
    assert [str(step).split()[0] for step in plan.steps] == ["remove"]
    assert plan.condition == "ok"
    assert plan.facts[-1] == "some were cut off"


def test_a_run_that_was_asked_to_end_is_not_served_by_an_undrain() -> None:
    plan = draining(replace(RUNS, asked=5.0), drained=False)
    assert (plan.condition, plan.steps) == ("waiting", ())
    assert "has not ended yet" in plan.why


def test_a_restart_is_of_one_run_only() -> None:
    for run, wanted_steps in (("i1", [drain.Interrupt]), ("i0", [])):
        desired = replace(served(), drain=drain.Desired(60, restart=run))
        plan = vllm.Vllm().plan(desired, watched(served(), draining=RUNS))
        assert [type(step) for step in plan.steps] == wanted_steps
    for run, steps in (("i1", [Stop, Start]), ("i0", [])):
        other = replace(wanted(), restart=run)
        assert [type(step) for step in ray.Ray().plan(other, seen(other, report(*BOTH))).steps] == steps


def test_refusal_of_the_hub_is_said_before_anything_starts() -> None:
    plan = vllm.Vllm().plan(served(), watched(served(), refusal="gated: open https://…", text=None))
    assert (plan.condition, plan.steps) == ("stuck", ())


DOWN = Unit("strixd-vllm.service", loaded=True)
STRANGER = Holder("0.0.0.0", unit="stranger.service", processes=((123, "nc"),))


@pytest.mark.parametrize("text", [None, "older"], ids=["never started", "other settings"])
def test_a_stranger_on_the_port_of_the_api_is_named_and_nothing_starts(text: str | None) -> None:
    plan = vllm.Vllm().plan(served(), watched(served(), unit=DOWN, text=text, holders=(STRANGER,)))
    assert (plan.condition, plan.steps, plan.again) == ("blocked", (), AGAIN)
    assert plan.why == "port 8000 is taken by nc (pid 123, stranger.service)"
    assert "systemctl status stranger.service" in plan.hint
    assert "[model] port" in plan.hint


def test_a_failed_start_is_not_tried_again_while_the_port_is_taken() -> None:
    unit = Unit("strixd-vllm.service", True, "failed", "exit-code", 1, "i1", 10.0)
    plan = vllm.Vllm().plan(served(), watched(served(), unit=unit, holders=(STRANGER,)))
    assert (plan.condition, plan.steps) == ("blocked", ())


def test_what_can_never_work_is_said_rather_than_who_has_the_port() -> None:
    unit = Unit("strixd-vllm.service", True, "failed", "exit-code", 2, "i1", 10.0)
    plan = vllm.Vllm().plan(served(), watched(served(), unit=unit, words=("error: x",), holders=(STRANGER,)))
    assert plan.condition == "stuck"


def test_a_model_that_is_not_ordered_is_removed_whoever_has_the_port() -> None:
    plan = vllm.Vllm().plan(replace(served(), container=None), watched(served(), unit=DOWN, holders=(STRANGER,)))
    assert [str(step).split()[0] for step in plan.steps] == ["remove"]


def test_what_the_last_run_left_on_the_port_is_ended_before_the_start() -> None:
    left = Holder("127.0.0.1", unit="strixd-vllm.service", processes=((7, "VLLM::EngineCor"),))
    unit = Unit("strixd-vllm.service", True, "failed", "signal", 9, "i1", 10.0)
    plan = vllm.Vllm().plan(served(), watched(served(), unit=unit, holders=(left,)))
    assert [type(step) for step in plan.steps] == [Stop, Start]
    assert "left over from its last run, on port 8000: VLLM::EngineCor (pid 7)" in str(plan.steps[0])


def test_a_stranger_on_the_port_of_ray_is_named_by_the_head() -> None:
    unit = Unit("strixd-ray.service", True, "failed", "exit-code", 1, "i1", 10.0)
    here = replace(STRANGER, address="127.0.0.1")  # Ray listens on all addresses
    plan = ray.Ray().plan(wanted(), seen(wanted(), None, unit=unit, holders=(here,)))
    assert (plan.condition, plan.steps) == ("blocked", ())
    assert plan.why == "port 6379 is taken by nc (pid 123, stranger.service)"
    assert "[cluster] ray-port" in plan.hint


@pytest.mark.parametrize(
    ("own", "holder", "expected"),
    [
        ("127.0.0.1", Holder("127.0.0.1"), True),
        ("127.0.0.1", Holder("0.0.0.0"), True),
        ("127.0.0.1", Holder("::"), True),
        ("127.0.0.1", Holder("::", v6only=True), False),
        ("127.0.0.1", Holder("192.168.1.2"), False),
        ("127.0.0.1", Holder("::1"), False),
        ("0.0.0.0", Holder("192.168.1.2"), True),
        ("0.0.0.0", Holder("::1"), False),
        ("::", Holder("127.0.0.1"), True),
        ("::", Holder("fe80::1"), True),
        ("::1", Holder("0.0.0.0"), False),
        ("::1", Holder("::", v6only=True), True),
    ],
)
def test_two_addresses_conflict_as_the_kernel_has_it(own: str, holder: Holder, expected: bool) -> None:
    assert conflicts(own, holder) == expected


@pytest.mark.parametrize(
    ("unit", "processes", "words"),
    [
        ("a.service", ((1, "nc"),), "nc (pid 1, a.service)"),
        ("session-3.scope", ((1, "sshd"), (2, "nc")), "session-3.scope: one of sshd (pid 1), nc (pid 2)"),
        ("a.scope", tuple((n, "x") for n in range(1, 6)), "a.scope: one of x (pid 1), x (pid 2), x (pid 3), 2 more"),
        ("a.socket", (), "a.socket"),
        ("", (), "a program that cannot be named from here"),
    ],
)
def test_who_is_told_as_far_as_it_is_known(unit: str, processes: tuple[tuple[int, str], ...], words: str) -> None:
    assert who(Holder("::", unit=unit, processes=processes)) == words
