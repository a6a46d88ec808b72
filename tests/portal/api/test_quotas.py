"""Quotas in the API: who sets them, what is used, and what a refused submission is told."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from rest_framework.test import APIClient

from tests import factories
from tests.portal.api.submissions import dag_form
from wms.accounting.models import AccountingGroup, Quota
from wms.accounting.services import save_quota
from wms.core.models import AuditEntry, User

pytestmark = pytest.mark.django_db
QUOTAS = "/api/v1/quotas/"


@pytest.fixture
def olga(people: SimpleNamespace, as_user: Callable[[User], APIClient]) -> APIClient:
    return as_user(people.olga)


def test_an_operator_sets_changes_and_deletes_a_quota(olga: APIClient) -> None:
    made = olga.post(f"{QUOTAS}?reason=tidy", {"user": "bob", "max_clusters": 3}, format="json")
    assert made.status_code == 201
    assert made.json() == {
        "id": made.json()["id"], "user": "bob", "group": None, "max_waiting_jobs": None,
        "max_clusters": 3, "max_bytes": None,
    }  # fmt: skip
    address = f"{QUOTAS}{made.json()['id']}/"

    changed = olga.put(address, {"user": "bob", "max_bytes": 2**40}, format="json")
    assert (changed.json()["max_clusters"], changed.json()["max_bytes"]) == (None, 2**40)
    assert olga.delete(f"{address}?reason=gone").status_code == 204
    assert olga.get(address).status_code == 404
    assert AuditEntry.objects.filter(target="quota of user bob").count() == 3


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"user": "nobody"}, "user"),
        ({"group": "nothing"}, "group"),
        ({"max_bytes": -1}, "max_bytes"),
        ({"max_bytes": 2**63}, "max_bytes"),
        ({"max_jobs": 1}, "max_jobs"),
        ({"user": "bob", "group": "physics"}, "group"),
    ],
)
def test_a_faulty_quota_is_refused_with_its_field(
    olga: APIClient, body: dict[str, object], field: str
) -> None:
    AccountingGroup.objects.create(name="physics")

    answer = olga.post(QUOTAS, body, format="json")

    assert answer.status_code == 400
    assert [finding["field"] for finding in answer.json()["findings"]] == [field]
    assert not Quota.objects.exists()


def test_everybody_reads_quotas_and_what_they_use_of_their_own(
    alice: APIClient, people: SimpleNamespace
) -> None:
    save_quota(Quota(max_waiting_jobs=5), actor=factories.SYSTEM)
    factories.job(people.alice)

    assert alice.post(QUOTAS, {"max_clusters": 1}, format="json").status_code == 403
    [row] = alice.get(QUOTAS).json()["results"]
    assert (row["user"], row["max_waiting_jobs"]) == (None, 5)
    lines = {line["quota"]: line for line in alice.get("/api/v1/my-quotas/").json()}
    assert lines["waiting_jobs"] == {
        "quota": "waiting_jobs", "whose": "user alice", "limit": 5, "used": 1,
    }  # fmt: skip
    assert lines["clusters"]["limit"] is None


def test_a_submission_beyond_a_quota_is_told_which_and_by_how_much(
    alice: APIClient, people: SimpleNamespace
) -> None:
    save_quota(Quota(user=people.alice, max_waiting_jobs=2), actor=factories.SYSTEM)
    factories.job(people.alice)

    answer = alice.post(
        "/api/v1/dags/",
        dag_form(),
        format="multipart",
    )

    told = answer.json()
    assert (answer.status_code, told["type"]) == (409, "/problems/quota/"), told
    facts = {name: told[name] for name in ("quota", "whose", "limit", "used", "asked")}
    assert facts == {
        "quota": "waiting_jobs", "whose": "user alice", "limit": 2, "used": 1, "asked": 2,
    }  # fmt: skip
