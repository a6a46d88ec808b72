from __future__ import annotations

import io
import itertools
import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from tests.wms.dags.files.samples import SAMPLES, sample
from wms.core.actors import Actor
from wms.core.errors import Conflict, InvalidInput, NotFound, NotPermitted, TooLarge
from wms.core.models import User
from wms.dags import engine, negotiation
from wms.dags.explaining import answer_for_dag
from wms.dags.files.exports import export
from wms.dags.follow.services import (
    MAX_CHUNK_BYTES,
    FollowRequest,
    Taken,
    follow_log,
    follow_run,
    take_in,
)
from wms.dags.models import Dag, FollowedCluster, FollowedLog, FollowedProcess, NodeEvent
from wms.dags.rebuild import rebuild_dag
from wms.dags.services import hold_dags, release_dags, remove_dags
from wms.jobs.models import Job

NOW = datetime(2026, 11, 22, tzinfo=UTC)
STAMP = "2026-11-20 14:00:00"


def follow(owner: User, text: str | None = None, *, name: str = "case.dag", **more: Any) -> Dag:
    """A followed DAG of this text, or of a sample with all DAG files beside it."""
    if text is None:
        folder = (SAMPLES / name).parent
        files = {path.name: path.read_text() for path in folder.glob("*.*")}
        name = name.rpartition("/")[2]
    else:
        files = {name: text}
    streams = {path: io.BytesIO(content.encode()) for path, content in files.items()}
    request = FollowRequest((name,), streams, f"{name}.nodes.log", **more)
    return follow_run(request, owner=owner, actor=Actor.person(owner), now=NOW)


def take(dag: Dag, data: bytes, offset: int = 0, actor: Actor | None = None) -> Taken:
    who = actor or Actor.person(dag.owner)
    return take_in(dag.pk, data, offset=offset, actor=who, now=NOW)


def say(dag: Dag, *events: str) -> Taken:
    """Go on with the log by these events."""
    data = "".join(events).encode()
    return take(dag, data, FollowedLog.objects.get(dag=dag).byte_offset)


def submit(job: str, node: str) -> str:
    return head(0, job, "Job submitted from host: <a>", f"    DAG Node: {node}\n")


def execute(job: str) -> str:
    return head(1, job, "Job executing on host: <b>")


def end(job: str, code: int = 0) -> str:
    how = f"(1) Normal termination (return value {code})"
    if code < 0:
        how = f"(0) Abnormal termination (signal {-code})"
    return head(5, job, "Job terminated.", f"\t{how}\n")


def abort(job: str) -> str:
    return head(9, job, "Job was aborted.", "\tvia condor_rm (by user user)\n")


def post(job: str, node: str, code: int = 0) -> str:
    body = f"\t(1) Normal termination (return value {code})\n    DAG Node: {node}\n"
    return head(16, job, "POST Script terminated.", body)


def skip(node: str) -> str:
    return head(
        34, "0.2147483647", "PRE script return value is PRE_SKIP value", f"    DAG Node: {node}\n"
    )


def head(number: int, job: str, text: str, body: str = "") -> str:
    cluster, process = job.split(".")
    return f"{number:03d} ({cluster}.{process}.000) {STAMP} {text}\n{body}...\n"


def states(dag: Dag) -> dict[str, str]:
    return dict(dag.nodes.order_by("ordinal").values_list("name", "state"))


def assert_log_agrees(dag: Dag) -> None:
    assert rebuild_dag(dag.pk).differences == ()


SAMPLE_RUNS = [
    ("all_outcomes/sample.dag", "all_outcomes/sample.status", {}),
    ("features/features.dag", "features/features.status", {}),
    ("rescued/sample.dag", "rescued/sample.status", {"rescue_number": 1}),
    ("recovery_and_removed/recovery.dag", "recovery_and_removed/recovery.status", {}),
]


def nodes_of(status_file: str) -> dict[str, tuple[str, str]]:
    """State and retries of every node, from a node status file."""
    found = re.findall(
        r'Node = "(.*)";\n  NodeStatus = (\d).*\n.*\n  RetryCount = (\d+);', status_file
    )
    return {name: (state, retries) for name, state, retries in found}


@pytest.mark.parametrize(("path", "status", "more"), SAMPLE_RUNS)
@pytest.mark.parametrize("piece", [500, 3000, 10**6])
def test_a_real_run_ends_as_dagman_says_whatever_pieces_its_log_comes_in(
    alice: User, path: str, status: str, more: dict[str, Any], piece: int
) -> None:
    dag = follow(alice, name=path, **more)
    data = (SAMPLES / f"{path}.nodes.log").read_bytes()

    offset, until = 0, 0
    while until < len(data):
        until += piece
        offset = take(dag, data[offset:until], offset).offset

    dag.refresh_from_db()
    metrics = json.loads(sample(f"{path}.metrics"))
    assert offset == len(data)
    assert nodes_of("".join(export(dag, "status", now=NOW))) == nodes_of(sample(status))
    assert (dag.exit_code, dag.status) == (metrics["exitcode"], metrics["DagStatus"])
    assert dag.followed_log.fault == ""
    assert dag.followed_log.warnings == []
    assert not Job.objects.exists()
    assert_log_agrees(dag)


def test_a_run_that_was_removed_ends_as_failed_since_its_log_does_not_tell_more(
    alice: User,
) -> None:
    dag = follow(alice, name="recovery_and_removed/removed.dag")

    take(dag, (SAMPLES / "recovery_and_removed/removed.dag.nodes.log").read_bytes())

    dag.refresh_from_db()
    assert states(dag) == {"A": "done", "B": "failed", "C": "futile"}
    assert (dag.state, dag.exit_code) == ("failed", 1)
    failed = dag.nodes.get(name="B")
    assert failed.state_reason.startswith("removed: removed because <OtherJob")


def test_a_followed_dag_runs_without_a_site_and_another_one_does_not(alice: User) -> None:
    dag = follow(alice, "JOB A a.sub\n")

    assert (dag.state, dag.site, dag.is_followed) == ("running", None, True)
    assert states(dag) == {"A": "ready"}
    with pytest.raises(IntegrityError, match="dag_running_has_site"), transaction.atomic():
        Dag.objects.filter(pk=dag.pk).update(is_followed=False)


def test_a_piece_that_was_taken_in_before_changes_nothing(alice: User) -> None:
    dag = follow(alice, "JOB A a.sub\nJOB B b.sub\n")
    data = (submit("5.0", "A") + execute("5.0")).encode()
    first = take(dag, data)
    events = NodeEvent.objects.filter(dag=dag).count()

    again = take(dag, data)
    longer = take(dag, data + end("5.0").encode())

    assert (first.offset, first.events) == (len(data), 2)
    assert (again.offset, again.events) == (len(data), 0)
    assert longer.events == 1
    assert NodeEvent.objects.filter(dag=dag).count() == events + 1
    assert states(dag)["A"] == "done"


def test_a_gap_is_refused(alice: User) -> None:
    dag = follow(alice, "JOB A a.sub\n")

    with pytest.raises(Conflict, match="begins at byte 7, but only 0 bytes were taken in"):
        take(dag, b"...", 7)


def test_an_event_that_is_not_complete_is_taken_in_with_the_next_piece(alice: User) -> None:
    dag = follow(alice, "JOB A a.sub\n")
    data = submit("5.0", "A").encode()

    half = take(dag, data[:-2])
    whole = take(dag, data, half.offset)

    assert (half.offset, half.events) == (0, 0)
    assert (whole.offset, whole.events) == (len(data), 1)


def test_retries_are_counted_until_the_last_one(alice: User) -> None:
    dag = follow(alice, "JOB A a.sub\nRETRY A 2 UNLESS-EXIT 9\nJOB B b.sub\nPARENT A CHILD B\n")

    say(dag, submit("5.0", "A"), end("5.0", 1), submit("6.0", "A"), end("6.0", -9))
    waiting = dag.nodes.get(name="A")
    say(dag, submit("7.0", "A"), end("7.0", 9))

    dag.refresh_from_db()
    assert (waiting.state, waiting.retry_number) == ("ready", 2)
    assert waiting.state_reason == "ended by signal 9"
    assert states(dag) == {"A": "failed", "B": "futile"}
    assert (dag.state, dag.exit_code, dag.status) == ("failed", 1, 2)
    assert_log_agrees(dag)


def test_an_exit_code_can_end_the_retries(alice: User) -> None:
    dag = follow(alice, "JOB A a.sub\nRETRY A 2 UNLESS-EXIT 9\n")

    say(dag, submit("5.0", "A"), end("5.0", 9))

    assert states(dag) == {"A": "failed"}


def test_the_post_script_decides(alice: User) -> None:
    text = "JOB A a.sub\nJOB B b.sub\nSCRIPT POST ALL_NODES post.sh\n"
    dag = follow(alice, text)

    say(dag, submit("5.0", "A"), end("5.0", 7), submit("6.0", "B"), end("6.0"))
    between = states(dag)
    say(dag, post("5.0", "A", 0), post("6.0", "B", 3))

    assert between == {"A": "post_running", "B": "post_running"}
    assert states(dag) == {"A": "done", "B": "failed"}
    assert dag.nodes.get(name="B").state_reason == "POST script: exit code 3"


def test_a_post_script_after_a_submission_that_failed_decides_as_well(alice: User) -> None:
    dag = follow(alice, "JOB A a.sub\nJOB B b.sub\nSCRIPT POST A post.sh\nPARENT A CHILD B\n")

    say(dag, post("-1.-1", "A", 0), submit("6.0", "B"))

    assert states(dag) == {"A": "done", "B": "submitted"}
    assert_log_agrees(dag)


def test_a_node_that_its_pre_script_skipped_is_done(alice: User) -> None:
    text = "JOB A a.sub\nJOB B b.sub\nSCRIPT PRE A pre.sh\nPRE_SKIP A 9\nPARENT A CHILD B\n"
    dag = follow(alice, text)

    say(dag, skip("A"), submit("6.0", "B"), end("6.0"))

    dag.refresh_from_db()
    assert states(dag) == {"A": "done", "B": "done"}
    assert (dag.state, dag.exit_code) == ("completed", 0)
    assert_log_agrees(dag)


def test_a_list_of_jobs_ends_with_its_last_one(alice: User) -> None:
    dag = follow(alice, "JOB A a.sub\n")

    say(dag, *(submit(f"5.{n}", "A") for n in range(3)), execute("5.1"), end("5.1", 4))
    say(dag, execute("5.0"), abort("5.0"), head(12, "5.2", "Job was held.", "\twhy not\n"))
    cluster = FollowedCluster.objects.get()
    before = states(dag)
    say(dag, abort("5.2"))

    assert before == {"A": "submitted"}
    assert (cluster.submitted, cluster.running, cluster.held, cluster.ended) == (3, 0, 1, 2)
    assert states(dag) == {"A": "failed"}
    assert dag.nodes.get().state_reason == "job 5.1: exit code 4"


def test_a_list_may_tolerate_failures(alice: User) -> None:
    dag = follow(alice, "JOB A a.sub\nTOLERANCE A 1\n")

    say(dag, submit("5.0", "A"), submit("5.1", "A"), end("5.0", 4), end("5.1"))

    assert states(dag) == {"A": "done"}


def test_a_list_whose_jobs_are_made_late_ends_when_no_more_come(alice: User) -> None:
    dag = follow(alice, "JOB A a.sub\n")

    say(dag, head(35, "5.-1", "Cluster submitted from host: <a>"), submit("5.0", "A"), end("5.0"))
    between = states(dag)
    say(dag, submit("5.1", "A"), end("5.1"), head(36, "5.-1", "Cluster removed"))

    assert between == {"A": "submitted"}
    assert states(dag) == {"A": "done"}


def test_an_abort_ends_the_dag_when_what_runs_has_ended(alice: User) -> None:
    text = "JOB A a.sub\nJOB B b.sub\nJOB C c.sub\nRETRY B 3\nABORT-DAG-ON A 4 RETURN 12\n"
    dag = follow(alice, text + "PARENT A CHILD C\n")

    say(dag, submit("5.0", "A"), submit("6.0", "B"), end("5.0", 4))
    dag.refresh_from_db()
    before = dag.state
    say(dag, abort("6.0"))

    dag.refresh_from_db()
    assert before == "running"
    assert (dag.state, dag.exit_code, dag.status) == ("failed", 12, 3)
    assert states(dag) == {"A": "failed", "B": "failed", "C": "futile"}
    assert_log_agrees(dag)


def test_the_rest_of_a_failed_run_can_be_rescued_here(alice: User) -> None:
    dag = follow(alice, "JOB A a.sub\nJOB B b.sub\nPARENT A CHILD B\n")

    say(dag, submit("5.0", "A"), end("5.0"), submit("6.0", "B"), end("6.0", 1))

    [rescue] = dag.rescues.all()
    assert (rescue.path, rescue.done_count) == ("case.dag.rescue001", 1)


def test_a_job_that_begins_before_the_parents_of_its_node_have_ended_ends_the_dag(
    alice: User,
) -> None:
    dag = follow(alice, "JOB A a.sub\nJOB B b.sub\nPARENT A CHILD B\n")

    taken = say(dag, submit("5.0", "A"), submit("6.0", "B"))

    dag.refresh_from_db()
    assert taken.fault == "node B began although parents of it had not ended"
    assert (dag.state, dag.status, dag.exit_code) == ("failed", 1, 1)
    assert dag.state_reason.startswith("the log of the run makes no sense: node B began")


def test_a_bad_event_ends_the_dag_unless_it_is_allowed(alice: User) -> None:
    strict = follow(alice, "JOB A a.sub\nJOB B b.sub\n", allow_events=0)
    lenient = follow(alice, "JOB A a.sub\nJOB B b.sub\n")
    events = [submit("5.0", "A"), end("5.0"), end("5.0")]

    assert say(strict, *events).fault == "job 5.0: ended twice"
    assert say(lenient, *events).fault == ""

    log = lenient.followed_log
    assert (log.warning_count, log.warnings) == (1, ["job 5.0: ended twice"])
    assert FollowedProcess.objects.get(cluster__log=log).ends == 2


def test_an_end_that_comes_before_its_submission_counts_when_that_comes(alice: User) -> None:
    dag = follow(alice, "JOB A a.sub\n")

    say(dag, end("5.0"))
    say(dag, submit("5.0", "A"))

    assert states(dag) == {"A": "done"}


def test_a_node_that_is_submitted_again_after_its_end_ends_the_dag(alice: User) -> None:
    dag = follow(alice, "JOB A a.sub\nJOB B b.sub\n")

    taken = say(dag, submit("5.0", "A"), end("5.0"), submit("6.0", "A"))

    assert taken.fault == "job 6.0: node A was submitted while done"


def test_jobs_of_no_node_of_the_dag_are_passed_over_and_told(alice: User) -> None:
    dag = follow(alice, "JOB A a.sub\n")

    say(dag, submit("5.0", "Other"), head(0, "6.0", "Job submitted from host: <a>"), end("5.0", 1))

    assert states(dag) == {"A": "ready"}
    assert dag.followed_log.warnings == [
        "job 5.0 is of node Other, which the DAG does not have",
        "job 6.0 is of no DAG node",
    ]


def test_jobs_that_never_ended_are_told_when_the_dag_has_ended(alice: User) -> None:
    dag = follow(alice, "JOB A a.sub\n")

    say(dag, head(0, "6.0", "Job submitted from host: <a>"), submit("5.0", "A"), end("5.0"))

    log = FollowedLog.objects.get(dag=dag)
    assert log.warnings[-1] == "1 jobs were submitted and have never ended"


def test_when_the_dag_has_ended_nothing_more_is_looked_at(alice: User) -> None:
    dag = follow(alice, "JOB A a.sub\n")
    over = say(dag, submit("5.0", "A"), end("5.0"))

    more = say(dag, submit("6.0", "A"))

    assert over.is_over
    assert (more.events, more.offset) == (0, over.offset)


def test_the_number_of_queries_does_not_depend_on_the_number_of_events(alice: User) -> None:
    def parallel(count: int) -> list[str]:
        names = [f"N{number}" for number in range(count)]
        dag = follow(alice, "".join(f"JOB {name} a.sub\n" for name in names) + "JOB Last a.sub\n")
        events = [submit(f"{n}.0", name) for n, name in enumerate(names, 1)]
        events += [end(f"{n}.0") for n in range(1, count + 1)]
        with CaptureQueriesContext(connection) as queries:
            say(dag, *events)
        assert dag.nodes.filter(state="done").count() == count
        return [query["sql"] for query in queries]

    assert len(parallel(2)) == len(parallel(200))


def test_only_who_may_steer_the_dag_sends_its_log(alice: User, charlie: User) -> None:
    dag = follow(alice, "JOB A a.sub\n")

    with pytest.raises(NotPermitted):
        take(dag, b"", actor=Actor.person(charlie))


def test_what_cannot_be_followed_is_refused(alice: User) -> None:
    dag = follow(alice, "JOB A a.sub\n")
    who = Actor.person(alice)

    with pytest.raises(Conflict, match="only one that has not begun"):
        follow_log(dag.pk, name="x.log", actor=who, now=NOW)
    with pytest.raises(NotFound):
        follow_log(0, name="x.log", actor=who, now=NOW)
    with pytest.raises(NotFound):
        take_in(0, b"", offset=0, actor=who, now=NOW)
    with pytest.raises(InvalidInput, match="no time zone 'Mars'"):
        follow(alice, "JOB A a.sub\n", time_zone="Mars")
    with pytest.raises(InvalidInput, match="allow_events: must be from 0 to 127"):
        follow(alice, "JOB A a.sub\n", allow_events=128)
    with pytest.raises(InvalidInput, match="JOBB"):
        follow(alice, "JOBB A a.sub\n")


def test_pieces_that_cannot_be_read_are_refused(alice: User) -> None:
    dag = follow(alice, "JOB A a.sub\n")

    with pytest.raises(TooLarge):
        take(dag, b"x" * (MAX_CHUNK_BYTES + 1))
    with pytest.raises(Conflict, match="No event ends within"):
        take(dag, b"x" * MAX_CHUNK_BYTES)
    with pytest.raises(InvalidInput, match="only text can be read"):
        take(dag, b"<c>\n")
    with pytest.raises(InvalidInput, match="must not be negative"):
        take(dag, b"", -1)


def test_what_makes_no_sense_in_a_log_is_told(alice: User) -> None:
    dag = follow(alice, "JOB A a.sub\n")

    say(dag, "rubbish\n...\n", submit("5.0", "A"))

    assert states(dag) == {"A": "submitted"}
    assert dag.followed_log.warnings == ["byte 0: no event begins like this: 'rubbish'"]


def test_the_loops_leave_a_followed_dag_alone(alice: User, make_site: Any) -> None:
    make_site()
    dag = follow(alice, "JOB A a.sub\n")
    who = Actor.person(alice)

    negotiation.run_cycle(NOW)
    engine.run_cycle(NOW)
    hold_dags([dag.pk], actor=who, reason="look at it")
    engine.run_cycle(NOW)
    with pytest.raises(Conflict, match="is held: release it first"):
        say(dag, submit("5.0", "A"))
    release_dags([dag.pk], actor=who)
    negotiation.run_cycle(NOW)
    engine.run_cycle(NOW)

    dag.refresh_from_db()
    assert (dag.state, dag.site) == ("running", None)
    assert states(dag) == {"A": "ready"}
    assert not Job.objects.exists()
    assert (
        answer_for_dag(alice, dag.pk, now=NOW).summary
        == "The DAG is run elsewhere, and followed by its log."
    )


def test_a_followed_dag_can_be_removed(alice: User) -> None:
    dag = follow(alice, "JOB A a.sub\nFINAL F f.sub\n")
    say(dag, submit("5.0", "A"))

    remove_dags([dag.pk], actor=Actor.person(alice), reason="not wanted")

    dag.refresh_from_db()
    assert (dag.state, dag.status) == ("removed", 4)
    assert states(dag)["A"] == "failed"


def test_a_whole_chain_may_come_in_one_piece(alice: User) -> None:
    names = [f"N{number}" for number in range(30)]
    arcs = "".join(f"PARENT {a} CHILD {b}\n" for a, b in itertools.pairwise(names))
    dag = follow(alice, "".join(f"JOB {name} a.sub\n" for name in names) + arcs)

    events = [(submit(f"{n}.0", name), end(f"{n}.0")) for n, name in enumerate(names, 1)]
    say(dag, *itertools.chain.from_iterable(events))

    dag.refresh_from_db()
    assert (dag.state, dag.done_count) == ("completed", 30)
    assert_log_agrees(dag)


def test_a_child_over_a_weak_arc_begins_after_a_failure(alice: User) -> None:
    text = "JOB A a.sub\nJOB B b.sub\nJOB C c.sub\nWEAK PARENT A CHILD B\nPARENT A CHILD C\n"
    dag = follow(alice, text)

    say(dag, submit("5.0", "A"), end("5.0", 1), submit("6.0", "B"), end("6.0"))

    dag.refresh_from_db()
    assert states(dag) == {"A": "failed", "B": "done", "C": "futile"}
    assert dag.state == "failed"
    assert_log_agrees(dag)
