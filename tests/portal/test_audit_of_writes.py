"""Every write that succeeds leaves one entry in the audit trail: who, why, by which request."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import transaction
from django.test import Client

from tests.portal import bodies, outcomes, permissions
from tests.portal.admin.filling import TYPED, filled
from tests.portal.outcomes import blank_pages, unlogged_refusals
from tests.portal.routes import Route, routes
from tests.portal.world import World, small_world
from wms.accounting.models import Frontend
from wms.core.models import AuditEntry
from wms.sites.models import Site

__all__ = ["blank_pages", "unlogged_refusals"]

#: Writes of which the trail does not tell once, each with the reason.
UNTOLD = {
    "web:login": "is counted among failures, and stands in the log",
    "api:login": "makes a token, which is audited",
    "web:logout": "changes nothing of others",
    "web:preferences": "one's own",
    "web:columns": "one's own",
    "web:explain": "writes nothing",
    "web:what-if": "writes nothing",
    "api:explain": "writes nothing",
    "api:dags-check": "writes nothing",
    "api:jobs-check": "writes nothing",
    "web:read-notices": "one's own",
    "web:tell": "one's own",
    "web:start-filter": "one's own",
    "web:save-filter": "one's own until it is shared",
    "api:filters": "one's own until it is shared",
    "api:notices-read": "one's own",
    "api:schedule-run": "is told by who asked, and its DAG's submission by the owner",
    "api:ads": "is told when what is advertised differs from the last time",
    "web:retry-bulk": "freezes a selection",
    "api:bulk-retry": "freezes a selection",
    "web:new-bulk": "freezes a selection; the operation is told when it is confirmed",
    "admin:logout": "changes nothing of others",
    "admin:sites_site_import": "each object that is changed is told, and the import as a whole",
    "api:bulk": "freezes a selection; the operation is told when it is confirmed",
}
#: What is deleted of all, not of one's own: the address gives the reason.
REASONED = (
    "api:concurrency-limit", "api:group", "api:identity",
    "api:downtime", "api:quota", "api:running-limit", "api:shared-limit", "api:credential",
    "api:remote-factory", "api:remote-factory-token", "api:remote-frontend",
    "api:remote-frontend-token", "api:frontend", "api:frontend-entry", "api:storage",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Written:
    """What a request left behind."""

    status: int
    request_id: str
    entries: list[AuditEntry]
    reason: str


def _write(world: World, client: Client, route: Route, method: str) -> Written:
    address, cookies = outcomes.address(world, route), deepcopy(client.cookies)
    body: dict[str, Any] = bodies.BODIES.get(route.name, dict)()
    if route.name in TYPED:
        body = filled(client, address, route.name) | _references(world, route.name)
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
    # A changed password changes the session, which was taken back.
    client.cookies = cookies
    # The text of a remark is why it was written.
    reason = str(body.get("reason", body.get("text", "")))
    return Written(answer.status_code, answer["X-Request-ID"], entries, reason)


def _references(world: World, name: str) -> dict[str, int]:
    """What must be chosen in a new row."""
    if name in ("admin:sites_queue_add", "admin:sites_downtime_add"):
        return {"site": world.site.pk}
    if name == "admin:sites_frontendentry_add":
        bare = Frontend.objects.order_by("pk").values_list("pk", flat=True)[0]
        return {"queue": world.queue.pk, "frontend": bare}
    if name == "admin:pilots_credential_add":
        bare = Frontend.objects.order_by("pk").values_list("pk", flat=True)[0]
        return {"site": Site.objects.get(name="Pool0of1").pk, "frontend": bare}
    if name == "admin:pilots_remotefrontend_add":
        return {"frontend": Frontend.objects.get(name="bare1").pk}
    is_of_user = name in (
        "admin:core_apitoken_add", "admin:core_identity_add", "admin:accounting_quota_add",
    )  # fmt: skip
    return {"user": world.people.bob.pk} if is_of_user else {}


def _is_done(route: Route, written: Written) -> bool:
    """Pages lead on when something was done; the API answers well. A token is shown once."""
    shows_token = ("admin:core_apitoken_add", "admin:factories_remotefactory_add")
    is_page = not route.name.startswith("api:") and route.name not in shows_token
    return written.status == 302 if is_page else written.status < 300


def _writes(rules: dict[str, str]) -> list[Route]:
    return [
        route
        for route in routes()
        if (route.name.startswith(("web:", "api:")) and permissions.rule_of(rules, route))
        or (rules is permissions.POST and route.name in TYPED)
        if route.name not in UNTOLD
    ]


@pytest.fixture(scope="module")
def world(module_rows: None) -> World:
    return small_world()


@pytest.mark.slow
@pytest.mark.usefixtures("blank_pages")
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_each_write_leaves_one_entry_if_it_succeeds_and_none_if_it_is_refused(
    world: World, db: None, method: str
) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(world.people.ada)
    rules = {"POST": permissions.POST, "PUT": permissions.PUT, "DELETE": permissions.DELETE}[method]
    found = {route.name: _write(world, client, route, method) for route in _writes(rules)}

    done = {r.name: found[r.name] for r in _writes(rules) if _is_done(r, found[r.name])}
    refused = {name: written for name, written in found.items() if written.status >= 400}
    assert len(done) >= {"POST": 20, "PUT": 3, "DELETE": 3}[method], sorted(done)
    assert method != "POST" or set(TYPED) - set(done) == set()
    counts = {name: len(written.entries) for name, written in {**done, **refused}.items()}
    assert counts == dict.fromkeys(done, 1) | dict.fromkeys(refused, 0)
    for name, written in done.items():
        (entry,) = written.entries
        told = (entry.actor, entry.request_id, entry.reason)
        if method == "DELETE" and name not in REASONED:
            assert told[:2] == ("ada", written.request_id), name
        elif method == "DELETE":
            assert told == ("ada", written.request_id, "look"), name
        else:
            assert told == ("ada", written.request_id, written.reason), name


def test_every_form_of_the_administration_is_sent_in_this_walk() -> None:
    forms = [
        route.name
        for route in routes()
        if route.name.startswith("admin:")
        and (permissions.rule_of(permissions.POST, route) or "").endswith("o")
        and not route.name.endswith("_changelist")
    ]

    assert set(forms) - set(TYPED) - set(UNTOLD) == {"admin:password_change"}
