"""Confirmed bulk operations: visibility, stop, retry, outcome of each object."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse

from portal.web.bulk import page as page_module
from tests import factories
from tests.portal.web.bulk_steps import all_of, choose, confirm, page_of, token_of
from tests.portal.web.markup import text_of
from tests.portal.world import small_world
from tests.wms.bulk.conftest import finish, outcomes
from wms.bulk.models import BulkOperation
from wms.core.actors import Actor
from wms.core.models import User
from wms.dags.models import Dag
from wms.jobs.models import Job
from wms.jobs.services import hold_jobs

Browser = Callable[[User], Client]


def test_all_dags_of_a_user_are_held_by_a_filter(
    people: SimpleNamespace, browser_of: Browser
) -> None:
    mine = [factories.dag(people.alice, name=f"a{n}.dag") for n in range(3)]
    other = factories.dag(people.bob)
    sam = browser_of(people.sam)

    operation = all_of(sam, "hold", "?owner=alice")
    page = page_of(sam, operation)
    answer = confirm(sam, operation)
    finish(operation)

    assert "Hold: 3 DAGs" in page
    assert 'id="confirm"' in page
    assert answer["Location"] == reverse("web:bulk-operation", args=[operation.pk])
    assert {dag.state for dag in Dag.objects.filter(owner=people.alice)} == {"held"}
    other.refresh_from_db()
    assert other.state == "idle"
    assert set(outcomes(operation)) == {dag.pk for dag in mine}
    done = page_of(sam, operation)
    assert text_of(done, "how-far").startswith("3 of 3")
    assert f'href="{reverse("web:dags")}?owner=alice"' in done


def test_operations_of_others_are_not_there_for_users(
    people: SimpleNamespace, browser_of: Browser, alice: Client
) -> None:
    factories.dag(people.alice)
    operation = all_of(alice, "hold")
    address = reverse("web:bulk-operation", args=[operation.pk])
    bob, sam = browser_of(people.bob), browser_of(people.sam)

    assert bob.get(address).status_code == 404
    assert confirm(bob, operation).status_code == 404
    assert bob.post(reverse("web:stop-bulk", args=[operation.pk])).status_code == 404
    assert sam.get(address).status_code == 200
    assert confirm(sam, operation).status_code == 403
    assert f"bulk-{operation.pk}" in sam.get(reverse("web:bulk")).content.decode()
    assert f"bulk-{operation.pk}" not in bob.get(reverse("web:bulk")).content.decode()


def test_what_failed_is_tried_again_as_an_operation_of_its_own(
    people: SimpleNamespace, alice: Client
) -> None:
    jobs = [factories.job(people.alice, name=f"job{n}") for n in range(2)]
    hold_jobs([job.pk for job in jobs], actor=Actor.person(people.alice), reason="look")
    # One that cannot be put into a TaskQueue.
    factories.describe(Job.objects.filter(pk=jobs[1].pk), needs={})
    choose(alice, "release", list="jobs", pick=[job.pk for job in jobs])
    operation = BulkOperation.objects.latest("pk")
    confirm(alice, operation)
    finish(operation)
    factories.describe(Job.objects.filter(pk=jobs[1].pk), needs=jobs[1].needs)

    page = page_of(alice, operation, "?outcome=failed")
    answer = alice.post(reverse("web:retry-bulk", args=[operation.pk]))
    again = BulkOperation.objects.latest("pk")
    confirm(alice, again, reason="")
    finish(again)

    assert "(1)" in text_of(page, "retry")
    assert f'id="object-{jobs[1].pk}"' in page
    assert answer["Location"] == reverse("web:bulk-operation", args=[again.pk])
    assert (again.retry_of_id, again.reason) == (operation.pk, "disk full")
    assert again.done_count == 1
    assert {Job.objects.get(pk=job.pk).state for job in jobs} == {"waiting"}


def test_what_one_may_not_do_any_more_is_skipped_and_offered_to_nobody_again(
    people: SimpleNamespace, browser_of: Browser
) -> None:
    factories.dag(people.alice)
    sam = browser_of(people.sam)
    operation = all_of(sam, "hold")
    confirm(sam, operation)
    User.objects.filter(pk=people.sam.pk).update(role="user")
    finish(operation)

    page = page_of(sam, operation, "?outcome=skipped")

    assert "sam may not" in page
    assert 'id="retry"' not in page


def test_a_stopped_operation_offers_to_go_on_with_the_rest(
    people: SimpleNamespace, alice: Client
) -> None:
    factories.dag(people.alice)
    operation = all_of(alice, "hold")
    confirm(alice, operation)

    for _ in range(2):
        alice.post(reverse("web:stop-bulk", args=[operation.pk]))

    page = page_of(alice, operation)
    assert "(1)" in text_of(page, "retry")
    assert operation.events.filter(event="stop").count() == 1


def test_the_items_are_paged_and_chosen_by_outcome(
    people: SimpleNamespace, alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_module, "_ITEMS_SHOWN", 3)
    for number in range(5):
        factories.job(people.alice, name=f"job{number}")
    token = token_of(alice, name="jobs")
    alice.post(
        reverse("web:new-bulk"), {"list": "jobs", "action": "hold", "all": 1, "selection": token}
    )
    operation = BulkOperation.objects.get()
    confirm(alice, operation)
    finish(operation)

    first = alice.get(reverse("web:bulk-operation", args=[operation.pk]) + "?outcome=done")
    second = alice.get(
        reverse("web:bulk-operation", args=[operation.pk]) + first.context["stretch"].following
    )

    assert (len(first.context["lines"]), len(second.context["lines"])) == (3, 2)
    assert 'id="items-box"' not in page_of(alice, operation, "?outcome=failed")


@pytest.mark.slow
def test_each_list_leads_to_previews_and_operations_of_its_objects(
    people: SimpleNamespace, browser_of: Browser
) -> None:
    world = small_world()
    ada = browser_of(world.people.ada)

    for name, action in (
        ("jobs", "kill"), ("clusters", "hold"), ("schedules", "pause"), ("pilots", "drain"),
        ("sites", "ban"), ("placements", "remove"),
    ):  # fmt: skip
        body = {"list": name, "action": action, "all": 1, "selection": token_of(ada, name=name)}
        ada.post(reverse("web:new-bulk"), body)
        operation = BulkOperation.objects.latest("pk")
        preview = page_of(ada, operation)
        confirm(ada, operation, typed=operation.frozen_count)
        finish(operation)
        page = page_of(ada, operation)

        first = operation.items.order_by("pk")[0]
        one = {"sites": world.site.name}.get(name, str(first.object_id))
        address = reverse(f"web:{name.removesuffix('s')}", args=[one])
        link = f'href="{address}"'
        assert (preview.count(link), page.count(link)) == (1, 1), name
        assert operation.state == "done", name
        # Jobs and clusters of this world have ended.
        assert operation.done_count >= (name not in {"jobs", "clusters"}), name
