"""Shares page: submitters, groups, limits."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests import factories
from wms.accounting.models import AccountingGroup, ConcurrencyLimit, Submitter
from wms.accounting.services import save_group, save_limit
from wms.core.models import User
from wms.dags.models import Dag
from wms.jobs import limits as running_limits
from wms.jobs.models import RunningLimit
from wms.taskqueues.models import TaskQueuePolicy
from wms.taskqueues.task_queue_policy import save_policy

ADDRESS = reverse("web:shares")


def _page(client: Client) -> str:
    return " ".join(client.get(ADDRESS).content.decode().split())


def test_submitters_stand_in_the_order_in_which_they_are_served(
    alice: Client, people: SimpleNamespace
) -> None:
    factories.running_dag(people.bob)
    for owner in (people.alice, people.bob):
        factories.dag(owner)
    Submitter.objects.filter(user=people.bob).update(real_priority=8.0, used_slot_s=7200)

    lines = alice.get(ADDRESS).context["submitters"]

    assert [str(line.submitter) for line in lines] == ["alice", "bob"]
    assert [(line.dags.idle, line.dags.running) for line in lines] == [(1, 0), (1, 1)]
    assert lines[1].used_core_hours == 2
    assert "8000" in _page(alice)


def test_groups_tell_their_quota_and_what_they_hold_with_their_children(
    alice: Client, people: SimpleNamespace
) -> None:
    factories.site(max_matches=100)
    for name, quota in (("physics", 0.5), ("physics.higgs", 0.2), ("physics-old", 0.1)):
        group = AccountingGroup(name=name, quota=quota)
        save_group(group, actor=factories.SYSTEM, members=[people.alice])
    dag = factories.running_dag(people.alice)
    Dag.objects.filter(pk=dag.pk).update(
        accounting_group=AccountingGroup.objects.get(name="physics.higgs")
    )

    answer = alice.get(ADDRESS)

    held = {line.group.name: (line.places, line.held) for line in answer.context["groups"]}
    assert list(held) == ["physics", "physics.higgs", "physics-old"]
    assert held["physics"] == (50, 1)
    assert held["physics.higgs"] == (10, 1)
    assert answer.context["places"].total == 100
    assert "20 % of its parent" in answer.content.decode()


def test_groups_tell_their_share_in_the_draws(alice: Client, people: SimpleNamespace) -> None:
    save_group(
        AccountingGroup(name="physics", share=2500, has_job_sharing=True), actor=factories.SYSTEM
    )
    save_policy(TaskQueuePolicy(pk=1, default_share=700), actor=factories.SYSTEM)

    page = _page(alice)

    assert '2500 <small class="faint">JOB_SHARING</small>' in page
    assert " 700. " in page


def test_running_limits_tell_how_many_run_and_how_often_they_match(
    alice: Client, people: SimpleNamespace
) -> None:
    at = factories.site("UW")
    limit = RunningLimit(site=at, maximum=3, min_interval_s=90, note="<b>disk")
    running_limits.save_limit(limit, actor=factories.SYSTEM)
    running_limits.save_limit(
        RunningLimit(job_type="two words", min_interval_s=5), actor=factories.SYSTEM
    )
    factories.job(people.alice)
    factories.claim(factories.pilot(at.queues.get()))

    page = _page(alice)

    assert "UW <small>&lt;b&gt;disk</small>" in page
    assert "<b>1</b> of 3" in page
    assert "1 min 30 s" in page
    assert "two words jobs" in page
    assert "<b>0</b> run now" in page


def test_limits_tell_what_is_in_use_of_each_name(alice: Client, people: SimpleNamespace) -> None:
    save_limit(ConcurrencyLimit(name="db.*", maximum=4, note="<b>sessions"), actor=factories.SYSTEM)
    dag = factories.running_dag(people.alice)
    Dag.objects.filter(pk=dag.pk).update(concurrency_limits={"db.read": 3})

    page = _page(alice)

    assert "<code>db.read</code>" in page
    assert "<b>3</b> of 4" in page
    assert "&lt;b&gt;sessions" in page


@pytest.mark.parametrize(("name", "is_led"), [("alice", False), ("sam", False), ("olga", True)])
def test_only_operators_are_led_to_the_administration(
    people: SimpleNamespace, browser_of: Callable[[User], Client], name: str, is_led: bool
) -> None:
    factories.accounting(people.alice)

    page = _page(browser_of(getattr(people, name)))

    assert ("/admin/accounting/" in page) is is_led


def test_many_submitters_are_paged(alice: Client, people: SimpleNamespace) -> None:
    users = User.objects.bulk_create(
        User(username=f"u{number}", password="!") for number in range(105)
    )
    Submitter.objects.bulk_create(Submitter(user=user, charged_at=timezone.now()) for user in users)

    first = alice.get(ADDRESS).context
    second = alice.get(ADDRESS + first["stretch"].following).context

    assert len(first["submitters"]) == 100
    assert [line.submitter.place for line in second["submitters"]] == [101, 102, 103, 104, 105]


def test_an_empty_portal_has_an_empty_page(alice: Client) -> None:
    page = _page(alice)

    assert 'id="submitters-box"' not in page
    assert 'id="groups-box"' not in page
