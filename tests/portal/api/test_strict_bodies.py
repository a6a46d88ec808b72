"""Bodies with names that nobody knows, and times without a zone: refused at their place."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from rest_framework.test import APIClient

from tests import factories
from wms.core.models import User

_TIMES = {"start": "2100-01-01T00:00:00Z", "end": "2100-01-02T00:00:00Z", "reason": "new disks"}
_NAIVE = "2100-05-01T08:00:00"


@pytest.fixture
def olga(people: SimpleNamespace, as_user: Callable[[User], APIClient]) -> APIClient:
    factories.site()
    return as_user(people.olga)


def places(answer: Any) -> tuple[int, set[str]]:
    """Status of an answer, and fields of its findings."""
    return answer.status_code, {each["field"] for each in answer.json().get("findings", ())}


@pytest.mark.parametrize(
    ("address", "body"),
    [
        ("bulk/", {"list": "dags", "action": "hold", "ids": [1], "dry_run": True}),
        ("filters/", {"list": "dags", "name": "mine", "parameters": {"state": "idle"}}),
        ("notices/read/", {}),
        ("subscriptions/", {"rule": "site"}),
        ("sites/UW/downtimes/", _TIMES),
        ("downtimes/", _TIMES | {"sites": ["UW"]}),
        ("jobs/", {"executable": "/bin/true"}),
    ],
)
def test_an_unknown_name_is_refused(olga: APIClient, address: str, body: dict[str, Any]) -> None:
    answer = olga.post(f"/api/v1/{address}", body | {"dryrun": True}, format="json")

    assert places(answer) == (400, {"dryrun"})


@pytest.mark.parametrize(
    ("address", "body", "field"),
    [
        ("sites/UW/downtimes/", _TIMES | {"start": _NAIVE}, "start"),
        ("downtimes/", _TIMES | {"sites": ["UW"], "end": _NAIVE}, "end"),
        ("tokens/", {"name": "nightly", "expires_at": _NAIVE}, "expires_at"),
        ("jobs/", {"executable": "/bin/true", "deadline": _NAIVE}, "deadline"),
        ("campaigns/mc/27/deadline/", {"deadline": _NAIVE, "reason": "talk"}, "deadline"),
    ],
)
def test_a_time_without_a_zone_is_refused(
    olga: APIClient, people: SimpleNamespace, address: str, body: dict[str, Any], field: str
) -> None:
    answer = olga.post(f"/api/v1/{address}", body, format="json")

    assert places(answer) == (400, {field})
