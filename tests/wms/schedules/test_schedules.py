"""Schedules: what they submit and when, what if they cannot, and that each time counts once."""

from __future__ import annotations

import io
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from tests import factories
from tests.stored_files import blob_path
from wms.accounting.models import AccountingGroup, Frontend, Quota
from wms.accounting.services import save_quota
from wms.core.actors import Actor
from wms.core.errors import (
    Conflict,
    InvalidInput,
    NotFound,
    NotPermitted,
    QuotaExceeded,
    ReasonRequired,
)
from wms.core.models import AuditEntry, Role, User
from wms.dags.models import Dag
from wms.dags.services.dags import remove_dags
from wms.dags.submission.submit import DagSubmission
from wms.jobs.content import unnamed_contents
from wms.jobs.quotas import Holder, usage_of
from wms.notices import fanout
from wms.notices.models import Notice
from wms.schedules import services, submitting
from wms.schedules.models import Schedule, ScheduleRun
from wms.schedules.selectors import find_schedule, visible_schedules
from wms.schedules.services import ScheduleTerms, create_schedule

MONDAY = datetime(2100, 3, 1, 6, tzinfo=UTC)
WEEK = timedelta(days=7)
WHY = {"actor": Actor.system("test"), "reason": "test"}
FILES = {"job.sub": factories.SUBMIT_FILE.encode(), "run.sh": b"#!/bin/sh\n"}


def make(owner: User, *, text: str | None = None, submission: Any = None, **terms: Any) -> Schedule:
    """A schedule for each Monday at six; `submission` are further fields of the DAG."""
    schedule = create_schedule(
        DagSubmission(
            dag_name="weekly.dag",
            dag_text=factories.dag_text(2) if text is None else text,
            files={name: io.BytesIO(content) for name, content in FILES.items()},
            **(submission or {}),
        ),
        ScheduleTerms(**{"name": "weekly", "cron": "0 6 * * mon", **terms}),
        owner=owner,
        actor=Actor.person(owner),
    )
    Schedule.objects.filter(pk=schedule.pk).update(next_at=MONDAY)
    schedule.refresh_from_db()
    return schedule


def outcomes(schedule: Schedule) -> list[tuple[datetime, str]]:
    return list(schedule.runs.order_by("planned_at").values_list("planned_at", "outcome"))


def test_a_schedule_submits_its_dag_at_each_of_its_times(alice: User) -> None:
    schedule = make(
        alice,
        submission={
            "labels": ("campaign=mc27",), "priority": 4, "options": {"max_jobs": 7},
            "description_text": "labels = nightly\nqueue\n", "description_name": "dag.sub",
        },
    )  # fmt: skip
    assert submitting.run_cycle(MONDAY - timedelta(seconds=1)) == {"due": 0, "submitted": 0}

    for week in range(2):
        Dag.objects.update(state="completed")
        report = submitting.run_cycle(MONDAY + week * WEEK + timedelta(seconds=5))
        assert report == {"due": 1, "submitted": 1}

    first, second = Dag.objects.order_by("pk")
    assert first.workspace_id != second.workspace_id
    assert (second.owner, second.labels, second.priority) == (
        alice, ["nightly", "campaign=mc27"], 4,
    )  # fmt: skip
    assert second.options["max_jobs"] == 7
    assert sorted(second.workspace.files.values_list("path", flat=True)) == [
        "dag.sub", "job.sub", "run.sh", "weekly.dag",
    ]  # fmt: skip
    schedule.refresh_from_db()
    assert schedule.next_at == MONDAY + 2 * WEEK
    assert outcomes(schedule) == [(MONDAY, "submitted"), (MONDAY + WEEK, "submitted")]


def test_a_schedule_takes_files_that_are_larger_than_one_request(
    alice: User, settings: Any
) -> None:
    schedule = make(alice)
    # Less than any of its files, as an upload may be more than what one request may have.
    settings.PILOTAGE = {**settings.PILOTAGE, "MAX_UPLOAD_BYTES": 5}

    submitting.run_cycle(MONDAY)

    assert outcomes(schedule) == [(MONDAY, "submitted")]
    stored = Dag.objects.get().workspace.files.get(path="run.sh")
    assert stored.blob_id == schedule.files.get(path="run.sh").blob_id


@pytest.mark.parametrize("of", ["user", "group"])
def test_files_of_a_schedule_count_for_quotas_until_it_is_removed(alice: User, of: str) -> None:
    group = factories.accounting(alice)
    text = "accounting_group = physics\nqueue\n"
    submission = {"description_text": text, "description_name": "dag.sub"}
    schedule = make(alice, submission=submission)
    holder = Holder(user=alice) if of == "user" else Holder(group=group)
    kept = sum(each.blob.size_bytes for each in schedule.files.all())

    assert kept > 0
    assert usage_of(holder).size_bytes == kept
    services.pause_schedules([schedule.pk], **WHY)
    assert usage_of(holder).size_bytes == kept
    services.remove_schedules([schedule.pk], **WHY)
    assert usage_of(holder).size_bytes == 0


def test_a_time_whose_file_the_disk_has_lost_is_told_as_refused(alice: User) -> None:
    schedule = make(alice)
    lost = schedule.files.get(path="run.sh").blob_id
    blob_path(lost).unlink()

    submitting.run_cycle(MONDAY)

    assert outcomes(schedule) == [(MONDAY, "failed")]
    assert lost in schedule.runs.get().reason


def test_nothing_is_submitted_while_the_dag_before_goes_on(alice: User) -> None:
    schedule = make(alice)
    submitting.run_cycle(MONDAY)
    submitting.run_cycle(MONDAY + WEEK)
    remove_dags([Dag.objects.get().pk], **WHY)
    submitting.run_cycle(MONDAY + 2 * WEEK)

    assert [outcome for _, outcome in outcomes(schedule)] == ["submitted", "overlap", "submitted"]
    assert "DAG" in schedule.runs.get(outcome="overlap").reason


def test_a_rescue_of_the_dag_before_counts_as_that(alice: User) -> None:
    schedule = make(alice)
    submitting.run_cycle(MONDAY)
    dag = Dag.objects.get()
    Dag.objects.filter(pk=dag.pk).update(state="failed")
    Dag.objects.create(name="again", owner=alice, workspace=dag.workspace, previous_run=dag)
    submitting.run_cycle(MONDAY + WEEK)

    assert outcomes(schedule)[-1][1] == "overlap"


def test_an_overlap_may_be_allowed(alice: User) -> None:
    schedule = make(alice, allows_overlap=True)
    submitting.run_cycle(MONDAY)
    submitting.run_cycle(MONDAY + WEEK)

    assert Dag.objects.count() == 2
    assert [outcome for _, outcome in outcomes(schedule)] == ["submitted"] * 2


def test_times_that_were_missed_are_told_and_the_latest_is_made_up_for(alice: User) -> None:
    schedule = make(alice)
    submitting.run_cycle(MONDAY + 2 * WEEK + timedelta(minutes=59))

    assert outcomes(schedule) == [
        (MONDAY, "missed"), (MONDAY + WEEK, "missed"), (MONDAY + 2 * WEEK, "submitted"),
    ]  # fmt: skip
    fanout.run_cycle(timezone.now())
    assert Notice.objects.filter(user=alice, kind="not-submitted").count() == 2


def test_a_time_that_is_too_long_ago_is_missed_too(alice: User) -> None:
    schedule = make(alice)
    submitting.run_cycle(MONDAY + timedelta(minutes=61))

    assert outcomes(schedule) == [(MONDAY, "missed")]
    assert not Dag.objects.exists()
    schedule.refresh_from_db()
    assert schedule.next_at == MONDAY + WEEK


def test_after_a_very_long_outage_the_latest_time_is_found_at_once(alice: User) -> None:
    schedule = make(alice, cron="* * * * *", grace_s=300)
    now = MONDAY + timedelta(days=200, seconds=30)
    submitting.run_cycle(now)

    assert outcomes(schedule)[-1] == (MONDAY + timedelta(days=200), "submitted")
    assert schedule.runs.filter(outcome="missed").count() == submitting._MISSED_KEPT


def test_a_schedule_that_fails_tells_its_owner_and_goes_on(alice: User, charlie: User) -> None:
    schedule = make(alice)
    User.objects.filter(pk=alice.pk).update(role=Role.VIEWER)
    submitting.run_cycle(MONDAY)
    fanout.run_cycle(timezone.now())

    [(_, outcome)] = outcomes(schedule)
    assert outcome == "failed"
    [notice] = Notice.objects.all()
    assert (notice.user, notice.kind, notice.subject_id) == (
        alice, "not-submitted", str(schedule.pk),
    )  # fmt: skip
    assert "submit DAGs" in notice.text
    User.objects.filter(pk=alice.pk).update(role=Role.USER)
    submitting.run_cycle(MONDAY + WEEK)
    assert outcomes(schedule)[-1][1] == "submitted"


def test_a_fault_of_one_schedule_holds_up_no_other(alice: User) -> None:
    broken, well = make(alice, name="a"), make(alice, name="b")
    Schedule.objects.filter(pk=broken.pk).update(dag_files=["nowhere.dag"])
    submitting.run_cycle(MONDAY)

    assert outcomes(broken)[0][1] == "failed"
    assert outcomes(well)[0][1] == "submitted"
    broken.refresh_from_db()
    assert broken.next_at == MONDAY + WEEK


def test_a_process_that_is_killed_in_between_has_submitted_nothing(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = make(alice)

    def killed(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as broken:
        # The DAG and its record are written then.
        broken.setattr(submitting, "_advance", killed)
        with pytest.raises(SystemExit):
            submitting.run_cycle(MONDAY)

    assert not Dag.objects.exists()
    assert outcomes(schedule) == []
    submitting.run_cycle(MONDAY)
    submitting.run_cycle(MONDAY)
    assert Dag.objects.count() == 1


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_many_processes_at_once_submit_a_time_once() -> None:
    alice = User.objects.create_user("alice", role=Role.USER)
    schedules = [make(alice, name=f"s{number}") for number in range(3)]
    start = threading.Barrier(4)

    def one() -> None:
        start.wait()
        try:
            submitting.run_cycle(MONDAY)
        finally:
            connection.close()

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    submitting.run_cycle(MONDAY)

    assert Dag.objects.count() == 3
    assert [outcomes(each) for each in schedules] == [[(MONDAY, "submitted")]] * 3


def test_so_many_records_are_kept_as_were_asked_for(alice: User) -> None:
    schedule = make(alice, kept_runs=2, allows_overlap=False)
    for week in range(4):
        Dag.objects.update(state="completed")
        submitting.run_cycle(MONDAY + week * WEEK)

    assert [at for at, _ in outcomes(schedule)] == [MONDAY + 2 * WEEK, MONDAY + 3 * WEEK]
    assert Dag.objects.count() == 4


def test_a_dag_that_goes_on_is_known_however_few_records_are_kept(alice: User) -> None:
    schedule = make(alice, kept_runs=1)
    for week in range(3):
        submitting.run_cycle(MONDAY + week * WEEK)

    assert Dag.objects.count() == 1
    assert [outcome for _, outcome in outcomes(schedule)] == ["submitted", "overlap"]


def test_a_paused_schedule_submits_nothing_and_goes_on_later(alice: User) -> None:
    schedule = make(alice)
    services.pause_schedules([schedule.pk], actor=Actor.person(alice), reason="holidays")
    submitting.run_cycle(MONDAY + WEEK)
    assert not ScheduleRun.objects.exists()

    services.resume_schedules([schedule.pk], actor=Actor.person(alice), reason="back")

    schedule.refresh_from_db()
    assert schedule.state == "active"
    assert schedule.next_at is not None
    assert schedule.next_at > timezone.now()
    assert [event.event for event in schedule.events.order_by("pk")] == ["pause", "resume"]
    assert AuditEntry.objects.filter(object_kind="schedule", reason="holidays").count() == 1


def test_a_removed_schedule_is_over_and_its_name_is_free(alice: User) -> None:
    schedule = make(alice)
    with pytest.raises(Conflict):
        make(alice)
    services.remove_schedules([schedule.pk], actor=Actor.person(alice), reason="done")
    submitting.run_cycle(MONDAY)

    assert not Dag.objects.exists()
    assert not schedule.files.exists()
    assert services.resume_schedules([schedule.pk], **WHY).changed == []
    make(alice)


def test_schedules_are_steered_by_their_owners_and_shifters(
    alice: User, charlie: User, sam: User
) -> None:
    schedule = make(alice)

    with pytest.raises(NotPermitted):
        services.pause_schedules([schedule.pk], actor=Actor.person(charlie), reason="x")
    with pytest.raises(ReasonRequired):
        services.pause_schedules([schedule.pk], actor=Actor.person(alice), reason=" ")
    with pytest.raises(NotFound):
        services.pause_schedules([schedule.pk + 99], actor=Actor.person(alice), reason="x")

    assert services.pause_schedules([schedule.pk], actor=Actor.person(sam), reason="x").changed


def test_walls_stand_before_schedules(alice: User, charlie: User) -> None:
    group = AccountingGroup.objects.create(
        name="atlas", frontend=Frontend.objects.create(name="atlas")
    )
    group.members.add(charlie)
    schedule = make(
        charlie,
        submission={
            "description_text": "accounting_group = atlas\nqueue\n", "description_name": "d.sub",
        },
    )  # fmt: skip

    assert find_schedule(charlie, schedule.pk).accounting_group == group
    assert not visible_schedules(alice).exists()


@pytest.mark.parametrize(
    ("terms", "field"),
    [
        ({"cron": "0 25 * * *"}, "cron"),
        ({"time_zone": "Mars/Base"}, "time_zone"),
        ({"name": ""}, "name"),
        ({"name": "a\x00"}, "name"),
        ({"grace_s": 59}, "grace_s"),
        ({"kept_runs": 0}, "kept_runs"),
    ],
)
def test_faulty_terms_are_refused_with_their_field(
    alice: User, terms: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        make(alice, **terms)

    assert [fault.field for fault in refused.value.findings] == [field]
    assert not Schedule.objects.exists()


def test_a_faulty_dag_is_refused_at_once(alice: User) -> None:
    with pytest.raises(InvalidInput) as refused:
        make(alice, text="JOB A nowhere.sub\n")

    assert "nowhere.sub" in str(refused.value.findings[0])
    assert not Schedule.objects.exists()


def test_a_schedule_needs_room_for_its_files(alice: User) -> None:
    save_quota(Quota(user=alice, max_bytes=10), actor=factories.SYSTEM)

    with pytest.raises(QuotaExceeded):
        make(alice)
    assert not Schedule.objects.exists()


def test_viewers_make_no_schedules(alice: User) -> None:
    alice.role = Role.VIEWER
    with pytest.raises(NotPermitted):
        make(alice)


def test_contents_of_a_schedule_are_named_by_it(alice: User) -> None:
    """Else they would be removed a day later."""
    models = {each.related_model for each in unnamed_contents.naming_relations()}

    assert make(alice).files.model in models
