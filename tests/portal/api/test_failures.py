"""Failure groups in the API: the same groups, counts and decisions as on the pages."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests import factories
from wms.core.models import AuditEntry, User
from wms.failures import grouping
from wms.failures.models import FailureGroup

FAILURES = "/api/v1/failures/"


@pytest.fixture
def people(db: None) -> Any:
    return factories.people()


@pytest.fixture
def group(people: Any) -> FailureGroup:
    """Two failures of one cause at a site."""
    worker = factories.pilot()
    for _ in range(2):
        factories.job(people.alice)
        factories.run_job(worker, exit_code=7)
    grouping.run_cycle(timezone.now())
    return FailureGroup.objects.get()


def as_user(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_groups_are_listed_and_filtered_as_on_the_page(people: Any, group: FailureGroup) -> None:
    client = as_user(people.vera)

    [told] = client.get(FAILURES, {"within": "24h", "site": "UW"}).json()["results"]

    assert (told["id"], told["total"], told["category"]) == (group.pk, 2, "payload")
    assert client.get(FAILURES, {"site": "CERN"}).json()["results"] == []
    assert client.get(FAILURES, {"state": "!active"}).json()["results"] == []


@pytest.mark.parametrize("query", [{"state": "lost"}, {"within": "3y"}, {"moon": "1"}])
def test_a_filter_that_cannot_be_read_is_refused(
    people: Any, group: FailureGroup, query: dict[str, str]
) -> None:
    answer = as_user(people.vera).get(FAILURES, query)

    assert answer.status_code == 400
    assert next(iter(query)) in answer.content.decode()


def test_one_group_tells_its_counts_by_site_and_hour(people: Any, group: FailureGroup) -> None:
    told = as_user(people.vera).get(f"{FAILURES}{group.pk}/", {"within": "24h"}).json()

    assert (told["count"], told["sites"]) == (2, [{"site": "UW", "count": 2}])
    assert (len(told["last_hours"]), sum(told["last_hours"])) == (24, 2)
    assert as_user(people.vera).get(f"{FAILURES}{group.pk}/?within=x").status_code == 400
    assert as_user(people.vera).get(f"{FAILURES}999/").status_code == 404


def post(user: User, group: FailureGroup, what: str, **body: str) -> Any:
    address = f"{FAILURES}{group.pk}/{what}/"
    return as_user(user).post(address, body, content_type="application/json")


def test_a_shifter_mutes_with_a_reason_and_is_audited(people: Any, group: FailureGroup) -> None:
    assert post(people.alice, group, "mute", reason="mine").status_code == 403
    assert post(people.sam, group, "mute").status_code == 400

    answer = post(people.sam, group, "mute", reason="known")

    assert (answer.status_code, answer.json()["state"]) == (200, "muted")
    assert AuditEntry.objects.filter(target=f"failure group {group.pk}", actor="sam").count() == 1
    assert post(people.sam, group, "mute", reason="again").status_code == 409


def test_a_group_is_resolved_reopened_and_categorised(people: Any, group: FailureGroup) -> None:
    resolved = post(people.sam, group, "resolve", reason="new image").json()
    reopened = post(people.sam, group, "reopen", reason="not so").json()
    moved = post(people.sam, group, "categorise", reason="the disk", category="site").json()

    assert (resolved["state"], reopened["state"], moved["category"]) == (
        "resolved", "active", "site",
    )  # fmt: skip
    answer = post(people.sam, group, "categorise", reason="the disk", category="moon")
    assert answer.status_code == 400
