"""Labels and priority of DAGs: as they are given, and changed later."""

from __future__ import annotations

import pytest

from tests.wms.dags.driving import advance, claim_one, match, run_one
from wms.core.actors import Actor
from wms.core.errors import InvalidInput, NotPermitted, ReasonRequired
from wms.core.models import AuditEntry, User
from wms.dags.models import Dag
from wms.dags.negotiation.requests import idle_requests
from wms.dags.services.dags import remove_dags, rescue_dag
from wms.dags.services.labels_and_priority import prioritise_dags, relabel_dags
from wms.jobs.models import Job

WHY = {"actor": Actor.system("test"), "reason": "test"}
ONE = "JOB A step.sub\n"
OUTER = "JOB A step.sub\nSUBDAG EXTERNAL S inner.dag\nPARENT A CHILD S\n"
INNER = "JOB X step.sub\n"


def _described(text: str) -> dict[str, str]:
    return {"description_text": text + "\nqueue\n", "description_name": "dag.sub"}


def test_labels_are_those_of_the_submission_and_of_the_description(submit) -> None:
    dag = submit(ONE, labels=("night",), **_described("labels = campaign=mc27, higgs night"))

    assert dag.labels == ["campaign=mc27", "higgs", "night"]


def test_a_label_with_a_bad_character_is_refused_and_nothing_is_stored(submit) -> None:
    with pytest.raises(InvalidInput) as refused:
        submit(ONE, labels=("a b",))

    assert [fault.field for fault in refused.value.findings] == ["labels"]
    assert not Dag.objects.exists()


@pytest.mark.parametrize("command", ["priority = 11", "priority = high", f"labels = {'x' * 65}"])
def test_a_faulty_command_of_the_description_is_told_with_its_line(submit, command: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        submit(ONE, **_described(command))

    [fault] = refused.value.findings
    assert (fault.file, fault.line) == ("dag.sub", 1)


def test_more_labels_than_allowed_are_refused_wherever_they_come_from(submit) -> None:
    described = " ".join(f"d{number}" for number in range(15))
    with pytest.raises(InvalidInput):
        submit(ONE, labels=tuple(f"l{n}" for n in range(6)), **_described(f"labels = {described}"))


def test_labels_are_added_and_removed_with_reason_and_audit(submit, alice: User) -> None:
    dag = submit(ONE, labels=("old", "kept"))

    relabel_dags(
        [dag.pk], add=["campaign=mc27"], remove=["old"], actor=Actor.person(alice), reason="moved"
    )

    dag.refresh_from_db()
    assert dag.labels == ["kept", "campaign=mc27"]
    entry = AuditEntry.objects.get(action="label DAG")
    assert (entry.reason, entry.facts) == ("moved", {"add": ["campaign=mc27"], "remove": ["old"]})


def test_labels_are_changed_by_whom_it_belongs_to_and_with_a_reason(
    submit, alice: User, charlie: User
) -> None:
    dag = submit(ONE)

    with pytest.raises(NotPermitted):
        relabel_dags([dag.pk], add=["x"], actor=Actor.person(charlie), reason="why")
    with pytest.raises(ReasonRequired):
        relabel_dags([dag.pk], add=["x"], actor=Actor.person(alice), reason=" ")
    with pytest.raises(InvalidInput):
        relabel_dags([dag.pk], actor=Actor.person(alice), reason="nothing named")
    with pytest.raises(InvalidInput):
        relabel_dags([dag.pk], add=["x"], remove=["x"], actor=Actor.person(alice), reason="both")


def test_an_inner_dag_has_labels_and_priority_of_the_outer_one(submit, make_site) -> None:
    make_site("site-a")
    outer = match(submit(OUTER, labels=("a",), priority=4, files={"inner.dag": INNER}))
    run_one("A")
    advance(outer)
    inner = Dag.objects.get(parent_node__dag=outer)
    assert (inner.labels, inner.priority) == (["a"], 4)

    relabel_dags([outer.pk], add=["b"], **WHY)
    prioritise_dags([outer.pk], priority=7, **WHY)

    inner.refresh_from_db()
    assert (inner.labels, inner.priority) == (["a", "b"], 7)
    assert relabel_dags([inner.pk], add=["c"], **WHY).changed == []
    assert prioritise_dags([inner.pk], priority=2, **WHY).changed == []


def test_a_rescue_keeps_labels_and_priority(submit) -> None:
    dag = submit(ONE, labels=("campaign=mc27",), priority=3)
    remove_dags([dag.pk], **WHY)

    new = rescue_dag(dag.pk, **WHY)

    assert (new.labels, new.priority) == (["campaign=mc27"], 3)


def test_dags_of_a_higher_priority_are_negotiated_first(submit) -> None:
    usual, low, high = submit(ONE), submit(ONE, priority=0), submit(ONE, priority=5)

    assert [each.dag_id for each in idle_requests()] == [high.pk, usual.pk, low.pk]

    prioritise_dags([low.pk], priority=9, **WHY)

    assert [each.dag_id for each in idle_requests()] == [low.pk, high.pk, usual.pk]


def test_of_two_dags_for_one_place_that_of_the_higher_priority_gets_it(submit, make_site) -> None:
    make_site("site-a", max_matches=1)
    first, urgent = submit(ONE), submit(ONE, **_described("priority = 8"))

    match(first)

    urgent.refresh_from_db()
    first.refresh_from_db()
    assert (first.state, urgent.state) == ("idle", "running")


def test_jobs_have_the_priority_of_their_dag_and_waiting_ones_get_a_new_one(
    submit, make_site
) -> None:
    make_site("site-a")
    dag = match(submit("JOB A step.sub\nJOB B step.sub\nPARENT A CHILD B", priority=3))
    assert Job.objects.get(name="A").priority == 3

    applied = prioritise_dags([dag.pk], priority=8, **WHY)

    assert applied.changed == [dag.pk]
    assert Job.objects.get(name="A").priority == 8
    attempt = claim_one()
    assert attempt is not None
    run = Job.objects.get(pk=attempt.job_id)
    assert run.name == "A"


def test_jobs_that_come_later_have_the_new_priority(submit, make_site) -> None:
    make_site("site-a")
    dag = match(submit("JOB A step.sub\nJOB B step.sub\nPARENT A CHILD B"))
    assert Job.objects.get(name="A").priority == 1
    prioritise_dags([dag.pk], priority=8, **WHY)
    run_one("A")
    advance(dag)

    assert Job.objects.get(name="B").priority == 8


def test_the_jobs_of_a_preferred_dag_are_drawn_more_often(submit, make_site) -> None:
    """With the greatest priority they are drawn before all others of their TaskQueue."""
    make_site("site-a")
    match(submit("JOB A step.sub", dag_name="a.dag"))
    urgent = match(submit("JOB B step.sub", dag_name="b.dag"))
    prioritise_dags([urgent.pk], priority=10, **WHY)

    attempt = claim_one()

    assert attempt is not None
    assert Job.objects.get(pk=attempt.job_id).name == "B"


def test_a_dag_that_has_ended_keeps_its_priority(submit) -> None:
    dag = submit(ONE)
    remove_dags([dag.pk], **WHY)

    assert prioritise_dags([dag.pk], priority=5, **WHY).skipped == [dag.pk]


@pytest.mark.parametrize("priority", [-1, 11])
def test_a_priority_out_of_range_is_refused(submit, priority: int) -> None:
    dag = submit(ONE)

    with pytest.raises(InvalidInput):
        prioritise_dags([dag.pk], priority=priority, **WHY)
