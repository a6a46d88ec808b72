"""Endpoints of actions, as the registry declares them: what all kinds of objects have in common."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from uuid import UUID

import pytest
from django.urls import reverse
from rest_framework.test import APIClient

from wms.actions.registry import ALL_KINDS

_MISSING = {
    "dags": ("dag", {"dag_id": 4711}),
    "clusters": ("cluster", {"cluster_id": 4711}),
    "jobs": ("job", {"job_id": 4711}),
    "pilots": ("pilot", {"uuid": UUID(int=7)}),
    "placements": ("placement", {"request_id": 4711}),
    "queues": ("queue", {"name": "Nowhere", "queue": "main"}),
    "sites": ("site", {"name": "Nowhere"}),
    "failures": ("failure", {"group_id": 4711}),
    "schedules": ("schedule", {"schedule_id": 4711}),
    "suspected-nodes": ("suspected-node", {"suspect_id": 4711}),
    "allocations": ("placement-allocation", {"allocation_id": 4711}),
    "archives": ("archive", {"archive_id": 4711}),
}
_ARGUMENTS = {"categorise": {"category": "site"}, "prolong-outputs": {"days": 30}}
_ENDPOINTS = [(kind.name, action) for kind in ALL_KINDS.values() for action in kind.in_api]


@pytest.mark.parametrize("reason", ["", "mistaken"])
@pytest.mark.parametrize(
    ("name", "action"), _ENDPOINTS, ids=[f"{name}-{action.name}" for name, action in _ENDPOINTS]
)
def test_an_action_on_what_does_not_exist_is_not_found(
    as_user: Callable[..., APIClient], people: SimpleNamespace, name: str, action, reason: str
) -> None:
    route, which = _MISSING[name]
    address = reverse(f"api:{route}-{action.api_path}", kwargs=which)
    body = {"reason": reason, **_ARGUMENTS.get(action.name, {})}

    assert as_user(people.olga).post(address, body, format="json").status_code == 404
