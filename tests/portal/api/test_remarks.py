"""Remarks and the shift log by the API."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

from rest_framework.test import APIClient

from tests import factories
from wms.core.models import User
from wms.remarks.models import Remark


def test_a_shifter_acknowledges_once_and_finds_it_by_who_looks_after_what(
    people: SimpleNamespace, as_user: Callable[[User], APIClient]
) -> None:
    sam, dag, other = as_user(people.sam), factories.dag(people.alice), factories.dag(people.bob)
    site = factories.site("UW")
    at, body = f"/api/v1/dags/{dag.pk}/", {"reason": "known", "for_s": 3600}
    key = {"HTTP_IDEMPOTENCY_KEY": "one"}

    first = sam.post(f"{at}acknowledge/", body, format="json", **key)
    again = sam.post(f"{at}acknowledge/", body, format="json", **key)
    assigned = sam.post(f"{at}assign/", {"person": "alice"}, format="json")
    noted = sam.post(f"/api/v1/sites/{site.name}/note/", {"reason": "full"}, format="json")
    entry = sam.post("/api/v1/remarks/", {"text": "a quiet night"}, format="json")

    assert [each.status_code for each in (first, again, assigned, noted, entry)] == [
        201, 200, 201, 201, 201,
    ]  # fmt: skip
    assert again.json() == first.json() == sam.get(first["Location"]).json()
    assert (assigned.json()["person"], entry.json()["subject_id"]) == ("alice", None)
    assert Remark.objects.count() == 4
    same = sam.post(f"{at}assign/", {"person": "alice"}, format="json")
    nobody = sam.post(f"{at}assign/", {"person": "nobody"}, format="json")
    assert (same.status_code, nobody.status_code) == (409, 400)

    def found(query: str) -> list[int]:
        return [each["id"] for each in sam.get(f"/api/v1/{query}").json()["results"]]

    assert found("dags/?acknowledged=true") == found("dags/?assigned=alice") == [dag.pk]
    assert found("dags/?acknowledged=false") == found("dags/?assigned=!alice") == [other.pk]
    assert found("remarks/?subject=site:UW") == [noted.json()["id"]]
    assert found(f"remarks/?subject=dag:{dag.pk}&event=assign") == [assigned.json()["id"]]
    assert found("remarks/?kind=log&author=sam&created=8h") == [entry.json()["id"]]
    assert sam.get("/api/v1/remarks/?subject=job:1").status_code == 400


def test_me_is_whoever_asks_in_every_filter_of_users(
    people: SimpleNamespace, as_user: Callable[[User], APIClient]
) -> None:
    sam, dag, other = as_user(people.sam), factories.dag(people.alice), factories.dag(people.sam)
    at = f"/api/v1/dags/{dag.pk}/assign/"
    remark = sam.post(at, {"person": "alice"}, format="json").json()["id"]

    def found(user: User, query: str) -> list[int]:
        return [each["id"] for each in as_user(user).get(f"/api/v1/{query}").json()["results"]]

    assert found(people.alice, "dags/?assigned=me") == [dag.pk]
    assert found(people.alice, "remarks/?person=me") == [remark]
    assert found(people.alice, "dags/?owner=me") == found(people.sam, "dags/?owner=!me") == [dag.pk]
    assert found(people.sam, "dags/?assigned=!me,bob") == []
    assert found(people.sam, "dags/?assigned=!me") == [other.pk, dag.pk]
    assert found(people.sam, "remarks/?person=me") == found(people.sam, "dags/?assigned=me") == []
