from __future__ import annotations

from datetime import date, timedelta

import pytest
from django.db.models import F

from tests.wms.jobs.clusters.samples import go_on
from tests.wms.jobs.clusters.samples import submit as submit_cluster
from tests.wms.pilots.claiming import NOW, ask, beat, running_pilot, submit
from wms.accounting.accounts import Period, UseBy, use_lines
from wms.accounting.models import AccountingGroup, DailyUse
from wms.core.actors import Actor
from wms.core.models import User
from wms.jobs.accounting import account_attempts
from wms.jobs.attempts import rescheduling
from wms.jobs.attempts.ending import PayloadEnd, end_attempt
from wms.jobs.models import Attempt
from wms.pilots.models import Pilot
from wms.pilots.monitoring.accounting import account_pilots
from wms.pilots.protocol.attempt_refs import AttemptRef
from wms.pilots.protocol.registration import end_pilot, pilot_actor

TODAY = NOW.date()


@pytest.fixture
def pilot(make_queue) -> Pilot:
    made = running_pilot(make_queue(cores=4, memory_mb=8000))
    Pilot.objects.update(
        created_at=NOW - timedelta(seconds=1000), registered_at=NOW - timedelta(seconds=1000)
    )
    made.refresh_from_db()
    return made


def run(pilot: Pilot, owner: User, *, wall_s: float, exit_code: int = 0) -> None:
    submit(owner)
    end_next(pilot, wall_s=wall_s, exit_code=exit_code)


def end_next(pilot: Pilot, *, wall_s: float, exit_code: int = 0) -> None:
    work = ask(pilot).work
    assert work is not None
    end_attempt(
        work.attempt.job_id,
        work.attempt.number,
        pilot_id=pilot.pk,
        end=PayloadEnd(exit_code=exit_code, wall_s=wall_s, cpu_s=1.0),
        actor=pilot_actor(pilot),
        now=NOW,
    )


def account(*, had_for_s: float = 1000.0) -> None:
    Attempt.objects.update(matched_at=F("ended_at") - timedelta(seconds=had_for_s))
    for _ in range(2):
        account_attempts()
        account_pilots()


def test_no_payload_has_its_cores_longer_than_its_pilot_was_seen_to_have_the_job(
    pilot: Pilot, alice: User
) -> None:
    run(pilot, alice, wall_s=2**31 - 1)
    end_pilot(pilot, end="idle", detail="", now=NOW)

    account(had_for_s=240.0)

    [use] = DailyUse.objects.exclude(owner_name="")
    # A minute is left for clocks that differ.
    assert use.useful_s == 300.0
    pilot.refresh_from_db()
    assert pilot.accounts is not None
    assert pilot.accounts["core_seconds"]["good"] == 300.0


def test_a_life_is_accounted_once_by_site_user_and_day(
    pilot: Pilot, alice: User, charlie: User
) -> None:
    run(pilot, alice, wall_s=100.0)
    run(pilot, charlie, wall_s=50.0, exit_code=1)
    totals = {"cores": 4, "lifetime_s": 200.0, "validation_s": 10.0}
    end_pilot(pilot, end="idle", detail="", totals=totals, now=NOW)

    account()

    pilot.refresh_from_db()
    assert pilot.accounts is not None
    assert pilot.accounts["core_seconds"] == {
        "pilot": 800.0, "usable": 760.0, "used": 150.0, "good": 100.0,
    }  # fmt: skip
    [line] = use_lines(alice, UseBy.SITE, Period(TODAY, TODAY))
    assert (line.name, line.attempts, line.pilots) == ("site-a", 2, 1)
    assert (line.spent.useful_s, line.spent.failed_s, line.spent.lost_s) == (100.0, 50.0, 0.0)
    assert (line.spent.idle_s, line.spent.validation_s) == (610.0, 40.0)
    assert line.spent.total_s == 800.0
    assert line.spent.efficiency == 100 / 800
    by_user = use_lines(alice, UseBy.USER, Period(TODAY, TODAY))
    assert [(each.name, each.spent.efficiency) for each in by_user] == [
        ("charlie", 0.0),
        ("alice", 1.0),
    ]
    assert [each.name for each in use_lines(alice, UseBy.DAY, Period(TODAY, TODAY))] == [str(TODAY)]


def test_a_pilot_that_died_is_accounted_up_to_its_last_heartbeat(pilot: Pilot, alice: User) -> None:
    submit(alice)
    work = ask(pilot).work
    assert work is not None
    ref = AttemptRef(work.attempt.job_id, work.attempt.number)
    beat(pilot, [ref], usage={ref: {"wall_s": 300.0}}, sequence=1, now=NOW)
    Pilot.objects.update(state="failed", ended_at=NOW + timedelta(hours=1))
    rescheduling.reschedule_jobs_of_pilots(
        [pilot.pk], outcome=Attempt.Outcome.LOST, actor=Actor.system("test"), reason="silence"
    )

    account()

    pilot.refresh_from_db()
    assert pilot.accounts is not None
    assert pilot.accounts["lifetime_s"] == 1000.0
    [use] = DailyUse.objects.exclude(owner_name="")
    assert (use.lost_s, use.attempts) == (300.0, 1)


def test_no_pilot_is_believed_more_cores_or_a_longer_life_than_it_had(pilot: Pilot) -> None:
    totals = {"cores": 4000, "lifetime_s": 10.0**9, "validation_s": 10.0**9}
    end_pilot(pilot, end="idle", detail="", totals=totals, now=NOW)

    account()

    pilot.refresh_from_db()
    assert pilot.accounts is not None
    assert (pilot.accounts["cores"], pilot.accounts["lifetime_s"]) == (4, 1000.0)
    assert pilot.accounts["permille"]["validation"] == 1000


def test_days_outside_are_left_out(pilot: Pilot, alice: User) -> None:
    run(pilot, alice, wall_s=100.0)
    account()

    assert use_lines(alice, UseBy.SITE, Period(date(2020, 1, 1), date(2020, 1, 2))) == []


def test_the_use_of_a_cluster_is_its_groups_and_has_its_labels(pilot: Pilot, alice: User) -> None:
    group = AccountingGroup.objects.create(name="higgs")
    group.members.add(alice)
    description = {"executable": "/bin/true", "group": "higgs", "labels": ["v2", "campaign=mc26"]}
    go_on(submit_cluster(alice, description).cluster)
    end_next(pilot, wall_s=100.0, exit_code=1)

    account()

    of_group = use_lines(alice, UseBy.GROUP, Period(TODAY, TODAY))
    assert [(line.name, line.spent.failed_s, line.cpu_s) for line in of_group] == [
        ("higgs", 100.0, 1.0)
    ]
    of_labels = use_lines(alice, UseBy.LABEL, Period(TODAY, TODAY))
    assert [(line.name, line.wall_s, line.failed_attempts) for line in of_labels] == [
        ("campaign=mc26", 100.0, 1),
        ("v2", 100.0, 1),
    ]
