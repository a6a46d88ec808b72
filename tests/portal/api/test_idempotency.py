"""Idempotency keys of requests that make something: each takes one, and makes it once."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.urls import resolve
from rest_framework.test import APIClient

from tests import factories
from tests.portal import bodies, outcomes
from tests.portal.routes import Route, routes
from tests.portal.world import World, small_world
from wms.core.idempotency_models import IdempotencyKey
from wms.core.models import AuditEntry

KEY = {"Idempotency-Key": "monday"}
MADE = (201, 202)
DOWNTIME = {"start": "2100-01-01T00:00Z", "end": "2100-01-02T00:00Z", "reason": "look"}
URL = "/api/v1/sites/UW/downtimes/"


def _keeps_answer(world: World, route: Route) -> bool:
    """Whether the view keeps the answer; services that take a key have tests of their own."""
    if not route.name.startswith("api:"):
        return False
    view = getattr(resolve(outcomes.address(world, route)).func, "cls", None)
    return getattr(getattr(view, "post", None), "keeps_answer", False)


def _twice(world: World, route: Route) -> list[Any]:
    """Answers to a request that makes something, to the same again, and to another content."""
    client = Client(raise_request_exception=False)
    client.force_login(world.people.ada)
    address = outcomes.address(world, route)

    def send(query: str = "") -> Any:
        body = bodies.BODIES.get(route.name, dict)()
        has_files = any(hasattr(value, "read") for value in body.values())
        more = {} if has_files else {"content_type": "application/json"}
        return client.post(f"{address}{query}", body, headers=KEY, **more)

    with transaction.atomic():
        answers = [send(), send(), send("?reason=other")]
        transaction.set_rollback(True)
    return answers


@pytest.mark.slow
def test_each_request_that_makes_something_makes_it_once(db: None) -> None:
    world = small_world()

    answers = {r.name: _twice(world, r) for r in routes() if _keeps_answer(world, r)}

    made = {name: several for name, several in answers.items() if several[0].status_code in MADE}
    assert len(made) >= 15, {name: several[0].content for name, several in answers.items()}
    statuses = {name: [each.status_code for each in several[1:]] for name, several in made.items()}
    assert statuses == {name: [200, 409] for name in made}
    for name, (first, second, _) in made.items():
        assert second["Idempotency-Replayed"] == "true", name
        assert second.get("Location") == first.get("Location"), name


def test_every_operation_that_makes_something_tells_of_the_key(schema: dict[str, Any]) -> None:
    making = {
        path: operation
        for path, operations in schema["paths"].items()
        for method, operation in operations.items()
        if method == "post" and {"201", "202"} & operation["responses"].keys()
    }

    silent = [
        path
        for path, operation in making.items()
        if KEY.keys().isdisjoint(each["name"] for each in operation.get("parameters", ()))
        or not {"200", "409"} <= operation["responses"].keys()
    ]

    assert len(making) > 20
    assert silent == []


def test_an_equal_request_is_answered_as_the_first_and_makes_nothing(
    people: Any, as_user: Any
) -> None:
    factories.site()
    olga: APIClient = as_user(people.olga)

    first = olga.post(URL, DOWNTIME, format="json", headers=KEY)
    entries = AuditEntry.objects.count()
    second = olga.post(URL, DOWNTIME, format="json", headers=KEY)

    assert (first.status_code, second.status_code) == (201, 200)
    assert second.json() == first.json()
    assert AuditEntry.objects.count() == entries


def test_a_refused_request_leaves_its_key_free(people: Any, as_user: Any) -> None:
    factories.site()
    olga: APIClient = as_user(people.olga)

    refused = olga.post(URL, DOWNTIME | {"end": "1999-01-01T00:00Z"}, format="json", headers=KEY)

    assert refused.status_code == 400
    assert not IdempotencyKey.objects.exists()
    assert olga.post(URL, DOWNTIME, format="json", headers=KEY).status_code == 201


def test_what_is_secret_is_told_once_and_not_kept(people: Any, as_user: Any) -> None:
    ada: APIClient = as_user(people.ada)
    body = {"name": "cern"}

    first = ada.post("/api/v1/remote-factories/", body, format="json", headers=KEY).json()
    second = ada.post("/api/v1/remote-factories/", body, format="json", headers=KEY).json()

    assert first["token"]
    assert second == first | {"token": None}
    assert first["token"] not in str(IdempotencyKey.objects.get().answer)


def test_the_key_of_somebody_else_is_another_key(people: Any, as_user: Any) -> None:
    body = {"list": "jobs", "name": "mine", "parameters": {"state": ["held"]}}

    answers = [
        as_user(user).post("/api/v1/filters/", body, format="json", headers=KEY)
        for user in (people.alice, people.bob)
    ]

    assert [each.status_code for each in answers] == [201, 201]
