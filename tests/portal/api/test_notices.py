"""Notices and subscriptions at the API."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from rest_framework.test import APIClient

from tests import factories
from tests.wms.notices.hearing import happens, hears, told
from wms.core.models import AuditEntry, User
from wms.notices.models import Notice, Subscription

NOTICES = "/api/v1/notices/"
SUBSCRIPTIONS = "/api/v1/subscriptions/"
AsUser = Callable[[User], APIClient]


def test_notices_are_listed_latest_first_with_their_objects(
    people: SimpleNamespace, alice: APIClient
) -> None:
    hears(people.alice, "my-dags-failed")
    dags = [factories.dag(people.alice, name=f"d{number}.dag") for number in range(2)]
    for dag in dags:
        happens("fail", dag)
    told(people.alice)

    answer = alice.get(NOTICES).json()

    assert [each["subject_id"] for each in answer["results"]] == [
        str(dag.pk) for dag in reversed(dags)
    ]
    first = answer["results"][0]
    assert first["kind"] == "failed"
    assert first["text"] == "disk full"
    assert first["url"] == f"http://127.0.0.1:8000/dags/{dags[1].pk}/"
    assert first["read_at"] is None


def test_notices_are_marked_one_by_one_or_all(people: SimpleNamespace, alice: APIClient) -> None:
    hears(people.alice, "my-dags-failed")
    happens("fail", *(factories.dag(people.alice, name=f"d{n}.dag") for n in range(3)))
    told(people.alice)
    first = Notice.objects.order_by("pk")[0]

    one = alice.post(f"{NOTICES}read/", {"notices": [first.pk, 10**9]}, format="json")
    unread = alice.get(NOTICES, {"unread": "true"}).json()["results"]
    rest = alice.post(f"{NOTICES}read/", {}, format="json")

    assert one.json() == {"marked": 1}
    assert first.pk not in [each["id"] for each in unread]
    assert rest.json() == {"marked": 2}
    assert alice.get(NOTICES, {"unread": "true"}).json()["results"] == []


@pytest.mark.parametrize("word", ["maybe", ""])
def test_a_filter_that_is_none_is_refused(alice: APIClient, word: str) -> None:
    assert alice.get(NOTICES, {"unread": word}).status_code == 400


def test_notices_of_others_are_neither_seen_nor_marked(
    people: SimpleNamespace, as_user: AsUser
) -> None:
    hears(people.alice, "my-dags-failed")
    happens("fail", factories.dag(people.alice))
    told(people.alice)
    notice, ada = Notice.objects.get(), as_user(people.ada)

    assert ada.get(NOTICES).json()["results"] == []
    marked = ada.post(f"{NOTICES}read/", {"notices": [notice.pk]}, format="json")
    assert marked.json() == {"marked": 0}


def test_one_subscribes_to_dags_sites_and_rules_once_each(
    people: SimpleNamespace, alice: APIClient
) -> None:
    dag, site = factories.dag(people.bob), factories.site()
    bodies = [
        {"rule": "dag", "dag": dag.pk}, {"rule": "site", "site": site.name}, {"rule": "site"},
        {"rule": "my-dags-failed"},
    ]  # fmt: skip

    made = [alice.post(SUBSCRIPTIONS, body, format="json") for body in bodies * 2]

    assert {answer.status_code for answer in made} == {201}
    known = alice.get(SUBSCRIPTIONS).json()["results"]
    assert len(known) == len(bodies)
    assert {(each["rule"], each["dag"], each["site"]) for each in known} == {
        ("dag", dag.pk, None), ("site", None, "UW"), ("site", None, None),
        ("my-dags-failed", None, None),
    }  # fmt: skip
    assert AuditEntry.objects.filter(action="subscribe", actor="alice").count() == len(bodies)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"rule": "weather"}, 400),
        ({"rule": "dag"}, 400),
        ({"rule": "my-dags-failed", "dag": 1}, 400),
        ({"rule": "loops", "site": "UW"}, 400),
        ({"rule": "dag", "dag": 10**12}, 404),
        ({"rule": "site", "site": "Atlantis"}, 404),
        ({"rule": "loops"}, 403),
    ],
)
def test_what_cannot_be_subscribed_to_is_refused(
    alice: APIClient, body: dict[str, object], status: int
) -> None:
    answer = alice.post(SUBSCRIPTIONS, body, format="json")

    assert answer.status_code == status
    assert answer.json()["detail"]
    assert not Subscription.objects.exists()


def test_subscriptions_are_bounded(
    people: SimpleNamespace, alice: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wms.notices.services.MAX_SUBSCRIPTIONS", 1)
    alice.post(SUBSCRIPTIONS, {"rule": "site"}, format="json")

    answer = alice.post(SUBSCRIPTIONS, {"rule": "my-dags-failed"}, format="json")

    assert answer.status_code == 429
    assert "remove one first" in answer.json()["detail"]


def test_a_subscription_is_removed_by_its_owner_only(
    people: SimpleNamespace, alice: APIClient, as_user: AsUser
) -> None:
    known = hears(people.alice, "site")
    address = f"{SUBSCRIPTIONS}{known.pk}/"

    assert as_user(people.ada).delete(address).status_code == 404
    assert alice.delete(address).status_code == 204
    assert alice.delete(address).status_code == 404
