"""One queue of private pilots for everybody: for whom each is sent, counted and taken back."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.wms.pilots.claiming import SYSTEM, ask, job_of, running_pilot, submit
from tests.wms.pilots.directing import direct, reasons_of, sent
from wms.accounting.models import AccountingGroup
from wms.core.models import User
from wms.pilots.models import Pilot
from wms.pilots.pressure.pilot_limits import save_limit
from wms.pilots.pressure_models import PilotLimit, PressureRequest
from wms.taskqueues.models import Ticket
from wms.taskqueues.operations import withdraw
from wms.taskqueues.priorities import recompute

pytestmark = pytest.mark.django_db
AT = "site-a/main"


def members(name: str, *people: User, has_job_sharing: bool = False) -> AccountingGroup:
    group = AccountingGroup.objects.create(name=name, has_job_sharing=has_job_sharing)
    group.members.set(people)
    return group


def owners() -> Counter[tuple[str, str]]:
    """The pilots that are alive, by the names of their owners and groups."""
    rows = Pilot.objects.exclude(ended_at__isnull=False)
    names = rows.values_list("owner__username", "owner_group__name")
    return Counter((owner or "", group or "") for owner, group in names)


def test_one_queue_sends_private_pilots_to_each_owner_of_waiting_jobs(
    make_queue, alice: User, charlie: User
) -> None:
    members("physics", alice)
    make_queue(is_private=True)
    submit(alice)
    submit(alice, "physics")
    submit(charlie)
    submit(charlie)

    assert sent() == {AT: 4}
    assert owners() == {("alice", ""): 1, ("alice", "physics"): 1, ("charlie", ""): 2}
    assert sent() == {AT: 0}


def test_each_private_pilot_takes_the_jobs_that_it_was_sent_for_and_no_others(
    make_queue, alice: User, charlie: User
) -> None:
    queue = make_queue(is_private=True, cores=8)
    hers, his = submit(alice), submit(charlie)
    sent()

    taken = {}
    for pilot in Pilot.objects.select_related("owner"):
        claiming = running_pilot(queue, owner=pilot.owner)
        taken[pilot.owner.username] = [job_of(ask(claiming)) for _ in range(2)]

    assert taken == {"alice": [hers, None], "charlie": [his, None]}


def test_pilots_of_a_group_that_shares_are_sent_once_for_all_its_members(
    make_queue, alice: User, charlie: User
) -> None:
    physics = members("physics", alice, charlie, has_job_sharing=True)
    queue = make_queue(is_private=True, cores=2)
    jobs = {submit(alice, "physics"), submit(charlie, "physics")}

    assert sent() == {AT: 1}
    pilot = Pilot.objects.get()
    assert pilot.owner_group == physics
    claiming = running_pilot(queue, owner=pilot.owner, owner_group=physics)
    assert {job_of(ask(claiming)), job_of(ask(claiming))} == jobs


def test_free_room_of_somebody_elses_pilot_is_not_counted_on(
    make_queue, alice: User, charlie: User
) -> None:
    queue = make_queue(is_private=True, cores=8)
    pilot = running_pilot(queue, owner=alice)
    Pilot.objects.filter(pk=pilot.pk).update(registered_at=timezone.now())
    submit(alice)
    assert sent() == {AT: 0}

    submit(charlie)

    assert sent() == {AT: 1}
    assert owners() == {("alice", ""): 1, ("charlie", ""): 1}


def test_pilots_that_wait_for_an_owner_without_jobs_keep_nobody_else_from_theirs(
    make_queue, alice: User, charlie: User
) -> None:
    make_queue(is_private=True)
    gone = [submit(alice) for _ in range(3)]
    assert sent() == {AT: 3}
    withdraw(gone)
    submit(charlie)
    submit(charlie)

    assert sent() == {AT: 2}
    assert owners() == {("alice", ""): 3, ("charlie", ""): 2}
    assert sent() == {AT: 0}


def test_pilots_that_wait_for_an_owner_without_jobs_are_taken_back_in_time(
    make_queue, alice: User, charlie: User
) -> None:
    make_queue(is_private=True, removal_wait_s=300)
    gone = [submit(alice) for _ in range(3)]
    submit(charlie)
    now = timezone.now()
    sent(now)
    withdraw(gone)

    direct(now + timedelta(seconds=10))
    direct(now + timedelta(seconds=309))
    assert owners() == {("alice", ""): 3, ("charlie", ""): 1}

    turns = direct(now + timedelta(seconds=311))

    assert turns[AT].removed == 3
    assert owners() == {("charlie", ""): 1}


@pytest.mark.slow
def test_owners_are_drawn_by_the_priorities_of_their_task_queues(
    make_queue, alice: User, charlie: User
) -> None:
    make_queue(is_private=True, max_pilots=200, max_queued_pilots=200, max_submits=200)
    for _ in range(150):
        submit(alice)
        submit(charlie)
    recompute()
    Ticket.objects.filter(task_queue__owner=alice).update(priority=900)
    Ticket.objects.filter(task_queue__owner=charlie).update(priority=100)

    sent()

    drawn = owners()
    assert drawn.total() == 200
    # Alice needs 150: nine of ten draws are hers, until nothing is left for her.
    assert drawn["alice", ""] == 150
    assert drawn["charlie", ""] == 50


@pytest.mark.slow
def test_a_few_pilots_are_mostly_of_who_has_the_greater_priority(
    make_queue, alice: User, charlie: User
) -> None:
    make_queue(is_private=True, max_pilots=60, max_queued_pilots=60, max_submits=60)
    for _ in range(100):
        submit(alice)
        submit(charlie)
    recompute()
    Ticket.objects.filter(task_queue__owner=alice).update(priority=900)
    Ticket.objects.filter(task_queue__owner=charlie).update(priority=100)

    sent()

    # 60 draws at 0.9: fewer than 42 of them come once in a hundred million times.
    assert owners()["alice", ""] >= 42
    assert owners().total() == 60


def test_nobody_whose_account_is_off_or_who_left_the_group_is_sent_pilots(
    make_queue, alice: User, charlie: User
) -> None:
    physics = members("physics", alice, charlie)
    make_queue(is_private=True)
    submit(charlie, "physics")
    submit(alice)
    submit(alice, "physics")
    User.objects.filter(pk=charlie.pk).update(is_active=False)
    physics.members.remove(alice)

    assert sent() == {AT: 1}
    assert owners() == {("alice", ""): 1}


def test_jobs_of_who_left_a_group_that_shares_are_taken_by_pilots_of_its_members(
    make_queue, alice: User, charlie: User
) -> None:
    physics = members("physics", alice, charlie, has_job_sharing=True)
    make_queue(is_private=True)
    submit(charlie, "physics")
    submit(alice, "physics")
    physics.members.remove(alice)

    assert sent() == {AT: 2}
    assert owners() == {("charlie", "physics"): 2}


def test_the_limit_of_a_group_holds_for_its_pilots_at_a_queue_of_everybody(
    make_queue, alice: User, charlie: User, olga: User
) -> None:
    physics = members("physics", alice)
    limit = PilotLimit(scope=PilotLimit.Scope.GROUP, group=physics, max_pilots=1)
    save_limit(limit, actor=SYSTEM)
    queue = make_queue(is_private=True)
    for _ in range(3):
        submit(alice, "physics")
    submit(charlie)

    assert sent() == {AT: 2}
    assert owners() == {("alice", "physics"): 1, ("charlie", ""): 1}
    assert reasons_of(queue)


def test_a_job_for_generic_pilots_only_gets_none_there(make_queue, alice: User) -> None:
    make_queue(is_private=True)
    submit(alice, pilot_types=["generic"])
    assert sent() == {AT: 0}

    submit(alice, pilot_types=["private"])
    assert sent() == {AT: 1}


def test_generic_and_private_queues_share_the_jobs_without_counting_one_twice(
    make_queue, alice: User, charlie: User
) -> None:
    make_queue("site-a", is_private=True)
    make_queue("site-b")
    for _ in range(5):
        submit(alice)
        submit(charlie)

    assert sum(sent().values()) == 10
    assert set(sent().values()) == {0}


def test_the_request_keeps_who_needs_how_many(make_queue, alice: User, charlie: User) -> None:
    make_queue(is_private=True)
    submit(alice)
    submit(charlie)
    submit(charlie)

    sent()

    rows = {row["owner"]: row["pilots"] for row in PressureRequest.objects.get().owners}
    assert rows == {alice.pk: 1, charlie.pk: 2}


def test_a_queue_that_becomes_private_keeps_its_generic_pilots_for_everybody(
    make_queue, alice: User, charlie: User
) -> None:
    queue = make_queue(cores=8)
    generic = running_pilot(queue)
    make_queue(is_private=True, cores=8)
    jobs = {submit(alice), submit(charlie)}

    assert {job_of(ask(generic)), job_of(ask(generic))} == jobs
