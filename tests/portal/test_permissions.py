"""Every address of the portal for every role: an address that nobody decided about fails here.

An outcome is one letter: `o` let in, `L` sent to the login or told to authenticate, `f` forbidden,
`m` method not allowed, `n` not found, `b` bad request, `c` conflict, `u` unavailable. A rule has
one for each of ROLES.
"""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.http import HttpResponseBase
from django.test import Client
from django.urls import reverse

from tests import factories
from tests.portal.world import Route, World, routes, small_world
from wms.dags.models import Dag

#: Alice owns the DAG; Bob is another user.
ROLES = ("anonymous", "vera", "bob", "alice", "sam", "olga", "ada")

OPEN = "ooooooo"
READ = "Loooooo"
SUBMIT = "Lfooooo"
STEER = "Lffoooo"
OPERATE = "Lffffoo"
ADMINISTER = "Lfffffo"
NOBODY = "Lffffff"
SHIFT = "Lfffooo"
POSTED_TO = "Lmmmmmm"
NO_GET = "mmmmmmm"
#: Alice's own tokens, subscriptions and ways to be told: nobody else knows of them.
MINE = "Lnnonnn"
#: What Alice shares: hers, and that of operators.
OWN = "Lffofoo"
#: Alice's bulk operations: users see their own ones only.
SEEN = "Lnnoooo"

GET = {
    "health-ready": "uuuuuuu",  # no control loop has run in a test
    "health-live": OPEN,
    "web:login": OPEN,
    "web:logout": NO_GET,
    "web:steer": READ,  # leads to the DAG and changes nothing
    "web:dag-limits": STEER,
    "web:steer-nodes": STEER,
    "web:graph-changes": "Lbbbbbb",  # asked without naming a version
    "web:remove-placement": READ,  # leads to the request and changes nothing
    "web:save-filter": NO_GET,
    "web:change-filter": NO_GET,
    "web:remove-filter": NO_GET,
    "web:columns": NO_GET,
    "web:preferences": NO_GET,
    "web:tell": NO_GET,
    "web:read-notices": NO_GET,
    "web:add-token": NO_GET,
    "web:revoke-token": NO_GET,
    "web:password": NO_GET,
    "web:start-filter": NO_GET,
    "web:subscribe": NO_GET,
    "web:unsubscribe": NO_GET,
    "web:add-channel": NO_GET,
    "web:change-channel": NO_GET,
    "api:notices-read": POSTED_TO,
    "api:subscription": POSTED_TO,
    "web:new-downtime": SHIFT,
    "web:bulk-operation": SEEN,
    "web:confirm-bulk": SEEN,  # leads to the preview and changes nothing
    "web:*": READ,
    "api:docs": READ,
    "api:sites-yaml": OPERATE,
    "api:dags-check": POSTED_TO,
    "api:dag-graph-changes": "Lbbbbbb",  # asked without naming a version
    "api:dag-halt": POSTED_TO,
    "api:dag-rescue": POSTED_TO,
    "api:dag-nodes-*": POSTED_TO,
    "api:placement-remove": POSTED_TO,
    "api:dag-hold": "Lmmmmmm",
    "api:dag-release": "Lmmmmmm",
    "api:dag-remove": "Lmmmmmm",
    "api:dag-rematch": "Lmmmmmm",
    "api:dags-rematch": "Lmmmmmm",
    "api:site-ban": POSTED_TO,
    "api:site-drain": POSTED_TO,
    "api:site-unban": POSTED_TO,
    "api:job-kill": POSTED_TO,
    "api:job-peek": POSTED_TO,
    "api:job-stop-after": POSTED_TO,
    "api:pilot-drain": POSTED_TO,
    "api:failure-*": POSTED_TO,
    "api:bulk-operation": SEEN,
    "api:bulk-items": SEEN,
    "api:bulk-stop": POSTED_TO,
    "api:bulk-retry": POSTED_TO,
    "api:ads": POSTED_TO,
    "api:explain": POSTED_TO,
    "api:history": "Lbbbbbb",  # asked without naming a series
    "api:*": READ,
    "pilot_api:manifest": OPEN,
    "pilot_api:file": OPEN,
    "pilot_api:input-file": "LLLLLLL",
    "pilot_api:*": NO_GET,
    "admin:logout": "Lffffmm",
    "admin:core_user_*_delete": NOBODY,
    "admin:core_user_delete": NOBODY,
    "admin:core_user_*": ADMINISTER,
    "admin:pilots_nodecheck_*delete": NOBODY,
    "admin:pilots_nodecheck_*": ADMINISTER,
    "admin:core_auditentry_add": NOBODY,
    "admin:accounting_submitter_add": NOBODY,
    "admin:accounting_submitter_delete": NOBODY,
    "admin:accounting_*_delete": OPERATE,
    "admin:dags_matchmakingpolicy_add": NOBODY,
    "admin:taskqueues_*_add": NOBODY,
    "admin:jobs_runninglimit_delete": OPERATE,
    "admin:pilots_pilotlimit_delete": OPERATE,
    "admin:dags_sharedlimit_delete": OPERATE,
    "admin:*_delete": NOBODY,
    "admin:autocomplete": NOBODY,
    "admin:view_on_site": "Lffffnn",
    "admin:<<*": OPERATE,
    "admin:<(*": "Lffffnn",
    "admin:*": OPERATE,
}

#: Requests that change something. All others must not be let through by any method but GET.
POST = {
    "api:dags": SUBMIT,
    "api:dag-hold": STEER,
    "api:dag-release": "Lffcccc",  # the DAG is not held
    "api:dag-remove": STEER,
    "api:dag-rematch": STEER,
    "api:dags-rematch": STEER,
    "api:dags-check": SUBMIT,
    "api:dag-halt": STEER,
    "api:dag-rescue": "Lffcccc",  # the DAG has not ended
    "api:dag-limits": STEER,
    "api:dag-nodes-*": "Lffbbbb",  # the node is under way
    "api:placement-remove": STEER,
    "api:shared-limits": OPERATE,
    "api:site-ban": SHIFT,
    "api:site-drain": SHIFT,
    "api:site-unban": "Lfffccc",  # the site is open
    "api:job-kill": "Lffcccc",  # the job has ended
    "api:job-peek": "Lffcccc",
    "api:job-stop-after": "Lfffccc",
    "api:pilot-drain": SHIFT,
    "api:failure-mute": SHIFT,
    "api:failure-resolve": SHIFT,
    "api:failure-reopen": "Lfffccc",  # the group is active
    "api:failure-categorise": SHIFT,
    "api:site-downtimes": SHIFT,
    "api:ads": OPERATE,
    "api:running-limits": OPERATE,
    "api:explain": READ,
    "api:filters": READ,  # everybody keeps filters of their own
    "web:save-filter": READ,
    "web:change-filter": OWN,
    "web:remove-filter": OWN,
    "web:columns": READ,
    "web:preferences": READ,
    "web:tell": READ,
    "web:read-notices": READ,
    "web:add-token": READ,
    "web:revoke-token": MINE,
    "web:password": READ,
    "web:start-filter": READ,
    "web:subscribe": READ,
    "web:unsubscribe": MINE,
    "web:add-channel": READ,
    "web:change-channel": MINE,
    "api:notices-read": READ,
    "api:subscriptions": READ,
    "web:submit": SUBMIT,
    "web:steer": STEER,
    "web:new-bulk": SUBMIT,
    "web:confirm-bulk": "Lnnofff",  # only who made the preview
    "web:stop-bulk": "Lfnoooo",
    "web:retry-bulk": "Lfnoooo",
    "api:bulk": SUBMIT,
    "api:bulk-stop": "Lfnoooo",
    "api:bulk-retry": "Lfnoooo",
    "web:dag-limits": STEER,
    "web:rescue": "Lffcccc",  # the DAG has not ended
    "web:steer-nodes": "Lffbbbb",  # the node is under way
    "web:remove-placement": STEER,
    "web:steer-job": "Lffcccc",  # the job has ended
    "web:drain-pilot": SHIFT,
    "web:steer-site": SHIFT,
    "web:new-downtime": SHIFT,
    "web:change-downtime": SHIFT,
    "web:cancel-downtime": SHIFT,
    "api:downtimes": SHIFT,
    "web:steer-error": SHIFT,
    "web:new-error-rule": OPERATE,
    "web:error-rule": OPERATE,
    "web:explain": READ,  # writes nothing
    "web:what-if": READ,  # writes nothing
    "web:login": OPEN,
    "web:logout": OPEN,
    "pilot_api:register": "bbbbbbb",
    "pilot_api:unfit": "bbbbbbb",
    "pilot_api:checks": "LLLLLLL",
    "pilot_api:heartbeat": "LLLLLLL",
    "pilot_api:claim": "LLLLLLL",
    "pilot_api:report": "LLLLLLL",
    "pilot_api:stream": "LLLLLLL",
    "pilot_api:log": "LLLLLLL",
    "pilot_api:end": "LLLLLLL",
    "admin:logout": "Lffffoo",
    "admin:password_change": OPERATE,
    "admin:accounting_submitter_add": NOBODY,
    "admin:accounting_submitter_delete": NOBODY,
    "admin:accounting_*_add": OPERATE,
    "admin:accounting_*_change": OPERATE,
    "admin:accounting_*_delete": OPERATE,
    "admin:dags_matchmakingpolicy_change": OPERATE,
    "admin:taskqueues_taskqueuepolicy_change": OPERATE,
    "admin:taskqueues_taskqueue_change": NOBODY,
    "admin:jobs_runninglimit_add": OPERATE,
    "admin:pilots_pilotlimit_add": OPERATE,
    "admin:jobs_runninglimit_change": OPERATE,
    "admin:pilots_pilotlimit_change": OPERATE,
    "admin:jobs_runninglimit_delete": OPERATE,
    "admin:pilots_pilotlimit_delete": OPERATE,
    "admin:dags_sharedlimit_add": OPERATE,
    "admin:dags_sharedlimit_change": OPERATE,
    "admin:dags_sharedlimit_delete": OPERATE,
    "api:sites-yaml": "Lffffbb",  # neither a dry run nor a token
    "admin:sites_site_import": "Lffffbb",  # without a document
    "admin:sites_*_add": OPERATE,
    "admin:sites_*_change": OPERATE,
    "admin:*_changelist": OPERATE,
    "admin:pilots_nodecheck_add": ADMINISTER,
    "admin:pilots_nodecheck_change": ADMINISTER,
    "admin:core_user_add": ADMINISTER,
    "admin:core_user_change": ADMINISTER,
    "admin:core_apitoken_add": OPERATE,
}
#: Lists of the administration that only administrators see.
POST = {
    "admin:core_user_changelist": ADMINISTER,
    "admin:pilots_nodecheck_changelist": ADMINISTER,
    **POST,
}

DELETE = {
    "api:subscription": MINE,
    "api:filter": OWN,
    "api:ad": OPERATE,
    "api:downtime": SHIFT,
    "api:running-limit": OPERATE,
    "api:shared-limit": OPERATE,
}
PUT = {
    "api:downtime": SHIFT,
    "api:filter": OWN,
    "api:running-limit": OPERATE,
    "api:shared-limit": OPERATE,
    "api:task-queue-policy": OPERATE,
}


def _dag_parts(files: str) -> dict[str, Any]:
    return {
        "dag": SimpleUploadedFile("new.dag", b"JOB A job.sub\n"),
        files: [
            SimpleUploadedFile("job.sub", factories.SUBMIT_FILE.encode()),
            SimpleUploadedFile("run.sh", b"#!/bin/sh\n"),
        ],
    }


def _rule_form(name: str) -> dict[str, Any]:
    return {"position": 5, "name": name, "pattern": "x", "version": 1, "action": "save"}


_DOWNTIME = {"start": "2100-01-01T00:00", "end": "2100-01-02T00:00", "reason": "look"}


def _dag_ids() -> list[int]:
    return list(Dag.objects.values_list("pk", flat=True))


#: Bodies without which a request is refused before its permission is looked at.
BODIES: dict[str, Callable[[], dict[str, Any]]] = {
    "api:dags": lambda: _dag_parts("file"),
    "api:dags-check": lambda: _dag_parts("file"),
    "web:submit": lambda: _dag_parts("files"),
    "api:filters": lambda: {"list": "jobs", "name": "new", "parameters": {"state": ["held"]}},
    "api:filter": lambda: {"name": "renamed"},
    "web:save-filter": lambda: {"list": "jobs", "name": "new", "query": "state=held"},
    "web:change-filter": lambda: {"name": "renamed", "is_shared": "on"},
    "web:columns": lambda: {"list": "jobs", "column": ["state"]},
    "web:preferences": lambda: {"theme": "dark"},
    "web:add-token": lambda: {"name": "nightly", "days": "30"},
    "web:password": lambda: {
        "old_password": factories.PASSWORD,
        "new_password1": "a purple staple",
        "new_password2": "a purple staple",
    },
    "web:start-filter": lambda: {"list": "jobs", "filter": ""},
    "web:subscribe": lambda: {"rule": "site"},
    "web:add-channel": lambda: {
        "kind": "webhook",
        "url": "https://hooks.example.org/new",
        "pace": "now",
    },
    "web:change-channel": lambda: {"action": "renew"},
    "api:subscriptions": lambda: {"rule": "site"},
    "api:dag-halt": lambda: {"reason": "look"},
    "api:dag-rescue": lambda: {"reason": "look"},
    "api:dag-limits": lambda: {"reason": "look", "options": {"max_jobs": 5}},
    "api:dag-nodes-rerun": lambda: {"reason": "look", "nodes": ["A1"]},
    "api:dag-nodes-mark": lambda: {"reason": "look", "nodes": ["A1"], "as_done": True},
    "api:dag-nodes-change": lambda: {"reason": "look", "nodes": ["A1"], "priority": 5},
    "api:placement-remove": lambda: {"reason": "look"},
    "api:shared-limits": lambda: {"max_jobs": 1},
    "api:shared-limit": lambda: {"max_jobs": 1},
    "web:dag-limits": lambda: {"reason": "look", "max_jobs": "5"},
    "web:rescue": lambda: {"reason": "look"},
    "web:steer-nodes": lambda: {"reason": "look", "nodes": "A1"},
    "web:remove-placement": lambda: {"reason": "look"},
    "api:dag-hold": lambda: {"reason": "look"},
    "api:dag-remove": lambda: {"reason": "look"},
    "api:dag-rematch": lambda: {"reason": "look"},
    "api:dags-rematch": lambda: {"reason": "look", "dags": _dag_ids()},
    "api:job-kill": lambda: {"reason": "look"},
    "api:job-stop-after": lambda: {"reason": "look"},
    "api:pilot-drain": lambda: {"reason": "look"},
    "web:steer-job": lambda: {"reason": "look"},
    "web:drain-pilot": lambda: {"reason": "look"},
    "api:failure-mute": lambda: {"reason": "look"},
    "api:failure-resolve": lambda: {"reason": "look"},
    "api:failure-reopen": lambda: {"reason": "look"},
    "api:failure-categorise": lambda: {"reason": "look", "category": "data"},
    "web:steer-error": lambda: {"reason": "look"},
    "web:new-error-rule": lambda: _rule_form("New"),
    "web:error-rule": lambda: _rule_form("Changed"),
    "api:site-ban": lambda: {"reason": "look"},
    "api:site-drain": lambda: {"reason": "look"},
    "api:site-unban": lambda: {"reason": "look"},
    "api:site-downtimes": lambda: {
        "start": "2100-01-01T00:00:00Z",
        "end": "2100-01-02T00:00:00Z",
        "reason": "look",
    },
    "api:ads": lambda: {"Name": "UW"},
    "api:running-limits": lambda: {"maximum": 1},
    "api:running-limit": lambda: {"maximum": 1},
    "api:task-queue-policy": lambda: {
        "cpu_segments_s": [500],
        "law": "uniform",
        "default_share": 1,
        "uses_feedback": False,
        "max_correction": 3,
    },
    "api:explain": lambda: {"ad": "Requirements = true"},
    "web:steer": lambda: {"reason": "look"},
    "web:steer-site": lambda: {"reason": "look"},
    "web:new-downtime": lambda: {"site": ["UW"], **_DOWNTIME},
    "web:change-downtime": lambda: _DOWNTIME,
    "web:cancel-downtime": lambda: {"reason": "look"},
    "api:downtimes": lambda: {"sites": ["UW"], **_DOWNTIME},
    "api:downtime": lambda: _DOWNTIME,
    "web:explain": lambda: {"ad": "Requirements = true"},
    "web:what-if": lambda: {"ad": "Requirements = true"},
    "web:new-bulk": lambda: {"list": "dags", "action": "hold", "pick": _dag_ids()},
    "web:confirm-bulk": lambda: {"reason": "look"},
    "api:bulk": lambda: {"list": "dags", "action": "hold", "ids": _dag_ids(), "dry_run": True},
    "admin:accounting_accountinggroup_delete": lambda: {"post": "yes"},
    "admin:accounting_concurrencylimit_delete": lambda: {"post": "yes"},
    "admin:jobs_runninglimit_delete": lambda: {"post": "yes"},
    "admin:pilots_pilotlimit_delete": lambda: {"post": "yes"},
    "admin:dags_sharedlimit_delete": lambda: {"post": "yes"},
}


def _rule(rules: dict[str, str], route: Route) -> str | None:
    return next((rules[name] for name in rules if fnmatchcase(route.name, name)), None)


def _address(world: World, route: Route) -> str:
    if route.name == "admin:<<path:object_id>/>":
        return f"{reverse('admin:index')}sites/site/{world.site.pk}/nothing/"
    if route.name.startswith("admin:<"):
        return f"{reverse('admin:index')}nothing/"
    return world.address(route)


def _outcome(answer: HttpResponseBase) -> str:
    letters = {400: "b", 401: "L", 403: "f", 404: "n", 405: "m", 409: "c", 503: "u"}
    if _is_sent_to(answer, "web:login"):
        return "L"
    status = answer.status_code
    return "o" if status < 400 else letters.get(status, str(status))


def _is_sent_to(answer: HttpResponseBase, name: str) -> bool:
    return answer.status_code == 302 and answer["Location"].startswith(f"{reverse(name)}?next=")


def _client(world: World, role: str) -> Client:
    client = Client(raise_request_exception=False)
    if role != "anonymous":
        client.force_login(getattr(world.people, role))
    return client


def _send(client: Client, method: str, address: str, body: dict[str, Any]) -> str:
    """The outcome of a request, whose changes are taken back."""
    with transaction.atomic():
        if method == "PUT" and body:
            answer = client.put(address, body, content_type="application/json")
        elif method != "POST":
            answer = client.generic(method, address)
        elif address.startswith("/api/") and not any(hasattr(v, "read") for v in body.values()):
            answer = client.post(address, body, content_type="application/json")
        else:
            answer = client.post(address, body)
        if answer.status_code == 302 and answer["Location"] == reverse("admin:index"):
            answer = client.get(answer["Location"])
        if _is_sent_to(answer, "admin:login"):
            # It sends visitors on to the login, and tells the others that they lack the role.
            answer = client.get(answer["Location"])
        if answer.streaming:
            # Reading a file to its end closes it.
            b"".join(answer.streaming_content)
        transaction.set_rollback(True)
    return _outcome(answer)


@pytest.mark.parametrize("route", routes(), ids=lambda route: route.name)
def test_somebody_decided_who_may_read_each_address(route: Route) -> None:
    assert _rule(GET, route) is not None


@pytest.mark.parametrize("role", ROLES)
def test_every_address_lets_in_who_may_read_it(db: None, role: str) -> None:
    world, place = small_world(), ROLES.index(role)
    client = _client(world, role)

    outcomes = {route.name: _send(client, "GET", _address(world, route), {}) for route in routes()}

    expected = {route.name: (_rule(GET, route) or "?" * len(ROLES))[place] for route in routes()}
    assert outcomes == expected


@pytest.mark.parametrize("role", ROLES)
def test_every_change_is_made_by_who_may_make_it(db: None, role: str) -> None:
    world, place = small_world(), ROLES.index(role)
    changing = [route for route in routes() if _rule(POST, route)]
    world.dag.__class__.objects.filter(pk=world.dag.pk).update(state="running")
    outcomes = {}

    for route in changing:
        body = BODIES.get(route.name, dict)()
        outcomes[route.name] = _send(_client(world, role), "POST", _address(world, route), body)

    assert outcomes == {route.name: (_rule(POST, route) or "")[place] for route in changing}


@pytest.mark.parametrize("role", ROLES)
def test_everything_is_deleted_by_who_may_delete_it(db: None, role: str) -> None:
    world = small_world()
    client = _client(world, role)

    outcomes = {
        route.name: _send(client, "DELETE", _address(world, route), {})
        for route in routes()
        if route.name in DELETE
    }

    assert outcomes == {name: rule[ROLES.index(role)] for name, rule in DELETE.items()}


@pytest.mark.parametrize("role", ROLES)
def test_everything_is_put_by_who_may_put_it(db: None, role: str) -> None:
    world = small_world()
    client = _client(world, role)

    outcomes = {
        route.name: _send(client, "PUT", _address(world, route), BODIES[route.name]())
        for route in routes()
        if route.name in PUT
    }

    assert outcomes == {name: rule[ROLES.index(role)] for name, rule in PUT.items()}


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
@pytest.mark.parametrize("role", ["anonymous", "ada"])
def test_no_other_request_goes_through(db: None, role: str, method: str) -> None:
    """Django's administration and login show their page for any method but act on POST only."""
    world = small_world()
    client = _client(world, role)
    others = [
        route
        for route in routes()
        if not (route.name.startswith("admin:") or route.name == "web:login")
        and not (method == "POST" and _rule(POST, route))
        and not (method == "DELETE" and route.name in DELETE)
        and not (method == "PUT" and route.name in PUT)
    ]

    let_in = {
        route.name: outcome
        for route in others
        if (outcome := _send(client, method, _address(world, route), {})) not in "Lfmnb"
    }

    assert let_in == {}
