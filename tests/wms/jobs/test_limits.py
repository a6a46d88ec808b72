"""Running limits: counted exactly, kept under concurrency, and configured by operators."""

from __future__ import annotations

import itertools
import threading
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext

from matching.task_queues.needs import Needs
from matching.task_queues.resources import JobKind
from tests.factories import stored_job
from tests.statements import carried_out_by
from wms.accounting.models import AccountingGroup
from wms.accounting.walls import with_groups
from wms.core.actors import Actor
from wms.core.errors import InvalidInput, NotPermitted
from wms.core.models import AuditEntry, User
from wms.jobs.limits import ClaimLimits, delete_limit, reached_limits, save_limit, visible_limits
from wms.jobs.models import Attempt, RunningLimit, Workspace
from wms.sites.models import Site

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
SYSTEM = Actor.system("test")
_pilots = itertools.count(1)

pytestmark = pytest.mark.django_db


def site(name: str = "T2_X") -> Site:
    return Site.objects.get_or_create(name=name)[0]


def limit(at: str = "T2_X", **values: object) -> RunningLimit:
    made = RunningLimit(site=site(at) if at else None, **values)
    save_limit(made, actor=SYSTEM)
    return made


def needs(job_type: str = "User", owner_group: str = "") -> Needs:
    return Needs.of("alice", job_type=job_type, owner_group=owner_group)


def running(wanted: Needs, at: str = "T2_X", count: int = 1) -> list[Attempt]:
    """Open attempts of jobs with these needs."""
    owner = User.objects.get_or_create(username=wanted.owner)[0]
    workspace = Workspace.objects.create(owner=owner)
    return [
        Attempt.objects.create(
            job=stored_job(name="a", owner=owner, workspace=workspace, needs=wanted),
            number=1,
            pilot_id=next(_pilots),
            site_name=at,
            job_type=wanted.job_type,
            owner_group=wanted.owner_group,
        )
        for _ in range(count)
    ]


def start(wanted: Needs, at: str = "T2_X", now: datetime = NOW) -> bool:
    """Claim a job with these needs, limits and attempt included; false when it is refused."""
    with transaction.atomic():
        limits = ClaimLimits.at(at, now)
        if any(kind.covers(wanted) for kind in limits.reached()) or limits.refuses(wanted):
            return False
        limits.matched(wanted)
        running(wanted, at)
        return True


def test_a_site_without_limits_costs_one_query() -> None:
    limit("T2_Y", job_type="User", maximum=0)

    def claim() -> None:
        with transaction.atomic():
            limits = ClaimLimits.at("T2_X", NOW)
            assert limits.reached() == ()
            assert limits.refuses(needs()) is None
            limits.matched(needs())

    assert carried_out_by(claim) == ["SELECT"]


def test_as_many_jobs_of_a_kind_run_as_the_limit_says_and_no_more() -> None:
    limit(job_type="User", maximum=2)

    assert [start(needs()) for _ in range(4)] == [True, True, False, False]
    assert start(needs("Merge"))
    assert start(needs(), at="T2_Y")


def test_a_job_that_ends_makes_room_for_another() -> None:
    limit(job_type="User", maximum=1)
    [attempt] = running(needs())

    assert not start(needs())
    Attempt.objects.filter(pk=attempt.pk).update(outcome="done")
    assert start(needs())


@pytest.mark.parametrize(
    ("of", "stopped"),
    [
        ({"job_type": "User"}, {("User", "physics"), ("User", "")}),
        ({"owner_group": "physics"}, {("User", "physics"), ("Merge", "physics")}),
        ({"job_type": "User", "owner_group": "physics"}, {("User", "physics")}),
        ({}, {("User", "physics"), ("User", ""), ("Merge", "physics"), ("", "")}),
    ],
)
def test_a_limit_stops_its_combination_of_type_and_group_and_nothing_else(
    of: dict[str, str], stopped: set[tuple[str, str]]
) -> None:
    AccountingGroup.objects.create(name="physics")
    limit(**of, maximum=1)
    kinds = {("User", "physics"), ("User", ""), ("Merge", "physics"), ("", "")}

    running(needs(*sorted(stopped)[-1]))

    assert {kind for kind in kinds if not start(needs(*kind))} == stopped


def test_a_limit_without_a_site_counts_over_all_sites_together() -> None:
    site("T2_Y")
    limit("", job_type="User", maximum=2)

    assert start(needs(), at="T2_X")
    assert start(needs(), at="T2_Y")
    assert not start(needs(), at="T2_X")
    [reached] = reached_limits(NOW)
    assert (reached.site, reached.kind) == ("", JobKind("User"))
    assert "2 of 2" in reached.reason


def test_matches_of_a_kind_keep_their_distance() -> None:
    limit(job_type="User", min_interval_s=10)

    assert start(needs(), now=NOW)
    assert not start(needs(), now=NOW + timedelta(seconds=9.9))
    assert start(needs("Merge"), now=NOW + timedelta(seconds=9.9))
    assert start(needs(), now=NOW + timedelta(seconds=10))
    assert not start(needs(), now=NOW + timedelta(seconds=10))


def test_a_reached_limit_tells_its_figures() -> None:
    limit(job_type="User", maximum=2)
    limit(job_type="Merge", min_interval_s=2.5)
    limit(maximum=9)
    running(needs(), count=3)
    start(needs("Merge"))

    told = {each.kind.job_type: each.reason for each in reached_limits(NOW)}

    assert told.keys() == {"User", "Merge"}
    assert "2 of 2" in told["User"]
    assert "2.5 s" in told["Merge"]
    assert all(each.site == "T2_X" for each in reached_limits(NOW))


def test_reached_limits_stop_their_kind_at_their_site() -> None:
    limit(job_type="User", maximum=0)
    [reached] = reached_limits(NOW)

    assert reached.stops(needs(), "T2_X")
    assert not reached.stops(needs(), "T2_Y")
    assert not reached.stops(needs("Merge"), "T2_X")


def test_a_limit_that_was_filled_since_the_first_look_refuses_the_drawn_needs() -> None:
    limit(job_type="User", maximum=1)

    with transaction.atomic():
        limits = ClaimLimits.at("T2_X", NOW)
        assert limits.reached() == ()
        running(needs())
        assert limits.refuses(needs()) == JobKind("User")
        assert limits.refuses(needs("Merge")) is None


def test_a_maximum_that_was_changed_since_the_first_look_counts_as_it_is_now() -> None:
    made = limit(job_type="User", maximum=1)

    with transaction.atomic():
        limits = ClaimLimits.at("T2_X", NOW)
        RunningLimit.objects.filter(pk=made.pk).update(maximum=0)
        assert limits.refuses(needs()) == JobKind("User")
        RunningLimit.objects.filter(pk=made.pk).delete()
        assert ClaimLimits.at("T2_X", NOW).refuses(needs()) is None


def in_threads(count: int, work) -> list[object]:
    results: list[object] = []
    barrier = threading.Barrier(count)

    def guarded() -> None:
        try:
            barrier.wait()
            results.append(work())
        except Exception as error:  # noqa: BLE001 - told by the caller's assertion
            results.append(error)
        finally:
            connections["default"].close()

    threads = [threading.Thread(target=guarded) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.mark.django_db(transaction=True)
def test_twenty_claims_at_once_never_exceed_a_limit(alice: User) -> None:
    limit(job_type="User", maximum=3)
    limit("", maximum=7)

    results = in_threads(20, lambda: start(needs()))

    assert results.count(True) == 3
    assert results.count(False) == 17
    assert Attempt.objects.filter(outcome="", job_type="User").count() == 3
    assert in_threads(20, lambda: start(needs("Merge"))).count(True) == 4


@pytest.mark.django_db(transaction=True)
def test_of_twenty_claims_at_once_one_is_matched_in_an_interval(alice: User) -> None:
    limit(job_type="User", min_interval_s=60)

    assert in_threads(20, lambda: start(needs())).count(True) == 1


@pytest.mark.django_db(transaction=True)
def test_claims_that_draw_several_kinds_in_any_order_do_not_wait_in_a_circle(alice: User) -> None:
    for job_type in "ABC":
        limit(job_type=job_type, maximum=1000)
    orders = itertools.cycle(itertools.permutations("ABC"))

    def draw_all() -> int:
        done = 0
        for order in [next(orders) for _ in range(5)]:
            with transaction.atomic():
                limits = ClaimLimits.at("T2_X", NOW)
                done += sum(limits.refuses(needs(kind)) is None for kind in order)
        return done

    results = in_threads(8, draw_all)

    # The first of each claim waits for its limit; no error, such as a deadlock, is among them.
    assert all(isinstance(done, int) and 5 <= done <= 15 for done in results), results


@pytest.mark.django_db(transaction=True)
def test_claims_of_kinds_without_a_common_limit_do_not_wait_for_each_other(alice: User) -> None:
    limit(job_type="User", maximum=5)
    limit(job_type="Merge", maximum=5)

    with transaction.atomic():
        assert ClaimLimits.at("T2_X", NOW).refuses(needs("User")) is None
        assert in_threads(1, lambda: start(needs("Merge"))) == [True]


def test_operators_set_limits_and_the_audit_tells_it(olga: User, alice: User) -> None:
    made = RunningLimit(site=site(), job_type=" User ", maximum=50)

    with pytest.raises(NotPermitted):
        save_limit(made, actor=Actor.person(alice))
    save_limit(made, actor=Actor.person(olga))
    made.maximum = 60
    save_limit(made, actor=Actor.person(olga))
    with pytest.raises(NotPermitted):
        delete_limit(made, actor=Actor.person(alice))
    delete_limit(made, actor=Actor.person(olga))

    told = AuditEntry.objects.filter(target="limit of User jobs at T2_X").order_by("pk")
    assert list(told.values_list("action", "actor")) == [
        ("create running limit", "olga"),
        ("change running limit", "olga"),
        ("delete running limit", "olga"),
    ]
    assert told[1].facts == {"maximum": [50, 60]}
    assert not RunningLimit.objects.exists()


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"job_type": "User"}, "maximum"),
        ({"maximum": -1}, "maximum"),
        ({"min_interval_s": float("nan")}, "min_interval_s"),
        ({"min_interval_s": 1e9}, "min_interval_s"),
        ({"maximum": 1, "owner_group": "nobody"}, "owner_group"),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused(values: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as error:
        limit(**values)

    assert [finding.field for finding in error.value.findings] == [field]


def test_a_kind_has_one_limit_at_a_site_and_one_over_all_sites() -> None:
    for at in ("T2_X", ""):
        limit(at, job_type="User", maximum=1)
        with pytest.raises(InvalidInput, match="already exists"):
            limit(at, job_type="User", maximum=2)


def test_a_new_limit_keeps_the_time_of_the_last_match_when_it_is_changed() -> None:
    made = limit(job_type="User", min_interval_s=10)
    start(needs())

    made.note = "protects the disk"
    save_limit(made, actor=SYSTEM)

    assert RunningLimit.objects.get().last_match_at == NOW


def test_who_may_see_limits_sees_what_is_running(alice: User) -> None:
    site("T2_Y")
    limit(job_type="User", maximum=2)
    limit("", maximum=99)
    limit("T2_Y", job_type="Merge", maximum=2)
    running(needs(), count=3)
    Attempt.objects.filter(pk__in=[a.pk for a in running(needs())]).update(outcome="done")
    running(needs(), "T2_Y", count=2)

    # As requests read their users.
    reader = with_groups(User.objects.all()).get(pk=alice.pk)
    with CaptureQueriesContext(connection) as queries:
        seen = {(each.job_type, each.maximum): each.running for each in visible_limits(reader)}

    assert seen == {("User", 2): 3, ("", 99): 5, ("Merge", 2): 0}
    assert len(queries) == 1
    alice.is_active = False
    assert not visible_limits(alice).exists()
