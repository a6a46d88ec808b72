"""Groups, factors and limits as operators set them, and what submitters are charged."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from matching.negotiation.fairshare import GroupShare, decayed_priority
from wms.accounting import selectors, services
from wms.accounting.models import AccountingGroup, ConcurrencyLimit, Submitter
from wms.core.actors import Actor
from wms.core.errors import Conflict, InvalidInput, NotPermitted
from wms.core.models import AuditEntry, User

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)
DAY_S = 86_400.0


def group(olga: User, name: str = "physics", *, members: Any = None, **values: Any):
    made = AccountingGroup(name=name, **values)
    services.save_group(made, actor=Actor.person(olga), members=members)
    return made


def charge(used: dict[tuple[int, int | None], float], now: datetime = NOW) -> None:
    services.charge(used, half_life_s=DAY_S, now=now)


def fields_of(error: pytest.ExceptionInfo[InvalidInput]) -> list[str]:
    return [finding.field for finding in error.value.findings]


def test_who_is_charged_first_is_created_with_the_best_priority(alice: User) -> None:
    charge({(alice.pk, None): 4.0})

    row = Submitter.objects.get()
    assert (row.user, row.group, row.real_priority, row.used_slots) == (alice, None, 0.5, 4.0)
    assert (row.factor, row.used_slot_s, row.charged_at) == (1000.0, 0.0, NOW)


def test_a_submitter_is_charged_for_the_time_in_which_the_slots_were_held(alice: User) -> None:
    charge({(alice.pk, None): 4.0})
    charge({(alice.pk, None): 2.0}, NOW + DAY)

    row = Submitter.objects.get()
    assert row.real_priority == pytest.approx(decayed_priority(0.5, 4.0, DAY_S, DAY_S))
    assert row.used_slot_s == pytest.approx(4 * DAY_S)
    assert row.used_slots == 2.0


def test_who_submits_is_a_submitter_before_anything_is_used(
    submit, alice: User, olga: User
) -> None:
    physics = group(olga, members=[alice])

    for _ in range(2):
        submit("JOB A step.sub")
        submit(
            "JOB A step.sub", description_text="accounting_group=physics", description_name="x.sub"
        )

    assert {(each.user_id, each.group_id) for each in selectors.submitters()} == {
        (alice.pk, None),
        (alice.pk, physics.pk),
    }
    assert {each.effective_priority for each in selectors.submitters()} == {500.0}


def test_who_uses_nothing_any_more_comes_back_to_the_best_priority(alice: User) -> None:
    charge({(alice.pk, None): 100.0})
    charge({}, NOW + DAY)
    after_use = Submitter.objects.get().real_priority
    charge({}, NOW + 2 * DAY)
    after_rest = Submitter.objects.get().real_priority
    charge({}, NOW + 30 * DAY)

    assert after_rest == pytest.approx(after_use / 2)
    row = Submitter.objects.get()
    assert (row.real_priority, row.used_slots) == (0.5, 0.0)
    assert row.used_slot_s == pytest.approx(100 * DAY_S)


def test_a_long_rest_is_not_charged_when_work_begins_again(alice: User) -> None:
    charge({(alice.pk, None): 1.0})
    charge({}, NOW + timedelta(seconds=5))
    charge({}, NOW + 5 * DAY)
    charge({(alice.pk, None): 500.0}, NOW + 60 * DAY)

    row = Submitter.objects.get()
    assert (row.real_priority, row.used_slots) == (0.5, 500.0)


def test_a_charge_of_the_same_moment_or_an_earlier_one_takes_nothing(alice: User) -> None:
    charge({(alice.pk, None): 4.0})
    charge({(alice.pk, None): 4.0}, NOW + DAY)
    before = Submitter.objects.get()

    charge({(alice.pk, None): 6.0}, NOW + DAY)
    charge({(alice.pk, None): 7.0}, NOW)

    row = Submitter.objects.get()
    assert (row.real_priority, row.used_slot_s) == (before.real_priority, before.used_slot_s)
    assert (row.used_slots, row.charged_at) == (7.0, NOW + DAY)


def test_a_user_is_charged_apart_in_each_group(alice: User, olga: User) -> None:
    physics = group(olga)

    for now in (NOW, NOW + DAY):
        charge({(alice.pk, None): 1.0, (alice.pk, physics.pk): 9.0}, now)

    by_group = {row.group_id: row.used_slot_s for row in Submitter.objects.all()}
    assert by_group == pytest.approx({None: DAY_S, physics.pk: 9 * DAY_S})


def test_a_factor_is_kept(alice: User, olga: User) -> None:
    charge({(alice.pk, None): 1.0})
    row = Submitter.objects.get()
    row.factor = 10.0
    services.save_submitter(row, actor=Actor.person(olga))

    charge({(alice.pk, None): 1.0}, NOW + DAY)

    assert Submitter.objects.get().factor == 10.0


def test_the_number_of_statements_does_not_grow_with_the_submitters(db: None) -> None:
    users = [User.objects.create_user(f"user{number}") for number in range(30)]

    def statements(count: int, now: datetime) -> int:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            charge({(user.pk, None): 1.0 for user in users[:count]}, now)
        return len(queries)

    assert statements(2, NOW) == statements(30, NOW + DAY) <= 6
    assert statements(30, NOW + 2 * DAY) <= 5


def test_a_group_is_saved_with_its_members_and_an_audit_entry(alice: User, olga: User) -> None:
    physics = group(olga, members=[alice], quota=0.5)
    before = AuditEntry.objects.count()

    physics.quota = 0.25
    services.save_group(physics, actor=Actor.person(olga), members=[olga, alice])

    assert AuditEntry.objects.count() == before + 1
    entry = AuditEntry.objects.latest("pk")
    assert (entry.actor, entry.target) == ("olga", "group physics")
    assert entry.action == "change accounting group"
    assert entry.facts == {"quota": [0.5, 0.25], "members": [["alice"], ["alice", "olga"]]}
    assert set(physics.members.all()) == {alice, olga}


def test_saving_without_a_change_leaves_no_trace(alice: User, olga: User) -> None:
    physics = group(olga, members=[alice])
    before = AuditEntry.objects.count()

    services.save_group(physics, actor=Actor.person(olga), members=[alice])
    services.save_group(physics, actor=Actor.person(olga))

    assert AuditEntry.objects.count() == before
    assert set(physics.members.all()) == {alice}


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"name": "physics.higgs.deep"}, "name"),
        ({"name": "PHYSICS"}, "name"),
        ({"name": "a b"}, "name"),
        ({"name": "physics"}, "name"),
        ({"name": "new", "quota": 1.5}, "quota"),
        ({"name": "new", "quota": -1.0}, "quota"),
        ({"name": "new", "quota": float("nan")}, "quota"),
        ({"name": "new", "quota": float("inf"), "quota_kind": "static"}, "quota"),
        ({"name": "new", "quota_kind": "other"}, "quota_kind"),
    ],
)
def test_a_bad_group_is_refused_at_its_field(
    olga: User, values: dict[str, Any], field: str
) -> None:
    group(olga)

    with pytest.raises(InvalidInput) as caught:
        group(olga, **values)

    assert fields_of(caught)[0] == field
    assert AccountingGroup.objects.count() == 1


def test_the_name_of_a_group_stays(olga: User) -> None:
    physics = group(olga)
    physics.name = "chemistry"

    with pytest.raises(InvalidInput, match="physics") as refused:
        services.save_group(physics, actor=Actor.person(olga))
    assert [each.field for each in refused.value.findings] == ["name"]


def test_a_group_is_deleted_unless_others_need_it(submit, alice: User, olga: User) -> None:
    parent, child, used = group(olga), group(olga, "physics.higgs"), group(olga, "used")
    dag = submit("JOB A step.sub")
    dag.accounting_group = used
    dag.save(update_fields=["accounting_group"])
    charge({(alice.pk, child.pk): 1.0})

    for kept, words in ((parent, "has groups below it"), (used, "There are dags in the name of")):
        with pytest.raises(Conflict, match=words):
            services.delete_group(kept, actor=Actor.person(olga))
    services.delete_group(child, actor=Actor.person(olga))
    services.delete_group(parent, actor=Actor.person(olga))

    assert list(AccountingGroup.objects.all()) == [used]
    assert AuditEntry.objects.filter(action="delete accounting group").count() == 2


def test_what_keeps_a_group_from_being_deleted_is_told(make_site, alice: User, olga: User) -> None:
    used = group(olga)
    make_site().queues.update(owner=alice, owner_group=used)

    with pytest.raises(Conflict, match=r"queues.*physics"):
        services.delete_group(used, actor=Actor.person(olga))


def test_a_user_submits_in_the_name_of_their_own_groups_only(alice: User, olga: User) -> None:
    physics = group(olga, "Physics", members=[alice])

    assert services.group_for(alice, " physics ") == physics
    with pytest.raises(InvalidInput, match="chemistry"):
        services.group_for(alice, "chemistry")
    with pytest.raises(InvalidInput, match=r"olga.*Physics"):
        services.group_for(olga, "Physics")


@pytest.mark.parametrize("name", ["\x00", "physics\x00", "\ud800", "Phy\u017fics"])
def test_a_name_that_is_no_text_for_the_database_is_no_group(
    alice: User, olga: User, name: str
) -> None:
    group(olga, "Physics", members=[alice])

    with pytest.raises(InvalidInput):
        services.group_for(alice, name)


def test_only_the_factor_of_a_submitter_is_saved(alice: User, olga: User) -> None:
    charge({(alice.pk, None): 1.0})
    row = Submitter.objects.get()
    row.factor, row.used_slots = 2000.0, 99.0

    services.save_submitter(row, actor=Actor.person(olga))

    stored = Submitter.objects.get()
    assert (stored.factor, stored.used_slots) == (2000.0, 1.0)
    entry = AuditEntry.objects.latest("pk")
    assert (entry.target, entry.facts) == ("submitter alice", {"factor": [1000.0, 2000.0]})


@pytest.mark.parametrize("factor", [0.5, float("nan"), float("inf")])
def test_a_bad_factor_is_refused(alice: User, olga: User, factor: float) -> None:
    charge({(alice.pk, None): 1.0})
    row = Submitter.objects.get()
    row.factor = factor

    with pytest.raises(InvalidInput) as caught:
        services.save_submitter(row, actor=Actor.person(olga))

    assert fields_of(caught) == ["factor"]


def test_a_limit_is_saved_and_deleted_with_audit_entries(olga: User) -> None:
    limit = ConcurrencyLimit(name="db.*", maximum=10)
    services.save_limit(limit, actor=Actor.person(olga))
    limit.maximum = 12
    services.save_limit(limit, actor=Actor.person(olga))
    assert selectors.limits() == {"db.*": 12.0}

    services.delete_limit(limit, actor=Actor.person(olga))

    assert selectors.limits() == {}
    told = AuditEntry.objects.filter(target="limit db.*").order_by("pk")
    assert [entry.facts["maximum"] for entry in told] == [[None, 10], [10.0, 12], [12, None]]


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"name": "DB"}, "name"),
        ({"name": "a.b.c"}, "name"),
        ({"name": "db", "maximum": -1}, "maximum"),
        ({"name": "db", "maximum": float("nan")}, "maximum"),
        ({"name": "taken"}, "name"),
    ],
)
def test_a_bad_limit_is_refused_at_its_field(
    olga: User, values: dict[str, Any], field: str
) -> None:
    services.save_limit(ConcurrencyLimit(name="taken", maximum=1), actor=Actor.person(olga))

    with pytest.raises(InvalidInput) as caught:
        services.save_limit(ConcurrencyLimit(**{"maximum": 1, **values}), actor=Actor.person(olga))

    assert fields_of(caught) == [field]


def test_only_operators_configure(alice: User, sam: User, olga: User) -> None:
    charge({(alice.pk, None): 1.0})
    physics, row = group(olga), Submitter.objects.get()
    limit = ConcurrencyLimit(name="db", maximum=1)
    services.save_limit(limit, actor=Actor.person(olga))

    for person in (alice, sam):
        actor = Actor.person(person)
        for change in (
            lambda actor=actor: services.save_group(physics, actor=actor),
            lambda actor=actor: services.delete_group(physics, actor=actor),
            lambda actor=actor: services.save_limit(limit, actor=actor),
            lambda actor=actor: services.delete_limit(limit, actor=actor),
            lambda actor=actor: services.save_submitter(row, actor=actor),
        ):
            with pytest.raises(NotPermitted):
                change()


def test_submitters_come_in_the_order_of_their_effective_priority(
    alice: User, charlie: User, olga: User
) -> None:
    physics = group(olga)
    used = {(alice.pk, None): 10.0, (alice.pk, physics.pk): 1.0, (charlie.pk, None): 2.0}
    charge(used)
    charge(used, NOW + DAY)
    row = Submitter.objects.get(user=alice, group=physics)
    row.factor = 1_000_000.0
    services.save_submitter(row, actor=Actor.person(olga))

    ordered = selectors.submitters()

    assert [each.name for each in ordered] == ["charlie", "alice", "physics.alice"]
    last = ordered[-1]
    assert (last.user_id, last.group_id, last.group) == (alice.pk, physics.pk, "physics")
    assert last.effective_priority == pytest.approx(last.real_priority * 1_000_000)


def test_groups_are_read_as_the_negotiator_takes_them(olga: User) -> None:
    group(olga, "b", quota=0.5)
    group(olga, "a", quota=20, quota_kind="static", accepts_surplus=False)

    assert selectors.groups() == [
        GroupShare("a", 20.0, is_fraction=False, accepts_surplus=False),
        GroupShare("b", 0.5, is_fraction=True, accepts_surplus=True),
    ]


def test_who_is_switched_off_sees_nothing(alice: User, olga: User) -> None:
    group(olga)
    services.save_limit(ConcurrencyLimit(name="db", maximum=1), actor=Actor.person(olga))
    charge({(alice.pk, None): 1.0})
    alice.is_active = False

    assert not selectors.visible_submitters(alice).exists()
    assert not selectors.visible_groups(alice).exists()
    assert not selectors.visible_limits(alice).exists()
    assert selectors.visible_groups(olga).get().used_slots == 0
