"""DAGs with `binding = job`: each job runs wherever a pilot of an accepting site draws it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.wms.dags.driving import (
    NOW,
    advance,
    assert_log_agrees,
    claim_one,
    end,
    match,
    run_all,
    states,
)
from wms.core.actors import Actor
from wms.core.errors import InvalidInput
from wms.core.models import User
from wms.dags.models import Dag, MatchRecord
from wms.dags.negotiation import cycle as negotiation
from wms.dags.services import dags as services
from wms.jobs.binding.scopes import NOWHERE, sites_of
from wms.jobs.models import Job, SiteScope, SiteSet
from wms.sites import services as site_services
from wms.taskqueues.models import TaskQueue, WaitingJob

pytestmark = pytest.mark.django_db
JOB = "binding = job\n"
TWO = "JOB A step.sub\nJOB B step.sub\n"

Make = Callable[..., Any]


@pytest.fixture
def sites(make_site: Make) -> dict[str, Any]:
    """Two sites that take everybody, and one that takes nobody's DAGs."""
    return {
        "site-a": make_site("site-a", environment="ROOT=/data/a"),
        "site-b": make_site("site-b", environment="ROOT=/data/b"),
        "site-c": make_site("site-c", requirements="false && CurMatches < MaxMatches"),
    }


@pytest.fixture
def late(submit: Make) -> Callable[..., Dag]:
    def make(text: str = TWO, *, description: str = JOB, **fields: Any) -> Dag:
        return submit(text, description_text=description, description_name="dag.sub", **fields)

    return make


def accepting(dag: Dag) -> set[str]:
    return set(sites_of([dag.pk])[dag.pk])


def waiting_sites() -> set[str]:
    """Sites in the TaskQueues in which jobs wait."""
    queues = TaskQueue.objects.filter(pk__in=WaitingJob.objects.values("task_queue_id"))
    return {site for names in queues.values_list("sites", flat=True) for site in names}


def test_it_runs_without_a_site_at_all_sites_that_accept_it(sites: Any, late: Make) -> None:
    dag = match(late())

    assert (dag.state, dag.site_id, dag.matched_at) == ("running", None, NOW)
    assert accepting(dag) == {"site-a", "site-b"} == waiting_sites()
    assert not MatchRecord.objects.exists()
    assert claim_one("site-c") is None


def test_its_jobs_run_at_different_sites(sites: Any, late: Make) -> None:
    dag = match(late())

    for site in ("site-a", "site-b"):
        attempt = claim_one(site)
        assert attempt is not None
        end(attempt)
    dag = advance(dag)

    assert dag.state == "completed"
    assert set(Job.objects.values_list("site_name", flat=True)) == {"site-a", "site-b"}
    assert_log_agrees(dag)


def test_binding_by_site_stays_the_default(sites: Any, submit: Make) -> None:
    dag = match(submit(TWO))

    assert dag.binding == "site"
    assert dag.site is not None
    assert waiting_sites() == {dag.site.name}
    assert not SiteScope.objects.exists()


def test_one_that_no_site_accepts_stays_idle_with_the_reason(sites: Any, late: Make) -> None:
    dag = match(late(description=JOB + "requirements = TARGET.Cores >= 8\n"))

    assert (dag.state, dag.unmatched_kind) == ("idle", "no site fits")
    assert dag.unmatched_reason


def test_it_takes_no_place_and_needs_none(make_site: Make, submit: Make, late: Make) -> None:
    make_site("site-a", max_matches=1)
    match(submit(TWO))

    dag = match(late())

    assert dag.state == "running"
    assert accepting(dag) == {"site-a"}


def test_it_waits_for_a_concurrency_limit(sites: Any, late: Make, olga: User) -> None:
    from wms.accounting.models import ConcurrencyLimit

    ConcurrencyLimit.objects.create(name="db", maximum=1)
    description = JOB + "concurrency_limits = db\n"
    first, second = late(description=description), late(description=description)

    match(first)
    second.refresh_from_db()

    assert {first.refresh_from_db() or first.state, second.state} == {"running", "idle"}
    waiting = second if second.state == "idle" else first
    assert waiting.unmatched_kind == "a concurrency limit is used up"


@pytest.mark.slow
def test_its_waiting_jobs_move_when_a_site_closes_and_opens(
    sites: Any, late: Make, olga: User
) -> None:
    dag = match(late())
    assert claim_one("site-b") is not None

    site_services.ban_site("site-b", actor=Actor.person(olga), reason="new disks")
    match(dag)

    assert accepting(dag) == {"site-a"} == waiting_sites()
    assert claim_one("site-b") is None
    site_services.unban_site("site-b", actor=Actor.person(olga), reason="they are in")
    match(dag)
    assert accepting(dag) == {"site-a", "site-b"} == waiting_sites()
    assert SiteSet.objects.count() == 1


@pytest.mark.slow
def test_jobs_that_no_site_accepts_any_more_wait_until_one_does(
    sites: Any, late: Make, olga: User
) -> None:
    dag = match(late())
    for name in ("site-a", "site-b"):
        site_services.ban_site(name, actor=Actor.person(olga), reason="power cut")

    dag = match(dag)

    assert (dag.state, dag.unmatched_kind) == ("running", "fitting sites are closed")
    assert waiting_sites() == set(NOWHERE)
    assert claim_one("site-a") is None
    site_services.unban_site("site-a", actor=Actor.person(olga), reason="it is back")
    dag = match(dag)
    assert (dag.unmatched_kind, waiting_sites()) == ("", {"site-a"})


def test_jobs_keep_to_the_sites_that_they_ask_for(sites: Any, late: Make) -> None:
    wants = {"step.sub": 'executable = step.sh\n+Sites = "site-b, site-c"\n+BannedSites = "x"\n'}
    match(late(files=wants))

    assert waiting_sites() == {"site-b"}
    assert Job.objects.first().needs["sites"] == ["site-b", "site-c"]


@pytest.mark.slow
def test_held_and_released_it_goes_on_at_the_sites_of_now(
    sites: Any, late: Make, olga: User, alice: User
) -> None:
    dag = match(late())
    services.hold_dags([dag.pk], actor=Actor.person(alice), reason="wait")
    assert not WaitingJob.objects.exists()
    site_services.ban_site("site-a", actor=Actor.person(olga), reason="new disks")
    match(dag)

    services.release_dags([dag.pk], actor=Actor.person(alice))
    dag = advance(dag)

    assert dag.state == "running"
    assert waiting_sites() == {"site-b"}


@pytest.mark.slow
def test_halted_it_ends_with_a_rescue_when_its_jobs_have_ended(
    sites: Any, late: Make, alice: User
) -> None:
    dag = match(late("JOB A step.sub\nJOB B step.sub\nPARENT A CHILD B\n"))
    services.halt_dags([dag.pk], actor=Actor.person(alice), reason="enough")
    attempt = claim_one("site-b")
    assert attempt is not None
    end(attempt)

    dag = advance(dag)

    assert dag.state == "failed"
    run = services.rescue_dag(dag.pk, actor=Actor.person(alice), reason="go on")
    assert run.binding == "job"
    run = run_all(match(run))
    assert run.state == "completed"


@pytest.mark.slow
def test_rematched_it_is_negotiated_anew(sites: Any, late: Make, alice: User) -> None:
    dag = match(late())

    services.rematch_dags([dag.pk], actor=Actor.person(alice), reason="try again")
    dag.refresh_from_db()

    assert (dag.state, dag.matched_at, dag.rematch_count) == ("idle", None, 1)
    assert not WaitingJob.objects.exists()
    dag = match(dag)
    assert dag.state == "running"
    assert states(dag) == {"A": "submitted", "B": "submitted"}


@pytest.mark.slow
def test_dags_inside_of_it_share_its_sites(sites: Any, late: Make, olga: User) -> None:
    dag = match(late("SUBDAG EXTERNAL S inner.dag\n", files={"inner.dag": "JOB I step.sub\n"}))
    dag = advance(dag)
    inner = Dag.objects.get(parent_node__dag=dag)

    assert (inner.state, inner.binding, inner.site_id) == ("running", "job", None)
    assert waiting_sites() == {"site-a", "site-b"}
    site_services.ban_site("site-b", actor=Actor.person(olga), reason="new disks")
    match(dag)
    assert waiting_sites() == {"site-a"}
    assert run_all(dag).state == "completed"


def test_a_retry_avoids_the_sites_that_failed_until_none_is_left(sites: Any, late: Make) -> None:
    dag = match(late("JOB A step.sub\nRETRY A 2 AVOID-SITES\n"))
    for site, left in (("site-a", {"site-b"}), ("site-b", {"site-a", "site-b"})):
        attempt = claim_one(site)
        assert attempt is not None
        end(attempt, 1)
        dag = advance(dag)
        assert waiting_sites() == left


def test_a_retry_of_a_list_avoids_only_the_sites_where_jobs_of_it_failed(
    sites: Any, late: Make
) -> None:
    text = "executable = step.sh\nrequest_memory = 10\nqueue 2"
    dag = match(late("JOB A a.sub\nRETRY A 1 AVOID-SITES\n", files={"a.sub": text}))
    for site, code in (("site-a", 0), ("site-b", 1)):
        attempt = claim_one(site)
        assert attempt is not None
        end(attempt, code)

    advance(dag)

    assert waiting_sites() == {"site-a"}


@pytest.mark.parametrize(
    ("description", "line"),
    [
        ("\nbinding = pilot\n", 2),
        ("binding = job\nperiodic_rematch = QueuedSeconds > 60\n", 2),
        ("binding = job\n\nrank = TARGET.Cores\n", 3),
    ],
)
def test_faults_of_the_description_name_their_lines(
    late: Make, description: str, line: int
) -> None:
    with pytest.raises(InvalidInput) as refused:
        late(description=description)

    assert [(each.file, each.line) for each in refused.value.findings] == [("dag.sub", line)]
    assert not Dag.objects.exists()


def test_a_cycle_that_changes_nothing_writes_nothing_of_it(sites: Any, late: Make) -> None:
    dag = match(late())
    before = SiteScope.objects.get(pk=dag.pk).changed_at

    negotiation.run_cycle(NOW)

    assert SiteScope.objects.get(pk=dag.pk).changed_at == before
