from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from tests.wms.dags.files.samples import SAMPLES, sample
from tests.wms.dags.follow.event_log_writer import (
    NOW,
    SAMPLE_RUNS,
    abort,
    assert_log_agrees,
    end,
    execute,
    follow,
    head,
    nodes_of,
    post,
    say,
    skip,
    states,
    submit,
    take,
)
from wms.core.errors import Conflict
from wms.core.models import User
from wms.dags.exports.catalogue import export
from wms.dags.models import Dag, FollowedCluster, FollowedLog, FollowedProcess, NodeEvent
from wms.dags.states import DagCause
from wms.jobs.models import Job


@pytest.mark.slow
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
    assert "<OtherJob" in failed.state_reason


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

    with pytest.raises(Conflict, match=r"7.* 0 "):
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
    reason = dag.nodes.get(name="B").state_reason
    assert "POST" in reason
    assert "3" in reason


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

    progress = say(dag, submit("5.0", "A"), submit("6.0", "B"))

    dag.refresh_from_db()
    assert "node B" in progress.fault
    assert (dag.state, dag.status, dag.exit_code) == ("failed", 1, 1)
    assert dag.state_cause == DagCause.LOG
    assert dag.state_reason.endswith(progress.fault)


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

    progress = say(dag, submit("5.0", "A"), end("5.0"), submit("6.0", "A"))

    assert progress.fault.startswith("job 6.0: node A ")


def test_jobs_of_no_node_of_the_dag_are_passed_over_and_told(alice: User) -> None:
    dag = follow(alice, "JOB A a.sub\n")

    say(dag, submit("5.0", "Other"), head(0, "6.0", "Job submitted from host: <a>"), end("5.0", 1))

    assert states(dag) == {"A": "ready"}
    of_other, of_none = dag.followed_log.warnings
    assert "node Other" in of_other
    assert of_none.startswith("job 6.0 ")


def test_jobs_that_never_ended_are_told_when_the_dag_has_ended(alice: User) -> None:
    dag = follow(alice, "JOB A a.sub\n")

    say(dag, head(0, "6.0", "Job submitted from host: <a>"), submit("5.0", "A"), end("5.0"))

    log = FollowedLog.objects.get(dag=dag)
    assert (log.warning_count, log.warnings[-1][:7]) == (2, "1 jobs ")


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
