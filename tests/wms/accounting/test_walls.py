"""Walls between frontends: all conditions on rows mean the same, and no frontend means no walls."""

from __future__ import annotations

from itertools import product

import pytest
from django.contrib.auth import get_user_model

from tests import factories
from wms.accounting.models import AccountingGroup, Frontend, Submitter
from wms.accounting.services import group_for
from wms.accounting.walls import OPEN, walls_of, with_groups
from wms.core.actors import Actor
from wms.core.errors import InvalidInput, NotFound
from wms.core.models import User
from wms.jobs.models import Workspace
from wms.jobs.services import hold_jobs

pytestmark = pytest.mark.django_db


def group(name: str, frontend: Frontend | None, *members: User) -> AccountingGroup:
    made = AccountingGroup.objects.create(name=name, frontend=frontend)
    made.members.set(members)
    return made


def test_without_a_group_of_a_frontend_all_see_all_and_one_query_tells() -> None:
    people = factories.people()
    Frontend.objects.create(name="bare")
    group("plain", None, people.alice)

    assert walls_of(people.alice) == walls_of(people.vera) == OPEN


def test_conditions_by_name_and_by_group_and_single_answers_agree(
    django_assert_num_queries,
) -> None:
    people = factories.people()
    a, b = (Frontend.objects.create(name=name) for name in "ab")
    groups = {
        "": None,
        "plain": group("plain", None, people.charlie),
        "a1": group("a1", a, people.alice),
        "a2": group("a2", a, people.charlie),
        "b1": group("b1", b, people.bob),
    }
    owners = (people.alice, people.bob, people.charlie, people.vera)
    for owner, name in product(owners, groups):
        Submitter.objects.create(user=owner, group=groups[name])
        Workspace.objects.create(owner=owner, owner_group=name)
    frontend_of = {"": None, "plain": None, "a1": a.pk, "a2": a.pk, "b1": b.pk}
    sees = {"alice": {a.pk}, "bob": {b.pk}, "charlie": {a.pk, None}, "vera": {None}}

    for user in owners:
        with django_assert_num_queries(1):
            walls = walls_of(user)
        read = with_groups(get_user_model().objects.all()).get(pk=user.pk)
        with django_assert_num_queries(0):
            assert walls_of(read) == walls
        expected = {
            (owner.pk, name)
            for owner, name in product(owners, groups)
            if frontend_of[name] in sees[user.username]
            or (frontend_of[name] is None and owner == user)
        }
        named = Workspace.objects.filter(walls.by_name())
        assert set(named.values_list("owner_id", "owner_group")) == expected
        of_groups = Submitter.objects.filter(walls.by_group("group", "user"))
        assert {(row.user_id, str(row.group or "")) for row in of_groups} == expected
        assert {
            (owner.pk, name)
            for owner, name in product(owners, groups)
            if walls.lets_in_group(groups[name] and groups[name].pk, owner.pk)
        } == expected
        seen = {f for f in (None, a.pk, b.pk) if walls.lets_in(f)}
        assert seen == sees[user.username]
    assert walls_of(people.sam) == OPEN


def test_people_see_those_of_their_frontends_and_who_looks_after_all() -> None:
    people = factories.people()
    a, b = (Frontend.objects.create(name=name) for name in "ab")
    group("a", a, people.alice, people.tina)
    group("b", b, people.bob)

    def seen_by(user: User) -> set[str]:
        found = User.objects.filter(walls_of(user).of_users())
        return set(found.values_list("username", flat=True)) & set(factories.ROLES)

    assert seen_by(people.alice) == {"alice", "tina", "sam", "olga", "ada"}
    assert seen_by(people.vera) == set(factories.ROLES) - {"alice", "tina", "bob"}


def test_an_owner_who_is_walled_off_steers_no_job() -> None:
    people = factories.people()
    job = factories.job(people.alice)
    Workspace.objects.filter(pk=job.workspace_id).update(owner_group="b")
    group("b", Frontend.objects.create(name="b"), people.bob)

    with pytest.raises(NotFound) as hidden:
        hold_jobs([job.pk], actor=Actor.person(people.alice), reason="look")
    with pytest.raises(NotFound) as absent:
        hold_jobs([job.pk + 1], actor=Actor.person(people.alice), reason="look")

    assert str(hidden.value).replace(str(job.pk), "N") == str(absent.value).replace(
        str(job.pk + 1), "N"
    )


def test_a_group_behind_a_wall_is_none_to_submit_for() -> None:
    people = factories.people()
    group("theirs", Frontend.objects.create(name="b"), people.bob)
    group("plain", None)

    def refusal(name: str) -> str:
        with pytest.raises(InvalidInput) as refused:
            group_for(people.alice, name)
        return refused.value.findings[0].message.replace(name, "G")

    assert refusal("theirs") == refusal("nowhere") != refusal("plain")
