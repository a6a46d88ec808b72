"""Jobs that a pilot may be given: its purpose, its owner, and running limits."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.wms.pilots.claiming import NOW, SYSTEM, ask, in_threads, job_of, running_pilot, submit
from wms.accounting.models import AccountingGroup
from wms.core.models import User
from wms.jobs.limits import save_limit
from wms.jobs.models import Attempt, RunningLimit
from wms.pilots.models import Pilot
from wms.pilots.protocol import registration
from wms.pilots.protocol.claims import ClaimAnswer
from wms.sites.models import Queue
from wms.taskqueues.models import WaitingJob

pytestmark = pytest.mark.django_db


def again(pilot: Pilot) -> Pilot:
    """The pilot with its next request."""
    return registration.authenticate_pilot(pilot.uuid, "t" * 64, now=NOW)


def members(name: str, *people: User, has_job_sharing: bool = False) -> AccountingGroup:
    group = AccountingGroup.objects.create(name=name, has_job_sharing=has_job_sharing)
    group.members.set(people)
    return group


@pytest.mark.parametrize(
    ("needs", "is_taken"),
    [
        ({"queues": ["site-a/main"]}, True),
        ({"queues": ["site-a/other"]}, False),
        ({"banned_sites": ["site-a"]}, False),
        ({"setup": "production"}, True),
        ({"setup": ""}, False),
        ({"tags": ["ssd"]}, True),
        ({"tags": ["tape"]}, False),
        ({"cpu_time_s": 5000}, True),
        ({"cpu_time_s": 5001}, False),
        # These count where pilots are sent, and a pilot that is there may take the job.
        ({"submit_pools": ["other"]}, True),
        ({"middlewares": ["slurm"]}, True),
        ({"requirements": 'Queue == "site-a/main" && Machine == "n1"'}, True),
        ({"requirements": 'Machine == "n2"'}, False),
        ({"requirements": "NoSuchThing > 1"}, False),
    ],
)
def test_a_pilot_takes_what_its_queue_was_made_for(
    make_queue, add_jobs, needs: dict[str, object], is_taken: bool
) -> None:
    queue = make_queue(setup="production", submit_pool="main", tags=["ssd"])
    add_jobs(1, **({"setup": "production"} | needs))

    answer = ask(running_pilot(queue), cpu_time_s=5000)

    assert (answer.work is not None) == is_taken


def test_a_generic_pilot_takes_the_jobs_of_all(make_queue, alice: User, charlie: User) -> None:
    members("physics", alice)
    wanted = {submit(alice, "physics"), submit(alice), submit(charlie)}
    pilot = running_pilot(make_queue(cores=8))

    assert {job_of(ask(pilot)) for _ in range(4)} == {*wanted, None}


def test_a_private_pilot_takes_the_jobs_of_its_owner_in_the_name_of_its_group_only(
    make_queue, alice: User, charlie: User
) -> None:
    physics = members("physics", alice, charlie)
    members("biology", alice)
    mine = submit(alice, "physics")
    for owner, group in ((alice, ""), (alice, "biology"), (charlie, "physics"), (charlie, "")):
        submit(owner, group)
    pilot = running_pilot(make_queue(cores=8), owner=alice, owner_group=physics)

    assert [job_of(ask(pilot)) for _ in range(2)] == [mine, None]


def test_a_private_pilot_without_a_group_takes_what_its_owner_submits_without_one(
    make_queue, alice: User
) -> None:
    members("physics", alice)
    submit(alice, "physics")
    mine = submit(alice)
    pilot = running_pilot(make_queue(cores=8), owner=alice)

    assert [job_of(ask(pilot)) for _ in range(2)] == [mine, None]


def test_where_members_share_their_jobs_a_private_pilot_takes_those_of_all(
    make_queue, alice: User, charlie: User
) -> None:
    physics = members("physics", alice, charlie, has_job_sharing=True)
    shared = {submit(alice, "physics"), submit(charlie, "physics")}
    submit(alice)
    pilot = running_pilot(make_queue(cores=8), owner=alice, owner_group=physics)

    assert {job_of(ask(pilot)) for _ in range(3)} == {*shared, None}


def test_who_has_left_a_group_is_given_its_jobs_no_more(
    make_queue, alice: User, charlie: User
) -> None:
    physics = members("physics", alice, charlie, has_job_sharing=True)
    jobs = {submit(charlie, "physics") for _ in range(2)}
    queue = make_queue(cores=8, owner=alice, owner_group=physics)
    pilot = running_pilot(queue, owner=alice, owner_group=physics)
    first = ask(pilot, key="a" * 32)
    assert job_of(first) in jobs

    physics.members.remove(alice)

    reason = "alice is not a member of physics any more"
    assert ask(again(pilot)) == ClaimAnswer(reason=reason)
    # What it has been given is its own.
    assert ask(again(pilot), key="a" * 32) == first
    physics.members.add(alice)
    assert {job_of(first), job_of(ask(again(pilot)))} == jobs


@pytest.mark.parametrize("group", ["", "physics"])
def test_whose_account_is_switched_off_is_given_no_jobs(
    make_queue, alice: User, charlie: User, group: str
) -> None:
    physics = members("physics", alice, charlie, has_job_sharing=True)
    submit(alice, group)
    identity = {"owner": alice, "owner_group": physics if group else None}
    pilot = running_pilot(make_queue(**identity), **identity)

    User.objects.filter(pk=alice.pk).update(is_active=False)

    assert "alice" in ask(again(pilot)).reason


def test_only_a_pilot_for_a_group_is_asked_for_its_owners_membership(
    make_queue, alice: User
) -> None:
    physics = members("physics", alice)
    queue = make_queue()
    identities = ({}, {"owner": alice}, {"owner": alice, "owner_group": physics})
    counts = []
    for identity in identities:
        pilot = running_pilot(queue, **identity)
        with CaptureQueriesContext(connection) as queries:
            ask(pilot)
        counts.append(len(queries))

    assert counts == [counts[0], counts[0], counts[0] + 1]


def test_a_job_may_ask_for_one_kind_of_pilot(make_queue, alice: User) -> None:
    queue = make_queue(cores=8)
    private_only = submit(alice, pilot_types=["private"])
    generic_only = submit(alice, pilot_types=["generic"])

    private = running_pilot(queue, owner=alice)
    assert [job_of(ask(private)) for _ in range(2)] == [private_only, None]
    assert job_of(ask(running_pilot(queue))) == generic_only


def test_a_pilot_keeps_the_identity_that_it_was_submitted_with(
    make_queue, alice: User, charlie: User
) -> None:
    queue = make_queue(cores=8)
    generic = running_pilot(queue)
    private = running_pilot(queue, owner=charlie)
    Queue.objects.update(owner=alice)
    job = submit(charlie)

    assert job_of(ask(again(private))) == job
    job = submit(charlie)
    assert job_of(ask(again(generic))) == job


def limit(site: str, **values: object) -> None:
    row = RunningLimit(site=Queue.objects.get(site__name=site).site, **values)
    save_limit(row, actor=SYSTEM)


def test_a_kind_that_has_reached_its_limit_is_left_out_and_told(make_queue, alice: User) -> None:
    pilot = running_pilot(make_queue(cores=8))
    limit("site-a", job_type="User", maximum=1)
    submit(alice, job_type="User")
    assert ask(pilot).work is not None
    submit(alice, job_type="User")
    other = submit(alice, job_type="Test")

    assert job_of(ask(pilot)) == other
    assert ask(pilot).reason.endswith(": User jobs")


def test_the_time_between_two_matches_begins_with_the_claim(make_queue, alice: User) -> None:
    pilot = running_pilot(make_queue(cores=8))
    limit("site-a", job_type="User", min_interval_s=60)
    submit(alice, job_type="User")
    submit(alice, job_type="User")

    assert ask(pilot).work is not None
    assert ask(pilot).work is None
    assert RunningLimit.objects.get().last_match_at == NOW


def test_a_fruitless_claim_begins_no_interval(make_queue, alice: User) -> None:
    pilot = running_pilot(make_queue())
    limit("site-a", job_type="User", min_interval_s=60)
    submit(alice, job_type="Test")

    ask(pilot)

    assert RunningLimit.objects.get().last_match_at is None


@pytest.mark.django_db(transaction=True)
def test_claims_of_many_pilots_at_once_never_exceed_a_limit(make_queue, alice: User) -> None:
    queue = make_queue()
    limit("site-a", job_type="User", maximum=3)
    for _ in range(12):
        submit(alice, job_type="User")
    pilots = [running_pilot(queue) for _ in range(8)]

    in_threads(*[lambda pilot=pilot: ask(pilot) for pilot in pilots])

    assert Attempt.objects.count() == 3
    assert WaitingJob.objects.count() == 9
