"""Preview and confirmation of bulk operations."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from django.test import Client

from tests import factories
from tests.portal.web.bulk_steps import all_of, choose, confirm, page_of, token_of
from tests.portal.web.markup import text_of
from tests.wms.bulk.conftest import finish, outcomes
from wms.bulk.models import BulkOperation
from wms.core.actors import Actor
from wms.core.models import User
from wms.dags.models import Dag
from wms.dags.services.dags import hold_dags, remove_dags

Browser = Callable[[User], Client]


def test_another_number_than_the_list_showed_is_told(
    people: SimpleNamespace, alice: Client
) -> None:
    dags = [factories.dag(people.alice, name=f"d{n}.dag") for n in range(3)]
    token = token_of(alice, "?state=idle")
    hold_dags([dags[0].pk], actor=Actor.person(people.alice), reason="wait")

    choose(alice, "hold", all="1", selection=token)
    page = page_of(alice, BulkOperation.objects.get())

    assert re.findall(r"\d+", text_of(page, "differs"))[:2] == ["3", "2"]


def test_what_drops_out_between_preview_and_confirmation_is_told_and_asked_again(
    people: SimpleNamespace, alice: Client
) -> None:
    dags = [factories.dag(people.alice, name=f"d{n}.dag") for n in range(3)]
    operation = all_of(alice, "hold", "?state=idle")
    remove_dags([dags[0].pk], actor=Actor.person(people.alice), reason="no use")

    refused = confirm(alice, operation)
    operation.refresh_from_db()
    again = confirm(alice, operation)

    assert refused.status_code == 409
    page = " ".join(refused.content.decode().split())
    assert 'name="seen" value="2"' in page
    assert text_of(page, "left-out").startswith("1 of 3")
    assert again.status_code == 302
    finish(operation)
    assert outcomes(operation)[dags[0].pk][0] == "skipped"
    assert [Dag.objects.get(pk=dag.pk).state for dag in dags] == ["removed", "held", "held"]


def test_who_accepts_that_some_drop_out_is_not_asked_again(
    people: SimpleNamespace, alice: Client
) -> None:
    dags = [factories.dag(people.alice, name=f"d{n}.dag") for n in range(2)]
    operation = all_of(alice, "hold", "?state=idle")
    remove_dags([dags[0].pk], actor=Actor.person(people.alice), reason="no use")

    assert confirm(alice, operation, accepts="1").status_code == 302


def test_sent_twice_it_is_confirmed_once(people: SimpleNamespace, alice: Client) -> None:
    factories.dag(people.alice)
    operation = all_of(alice, "hold")

    answers = [confirm(alice, operation) for _ in range(2)]

    assert {answer.status_code for answer in answers} == {302}
    assert operation.events.filter(event="confirm").count() == 1


def test_a_destructive_action_on_others_objects_asks_to_type_the_number(
    people: SimpleNamespace, browser_of: Browser
) -> None:
    for number in range(2):
        factories.dag(people.alice, name=f"d{number}.dag")
    sam = browser_of(people.sam)
    operation = all_of(sam, "remove")

    shown = page_of(sam, operation)
    untyped = confirm(sam, operation)
    wrong = confirm(sam, operation, typed="3")
    right = confirm(sam, operation, typed="2")

    assert 'id="typed"' in shown
    assert "2 belong to" in text_of(shown, "effects")
    assert (untyped.status_code, wrong.status_code, right.status_code) == (400, 400, 302)
    assert "2" in text_of(untyped.content.decode(), "fault-typed")


def test_own_objects_are_removed_without_typing(people: SimpleNamespace, alice: Client) -> None:
    factories.dag(people.alice)
    operation = all_of(alice, "remove")

    assert "to confirm</label>" not in page_of(alice, operation)
    assert confirm(alice, operation).status_code == 302


def test_a_hold_needs_a_reason_and_a_release_none(people: SimpleNamespace, alice: Client) -> None:
    factories.dag(people.alice)
    hold = all_of(alice, "hold")
    refused = confirm(alice, hold, reason=" ")
    confirm(alice, hold)
    finish(hold)
    release = all_of(alice, "release")

    assert refused.status_code == 400
    assert "Give a reason" in refused.content.decode()
    assert confirm(alice, release, reason="").status_code == 302


def test_the_preview_says_who_is_skipped_and_why(
    people: SimpleNamespace, browser_of: Browser
) -> None:
    factories.running_dag(people.alice, node_count=3, name="run.dag")
    factories.dag(people.bob, name="other.dag")
    gone = factories.dag(people.alice, name="gone.dag")
    remove_dags([gone.pk], actor=Actor.person(people.alice), reason="no use")

    page = page_of(browser_of(people.alice), all_of(browser_of(people.alice), "hold"))

    assert text_of(page, "fitting").startswith("1 ")
    assert "1 : it is removed" in text_of(page, "effects")
    assert "role shifter" in text_of(page, "effects")
    assert "3 are queued" in text_of(page, "effects")
    assert "7 nodes" in text_of(page, "effects")


def test_with_none_of_them_it_can_be_done_and_the_page_says_so(
    people: SimpleNamespace, alice: Client
) -> None:
    factories.dag(people.bob)

    page = page_of(alice, all_of(alice, "hold"))

    assert 'id="nothing"' in page
    assert 'id="confirm"' not in page


def test_an_action_that_there_is_not_is_refused(people: SimpleNamespace, alice: Client) -> None:
    dag = factories.dag(people.alice)

    assert choose(alice, "explode", pick=[dag.pk]).status_code == 404
    assert not BulkOperation.objects.exists()


@pytest.mark.slow
def test_too_many_operations_at_once_are_refused(people: SimpleNamespace, alice: Client) -> None:
    factories.dag(people.alice)
    made = [all_of(alice, "hold") for _ in range(4)]

    answers = [confirm(alice, operation) for operation in made]

    assert [answer.status_code for answer in answers] == [302, 302, 302, 429]
    assert [operation.state for operation in BulkOperation.objects.order_by("pk")].count(
        "preview"
    ) == 1


def test_the_arguments_of_an_action_are_asked_for_and_checked(
    people: SimpleNamespace, alice: Client
) -> None:
    dag = factories.running_dag(people.alice)
    choose(alice, "rematch", pick=[dag.pk])
    operation = BulkOperation.objects.get()

    faulty = confirm(alice, operation, **{"with-avoid_min": "soon", "with-lets_finish": "1"})
    huge = confirm(alice, operation, **{"with-avoid_min": "99999999"})
    right = confirm(alice, operation, **{"with-avoid_min": "90", "with-lets_finish": "1"})

    assert (faulty.status_code, huge.status_code, right.status_code) == (400, 400, 302)
    page = faulty.content.decode()
    assert 'id="fault-with-avoid_min"' in page
    assert 'value="soon"' in page
    assert 'name="with-lets_finish" value="1" checked' in page
    operation.refresh_from_db()
    assert operation.arguments == {"lets_finish": True, "avoid_min": 90}
