"""Every write that succeeds leaves one entry in the audit trail: who, why, by which request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from django.db import transaction
from django.test import Client

from tests.portal import asking, bodies, permissions
from tests.portal.routes import Route, routes
from tests.portal.world import World, small_world
from wms.core.models import AuditEntry

#: Writes of which the trail tells nothing, each with the reason.
UNTOLD = {
    "web:login": "is counted among failures, and stands in the log",
    "web:logout": "changes nothing of others",
    "web:preferences": "one's own",
    "web:columns": "one's own",
    "web:explain": "writes nothing",
    "web:what-if": "writes nothing",
    "api:explain": "writes nothing",
    "api:dags-check": "writes nothing",
    "web:read-notices": "one's own",
    "web:tell": "one's own",
    "web:start-filter": "one's own",
    "web:save-filter": "one's own until it is shared",
    "api:filters": "one's own until it is shared",
    "api:notices-read": "one's own",
    "api:ads": "is told when what is advertised differs from the last time",
    "web:retry-bulk": "freezes a selection",
    "api:bulk-retry": "freezes a selection",
    "web:new-bulk": "freezes a selection; the operation is told when it is confirmed",
    "api:bulk": "freezes a selection; the operation is told when it is confirmed",
}


@dataclass(frozen=True, slots=True)
class Written:
    """What a request left behind."""

    status: int
    request_id: str
    entries: list[AuditEntry]


def _write(world: World, route: Route, method: str) -> Written:
    client = Client(raise_request_exception=False)
    client.force_login(world.people.ada)
    address = asking.address(world, route)
    body: dict[str, Any] = bodies.BODIES.get(route.name, dict)()
    has_files = any(hasattr(value, "read") for value in body.values())
    last = AuditEntry.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    with transaction.atomic():
        if method == "DELETE":
            answer = client.delete(f"{address}?reason=look")
        elif method == "PUT" or (address.startswith("/api/") and not has_files):
            send = client.put if method == "PUT" else client.post
            answer = send(address, body, content_type="application/json")
        else:
            answer = client.post(address, body)
        entries = list(AuditEntry.objects.filter(pk__gt=last))
        transaction.set_rollback(True)
    return Written(answer.status_code, answer["X-Request-ID"], entries)


def _is_done(route: Route, written: Written) -> bool:
    """Pages lead on when something was done; the API answers well."""
    return written.status == 302 if route.name.startswith("web:") else written.status < 300


def _writes(rules: dict[str, str]) -> list[Route]:
    return [
        route
        for route in routes()
        if route.name.startswith(("web:", "api:"))
        and permissions.rule_of(rules, route)
        and route.name not in UNTOLD
    ]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_each_write_that_succeeds_leaves_one_entry(db: None, method: str) -> None:
    world = small_world()
    rules = {"POST": permissions.POST, "PUT": permissions.PUT, "DELETE": permissions.DELETE}[method]
    found = {route.name: _write(world, route, method) for route in _writes(rules)}

    done = {r.name: found[r.name] for r in _writes(rules) if _is_done(r, found[r.name])}
    assert len(done) >= {"POST": 20, "PUT": 3, "DELETE": 3}[method], sorted(done)
    counts = {name: len(written.entries) for name, written in done.items()}
    assert {name: count for name, count in counts.items() if count != 1} == {}
    for name, written in done.items():
        (entry,) = written.entries
        reason = bodies.BODIES.get(name, dict)().get("reason", "")
        told = (entry.actor, entry.request_id, entry.reason)
        if method == "DELETE":
            assert told[:2] == ("ada", written.request_id), name
        else:
            assert told == ("ada", written.request_id, reason), name


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_a_write_that_is_refused_leaves_no_entry(db: None, method: str) -> None:
    world = small_world()
    rules = {"POST": permissions.POST, "PUT": permissions.PUT, "DELETE": permissions.DELETE}[method]

    refused = {
        route.name: written.entries
        for route in _writes(rules)
        if (written := _write(world, route, method)).status >= 400
    }

    assert {name: entries for name, entries in refused.items() if entries} == {}
