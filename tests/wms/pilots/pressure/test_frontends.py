"""Frontends: whose jobs wait, whose pilots are sent where, and which jobs these take."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.wms.pilots.claiming import ask, job_of, running_pilot, submit
from tests.wms.pilots.directing import direct, sent
from tests.wms.pilots.fake_element import FakeElement
from wms.accounting.frontends import delete_frontend, save_frontend
from wms.accounting.models import AccountingGroup, Frontend
from wms.core.actors import Actor
from wms.core.errors import Conflict, InvalidInput, NotPermitted
from wms.core.models import AuditEntry, User
from wms.explain.needs import MatchVerdict, explain_needs
from wms.jobs.attempts.rerun_needs import needs_of_more_time
from wms.jobs.models import Job
from wms.pilots.models import Pilot
from wms.pilots.pressure import director, submitter
from wms.pilots.pressure.pilot_limits import save_limit
from wms.pilots.pressure.selectors import (
    queues_of_expired_requests,
    requests_without_pilots,
)
from wms.pilots.pressure_models import (
    ElementContact,
    PilotLimit,
    PressureRecord,
    PressureRequest,
)
from wms.pilots.states import ALIVE
from wms.sites.frontends.entries import save_entry
from wms.sites.frontends.models import FrontendEntry
from wms.taskqueues.models import TaskQueue
from wms.taskqueues.selectors import needs_of

pytestmark = pytest.mark.django_db


def alive() -> Counter[str]:
    """Pilots that have not ended, by the names of their frontends."""
    rows = Pilot.objects.filter(state__in=ALIVE).values_list("frontend__name", flat=True)
    return Counter(name or "" for name in rows)


def submit_many(owner: User, group: str, count: int) -> None:
    for _ in range(count):
        submit(owner, group)


def test_pilots_are_sent_for_a_frontend_and_take_its_jobs_and_no_others(
    make_queue, collaboration, alice: User
) -> None:
    queue = make_queue()
    lsst = collaboration("lsst", queue)
    theirs, nobodys = submit(alice, "lsst"), submit(alice)

    assert sent() == {"site-a/main": 2}
    assert alive() == {"": 1, "lsst": 1}

    default, own = running_pilot(queue), running_pilot(queue, frontend=lsst)
    assert job_of(ask(default)) == nobodys
    assert job_of(ask(default)) is None
    assert job_of(ask(own)) == theirs
    submit(alice)
    assert job_of(ask(own)) is None


def test_a_frontend_has_pilots_where_it_has_an_entry_and_only_there(
    make_queue, collaboration, alice: User
) -> None:
    here, _ = make_queue("here"), make_queue("elsewhere")
    collaboration("lsst", here)
    submit_many(alice, "lsst", 3)

    assert sent() == {"elsewhere/main": 0, "here/main": 3}

    needs = needs_of(TaskQueue.objects.get())
    fits = {fit.site: fit for fit in explain_needs(needs, now=timezone.now()).queues}
    assert not fits["here"].refusal
    assert fits["elsewhere"].refusal


def test_jobs_of_a_frontend_without_any_entry_can_run_nowhere_and_that_is_told(
    make_queue, collaboration, alice: User
) -> None:
    make_queue()
    collaboration("lsst")
    submit(alice, "lsst")

    assert sent() == {"site-a/main": 0}

    told = explain_needs(needs_of(TaskQueue.objects.get()), now=timezone.now())
    assert told.verdict == MatchVerdict.NEVER


def test_frontends_share_the_places_of_a_queue_and_what_one_leaves_the_other_uses(
    make_queue, collaboration, alice: User
) -> None:
    queue = make_queue(max_pilots=12, max_queued_pilots=12)
    collaboration("atlas", queue, share=2.0)
    collaboration("lsst", queue, share=1.0)
    submit_many(alice, "atlas", 2)
    submit_many(alice, "lsst", 30)
    sent()
    assert alive() == {"atlas": 2, "lsst": 10}

    Pilot.objects.filter(frontend__name="lsst").update(state="done", token_sha256="x")
    submit_many(alice, "atlas", 30)
    sent()
    assert alive() == {"atlas": 8, "lsst": 4}
    request = PressureRequest.objects.get(frontend__name="lsst")
    assert (request.granted, request.ceiling) == (4, 4)


def test_places_for_waiting_pilots_are_shared_too(make_queue, collaboration, alice: User) -> None:
    queue = make_queue(max_pilots=100, max_queued_pilots=9)
    collaboration("atlas", queue, share=2.0)
    collaboration("lsst", queue, share=1.0)
    submit_many(alice, "atlas", 30)
    submit_many(alice, "lsst", 30)

    sent()
    sent()

    assert alive() == {"atlas": 6, "lsst": 3}


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 3])
def test_a_small_share_gets_its_turn_of_few_waiting_places(
    make_queue, collaboration, alice: User, most: int
) -> None:
    queue = make_queue(max_pilots=1000, max_queued_pilots=most)
    collaboration("atlas", queue, share=10.0)
    collaboration("lsst", queue, share=1.0)
    submit_many(alice, "atlas", 60)
    submit_many(alice, "lsst", 60)

    for _ in range(24):
        sent()
        starting = Pilot.objects.filter(state="queued")
        starting.update(state="running", token_sha256="x", is_draining=True)

    assert alive()["lsst"] >= 24 * most // 11


def test_the_limit_of_one_turn_is_of_all_frontends_together(
    make_queue, collaboration, alice: User
) -> None:
    queue = make_queue(max_submits=5)
    collaboration("atlas", queue)
    collaboration("lsst", queue)
    submit_many(alice, "atlas", 4)
    submit_many(alice, "lsst", 4)

    assert sent() == {"site-a/main": 5}
    assert sent() == {"site-a/main": 3}


def test_an_entry_that_goes_during_a_turn_gets_nothing_and_pauses_nobody(
    make_queue, collaboration, alice: User, elements
) -> None:
    queue = make_queue()
    elements["site-a"] = GoingElement()
    collaboration("atlas", queue)
    submit(alice)
    submit(alice, "atlas")

    assert sent() == {"site-a/main": 1}
    assert not ElementContact.objects.filter(failures__gt=0).exists()


class GoingElement(FakeElement):
    """Takes pilots while the requests of all other frontends go."""

    def submit(self, count: int, script: str, **how: object) -> list[str]:
        PressureRequest.objects.filter(submitted=0, served_at=None).exclude(
            pk=PressureRequest.objects.order_by("pk")[0].pk
        ).delete()
        return super().submit(count, script, **how)  # type: ignore[arg-type]


def test_a_job_that_needs_more_time_looks_at_queues_of_its_frontend_only(
    make_queue, collaboration, alice: User
) -> None:
    make_queue("long", wall_time_s=259_200)
    collaboration("lsst", make_queue("short", wall_time_s=21_600))
    job = Job.objects.get(pk=submit(alice, "lsst", cpu_time_s=500))
    job.give(wall_limit_s=172_800)

    assert needs_of_more_time(job, 21_000, timezone.now()) is None
    assert needs_of_more_time(job, 3_600, timezone.now()) is not None


def test_the_limits_of_an_entry_and_of_a_frontend_hold(
    make_queue, collaboration, alice: User, olga: User
) -> None:
    queue, other = make_queue(), make_queue("site-b")
    lsst = collaboration("lsst", queue, other, max_pilots=2)
    submit_many(alice, "lsst", 8)
    limit = PilotLimit(scope="frontend", frontend=lsst, max_pilots=3)
    save_limit(limit, actor=Actor.person(olga))

    assert sorted(sent().values()) == [1, 2]
    assert sent() == {"site-a/main": 0, "site-b/main": 0}


def test_the_default_frontend_is_kept_out_of_a_queue_by_an_entry_without_a_share(
    make_queue, collaboration, alice: User, olga: User
) -> None:
    queue = make_queue()
    collaboration("lsst", queue)
    save_entry(FrontendEntry(queue=queue, share=0.0), actor=Actor.person(olga))
    submit(alice)
    submit(alice, "lsst")

    assert sent() == {"site-a/main": 1}
    assert alive() == {"lsst": 1}


@pytest.mark.slow
def test_what_waits_of_a_frontend_that_is_switched_off_is_taken_back_and_what_runs_goes_on(
    make_queue, collaboration, alice: User, olga: User
) -> None:
    queue = make_queue()
    lsst = collaboration("lsst", queue)
    running = running_pilot(queue, frontend=lsst)
    submit_many(alice, "lsst", 3)
    now = timezone.now()
    direct(now)
    assert alive() == {"lsst": 4}

    lsst.is_enabled = False
    save_frontend(lsst, actor=Actor.person(olga))
    for minutes in range(1, 20):
        direct(now + timedelta(minutes=minutes))

    assert list(Pilot.objects.filter(state__in=ALIVE)) == [running]
    assert PressureRequest.objects.get(frontend=lsst).granted == 0
    Pilot.objects.filter(pk=running.pk).update(state="done")
    direct(now + timedelta(minutes=30))
    assert not PressureRequest.objects.filter(frontend=lsst).exists()


def test_a_group_that_changes_its_frontend_takes_its_waiting_jobs_along(
    make_queue, collaboration, alice: User
) -> None:
    queue = make_queue()
    lsst, atlas = collaboration("lsst", queue), collaboration("atlas", queue)
    job = submit(alice, "lsst")
    AccountingGroup.objects.filter(name="lsst").update(frontend=atlas)

    assert ask(running_pilot(queue, frontend=lsst)).work is None
    assert job_of(ask(running_pilot(queue, frontend=atlas))) == job


def test_each_frontend_has_its_own_record(make_queue, collaboration, alice: User) -> None:
    collaboration("lsst", make_queue())
    submit(alice, "lsst")
    submit(alice)

    sent()
    sent(timezone.now() + timedelta(minutes=2))

    submitted = Counter(PressureRecord.objects.values_list("frontend__name", "submitted"))
    assert submitted == {("lsst", 1): 1, (None, 1): 1, ("lsst", 0): 1, (None, 0): 1}


def test_the_number_of_queries_does_not_grow_with_frontends(
    make_queue, collaboration, alice: User, django_assert_num_queries
) -> None:
    queue = make_queue()
    collaboration("first", queue)
    submit(alice, "first")
    with CaptureQueriesContext(connection) as few:
        director.plan_requests(timezone.now())
    for number in range(8):
        collaboration(f"more-{number}", queue)
        submit(alice, f"more-{number}")

    with django_assert_num_queries(len(few)):
        director.plan_requests(timezone.now())


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"share": -1.0}, "share"),
        ({"max_pilots": 0}, "max_pilots"),
        ({"max_pilots": 3, "max_queued_pilots": 4}, "max_queued_pilots"),
        ({"max_pilots": 11}, "max_pilots"),
        ({"max_queued_pilots": 11}, "max_queued_pilots"),
        ({"share": 0.0, "max_queued_pilots": 1}, "max_queued_pilots"),
        ({"max_pilots": 8}, "max_pilots"),
    ],
)
def test_an_entry_that_contradicts_itself_is_refused(
    make_queue, collaboration, olga: User, fields: dict[str, object], field: str
) -> None:
    lsst = collaboration("lsst")
    limit = PilotLimit(scope="frontend", frontend=lsst, max_pilots=7)
    save_limit(limit, actor=Actor.person(olga))
    entry = FrontendEntry(frontend=lsst, queue=make_queue(), **fields)  # type: ignore[misc]

    with pytest.raises(InvalidInput) as refused:
        save_entry(entry, actor=Actor.person(olga))

    assert {finding.field for finding in refused.value.findings} == {field}
    assert not FrontendEntry.objects.exists()


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"max_pilots": 3}, "max_pilots"),
        ({"max_pilots": 9, "curb_pilots": 10}, "curb_pilots"),
        ({"max_idle_pilots": 1, "curb_idle_pilots": 2}, "curb_idle_pilots"),
    ],
)
def test_a_limit_that_contradicts_itself_or_an_entry_is_refused(
    make_queue, collaboration, olga: User, fields: dict[str, int], field: str
) -> None:
    lsst = collaboration("lsst", make_queue(), max_pilots=4)
    for whose in (lsst, None):
        limit = PilotLimit(scope="frontend", frontend=whose, **fields)
        with pytest.raises(InvalidInput) as refused:
            save_limit(limit, actor=Actor.person(olga))
        assert [finding.field for finding in refused.value.findings] == [field]
    assert not PilotLimit.objects.exists()


def test_what_waits_for_a_request_that_nobody_renews_is_taken_back_and_what_runs_goes_on(
    make_queue, collaboration, alice: User
) -> None:
    queue = make_queue(max_removals=2)
    lsst = collaboration("lsst", queue)
    submit_many(alice, "lsst", 3)
    now = timezone.now()
    direct(now)
    running = running_pilot(queue, frontend=lsst)

    def at(seconds: int) -> list[int]:
        moment = now + timedelta(seconds=seconds)
        return [queue.pk] if queues_of_expired_requests(moment) == [queue.pk] else []

    assert at(899) == []
    assert at(901) == [queue.pk]
    submitter.serve(queue.pk, now + timedelta(seconds=901))
    submitter.serve(queue.pk, now + timedelta(seconds=930))
    assert alive() == {"lsst": 4}

    for seconds in (962, 1030):
        submitter.serve(queue.pk, now + timedelta(seconds=seconds))
    assert list(Pilot.objects.filter(state__in=ALIVE)) == [running]
    assert at(1100) == []
    request = PressureRequest.objects.get(frontend=lsst)
    assert request.turn_reasons
    assert request.expired_at is not None

    direct(now + timedelta(seconds=1200))
    request.refresh_from_db()
    assert request.expired_at is None
    assert request.submitted >= 3


def test_a_queue_without_pilots_is_told_once_for_all_frontends(
    make_queue, collaboration, alice: User, olga: User
) -> None:
    collaboration("lsst", make_queue())
    submit_many(alice, "lsst", 3)
    submit(alice)
    now = timezone.now()
    director.plan_requests(now)

    [request] = requests_without_pilots(olga, now)
    assert request.all_jobs == 4


def test_a_queue_of_private_pilots_has_no_entries(make_queue, collaboration, olga: User) -> None:
    lsst, queue = collaboration("lsst"), make_queue(is_private=True)

    with pytest.raises(InvalidInput):
        save_entry(FrontendEntry(frontend=lsst, queue=queue), actor=Actor.person(olga))


def test_a_frontend_that_is_needed_is_not_deleted_and_operators_alone_change_any(
    make_queue, collaboration, olga: User, alice: User
) -> None:
    lsst = collaboration("lsst", make_queue())
    with pytest.raises(Conflict):
        delete_frontend(lsst, actor=Actor.person(olga))
    with pytest.raises(NotPermitted):
        save_frontend(Frontend(name="mine"), actor=Actor.person(alice))
    with pytest.raises(InvalidInput):
        save_frontend(Frontend(name="LSST"), actor=Actor.person(olga))

    FrontendEntry.objects.all().delete()
    AccountingGroup.objects.update(frontend=None)
    delete_frontend(lsst, actor=Actor.person(olga), reason="merged")

    assert not Frontend.objects.exists()
    assert AuditEntry.objects.filter(action="delete frontend", reason="merged").exists()
