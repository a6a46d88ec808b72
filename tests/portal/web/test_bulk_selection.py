"""Selection of bulk operations: ticked rows, or all rows of a list by its token."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.core import signing
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from portal.lists import selection
from tests import factories
from tests.portal.web.bulk_steps import all_of, choose, confirm, token_of
from tests.wms.bulk.conftest import finish, outcomes
from wms.bulk.models import BulkOperation
from wms.core.models import User
from wms.dags.models import Dag

LIVE = {"HTTP_HX_REQUEST": "true", "HTTP_HX_TARGET": "live"}
Browser = Callable[[User], Client]


def test_rows_that_were_ticked_are_acted_on_and_no_others(
    alice: Client, people: SimpleNamespace
) -> None:
    first, second = (factories.dag(people.alice, name=f"d{n}.dag") for n in range(2))

    choose(alice, "hold", pick=[first.pk])
    operation = BulkOperation.objects.get()
    confirm(alice, operation)
    finish(operation)

    assert [Dag.objects.get(pk=dag.pk).state for dag in (first, second)] == ["held", "idle"]


def test_what_is_made_after_the_list_was_opened_never_joins(
    people: SimpleNamespace, alice: Client
) -> None:
    old = factories.dag(people.alice, name="old.dag")
    Dag.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(hours=1))
    token = token_of(alice)
    new = factories.dag(people.alice, name="new.dag")
    Dag.objects.filter(pk=new.pk).update(created_at=timezone.now() + timedelta(seconds=1))

    choose(alice, "hold", all="1", selection=token)

    assert set(outcomes(BulkOperation.objects.get())) == {old.pk}


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda token: token[:-2] + ("aa" if token[-2:] != "aa" else "bb"), "does not come from"),
        (lambda token: "", "does not come from"),
        (lambda token: signing.dumps({"list": "dags"}, salt="other"), "does not come from"),
    ],
)
def test_a_forged_token_is_refused(
    people: SimpleNamespace, alice: Client, spoil: Callable[[str], str], told: str
) -> None:
    factories.dag(people.alice)

    answer = choose(alice, "hold", all="1", selection=spoil(token_of(alice)))

    assert answer.status_code == 400
    assert told in answer.content.decode()
    assert not BulkOperation.objects.exists()


def test_an_old_token_is_refused(
    people: SimpleNamespace, alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    factories.dag(people.alice)
    token = token_of(alice)
    monkeypatch.setattr(selection, "TOKEN_LIFE_S", -1)

    answer = choose(alice, "hold", all="1", selection=token)

    assert answer.status_code == 400
    assert not BulkOperation.objects.exists()


def test_a_token_of_somebody_else_or_of_another_list_is_refused(
    people: SimpleNamespace, alice: Client, browser_of: Browser
) -> None:
    factories.dag(people.alice)
    factories.job(people.alice)

    of_bob = choose(alice, "hold", all="1", selection=token_of(browser_of(people.bob)))
    of_jobs = choose(alice, "hold", all="1", selection=token_of(alice, name="jobs"))

    assert not BulkOperation.objects.exists()
    assert (of_bob.status_code, of_jobs.status_code) == (400, 400)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"list": "dags", "action": "hold"}, 400),
        ({"list": "dags", "action": "hold", "pick": ["x"]}, 404),
        ({"list": "dags", "action": "hold", "pick": ["987654"]}, 404),
        ({"list": "audit", "action": "hold", "pick": ["1"]}, 404),
        ({"action": "hold", "pick": ["1"]}, 404),
    ],
)
def test_nothing_and_what_is_not_there_are_refused(
    people: SimpleNamespace, alice: Client, body: dict[str, Any], status: int
) -> None:
    assert alice.post(reverse("web:new-bulk"), body).status_code == status


def test_a_list_that_did_not_change_is_not_sent_again_although_its_token_is_another(
    people: SimpleNamespace, alice: Client
) -> None:
    factories.job(people.alice)
    address = reverse("web:jobs")
    first = alice.get(address, **LIVE)

    second = alice.get(address, HTTP_IF_NONE_MATCH=first["ETag"], **LIVE)
    factories.job(people.alice)
    third = alice.get(address, HTTP_IF_NONE_MATCH=first["ETag"], **LIVE)

    assert 'name="selection"' in first.content.decode()
    assert (second.status_code, third.status_code) == (304, 200)


def test_the_actions_stand_in_what_is_refreshed_and_are_for_who_may_act(
    people: SimpleNamespace, browser_of: Browser
) -> None:
    factories.dag(people.alice)
    address = reverse("web:dags")

    live = browser_of(people.alice).get(address + "?owner=alice", **LIVE).content.decode()
    by_vera = browser_of(people.vera).get(address).content.decode()
    sites = browser_of(people.alice).get(reverse("web:sites")).content.decode()

    assert 'id="bulk-hold"' in live
    assert "csrfmiddlewaretoken" not in live
    assert "bulk-form" not in by_vera
    assert "bulk-form" not in sites


def test_a_filter_that_cannot_be_read_any_more_is_told(
    people: SimpleNamespace, alice: Client
) -> None:
    factories.dag(people.alice)
    operation = all_of(alice, "hold")
    BulkOperation.objects.filter(pk=operation.pk).update(filters={"colour": ["red"]})

    answer = confirm(alice, operation)

    assert answer.status_code == 400
    assert "colour" in answer.content.decode()
