"""Walls between frontends: nothing of B's is in any answer that one of A's is given.

Every route is asked for with B's objects. A parameter that is not in `_SHARED` leads to somebody's
object: a route with a new one has to answer as if that did not exist, or fails here.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from django.core.serializers.json import DjangoJSONEncoder
from django.db import transaction
from django.test import Client
from django.urls import reverse

from tests import factories
from tests.portal.bodies import BODIES
from tests.portal.outcomes import address, plain_pages, unlogged_refusals
from tests.portal.permissions import DELETE, POST, PUT, rule_of
from tests.portal.routes import Route, routes
from tests.portal.walled_world import MARK, Walled, walled_world
from wms.accounting.limited_tokens import issue_limited_token
from wms.accounting.models import AccountingGroup
from wms.accounting.walls import walls_of
from wms.bulk.models import BulkItem
from wms.core.actors import Actor
from wms.core.errors import NotFound
from wms.core.models import User
from wms.dags.models import Dag, Node
from wms.dags.services.dags import hold_dags
from wms.failures.models import FailureGroup
from wms.jobs.clusters.selectors import visible_clusters
from wms.jobs.models import Cluster, Job
from wms.pilots.models import Pilot
from wms.placement.models import PlacementRequest
from wms.schedules.models import Schedule

pytestmark = [pytest.mark.usefixtures("own_cache"), pytest.mark.slow]

__all__ = ["plain_pages", "unlogged_refusals"]

ROLES = ("viewer", "user", "site administrator")
#: Parameters that lead to what all frontends share, or to a part of an object.
_SHARED = frozenset({
    "name", "queue", "downtime_id", "suspect_id", "cycle_id", "limit", "limit_id", "quota_id",
    "rule_id",
    "list_name", "panel", "form", "path", "kind", "index", "number", "attempt", "event", "sha256",
    "object_id", "content_type_id", "app_label", "url", "factory", "storage", "code",
})  # fmt: skip
#: Routes with a shared parameter that leads to somebody's object nevertheless.
_OF_SOMEBODY = frozenset({"api:shared-limit"})
#: The pilots' own, who prove who they are by secrets.
_NOT_FOR_PEOPLE = "pilot_api:"
#: Questions beside the plain addresses, of B's objects.
_ASKED = (
    "/matches/explain/?dag={dag}", "/matches/explain/?job={job}",
    "/matches/explain/?task_queue={task_queue}", "/matches/explain/?site=UW",
    "/matches/what-if/?site=UW&at=UW", "/jobs/?failure={failure}", "/jobs/?dag={dag}",
    "/?scope=all", "/?scope=mine", "/errors/?within=all", "/shares/", "/efficiency/?by=user",
    "/efficiency/?by=group", "/efficiency/accounts.csv?by=label", "/api/v1/efficiency/?by=user",
    "/api/v1/efficiency/?by=label&compare=before", "/api/v1/failures/?within=all",
    "/dags/?state=running",
    "/jobs/?state=done&group=owner", "/campaigns/", "/schedules/?state=!removed",
    "/api/v1/labels/", "/pilots/?site=UW", "/audit/?kind=dag", "/notices/",
)  # fmt: skip
_CHANGED = (Dag, Node, Job, Cluster, Pilot, PlacementRequest, FailureGroup, Schedule)


@pytest.fixture(scope="module")
def world(module_rows: None) -> Walled:
    return walled_world()


def client_of(user: User) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(user)
    return client


def _leads_to_somebodys(route: Route) -> bool:
    if route.name.startswith(("admin:", _NOT_FOR_PEOPLE)):
        return False
    return bool(route.parameters - _SHARED) or route.name in _OF_SOMEBODY


def _absent(world: Walled, route: Route) -> str:
    """An address of the route that leads to nothing."""
    nothing = {"uuid": uuid.uuid4(), "limit_id": 7 * 10**9}
    values = {
        name: nothing.get(name, 7 * 10**9)
        if name not in _SHARED or route.name in _OF_SOMEBODY
        else world.b.path_value(route, name)
        for name in route.parameters
    }
    return reverse(route.name, kwargs=values)


def _ask(client: Client, at: str, method: str = "GET", body: dict[str, Any] | None = None) -> Any:
    """Status and text of an answer, with redirections told by their targets."""
    if method == "GET":
        answer = client.get(at)
    elif at.startswith("/api/") and not any(hasattr(v, "read") for v in (body or {}).values()):
        answer = client.generic(method, at, _json(body), content_type="application/json")
    else:
        answer = client.post(at, body or {})
    content = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return answer.status_code, content.decode(errors="replace") + answer.get("Location", "")


def _json(body: dict[str, Any] | None) -> str:
    return DjangoJSONEncoder().encode(body or {})


def _links_to_b(world: Walled) -> list[str]:
    b = world.b
    pages = {
        "dags": b.dag.pk, "jobs": b.job.pk, "clusters": b.cluster.pk, "pilots": b.pilot.pk,
        "placements": b.placement.pk, "taskqueues": b.task_queue.pk,
        "schedules": Schedule.objects.values_list("pk", flat=True)[0],
    }  # fmt: skip
    return [MARK, str(b.pilot.uuid), *(f'"/{name}/{pk}/' for name, pk in pages.items())]


def _betrayed(marks: Sequence[str], asked: str, text: str) -> list[str]:
    """Marks of B's in an answer, but for what the question said itself."""
    return [mark for mark in marks if mark in text and mark.strip('"/') not in asked]


def _askers(route: Route, turn: int) -> tuple[str, ...]:
    """Roles that an address is asked in: walls are the same for all three, the pages less so.

    Every second address is asked by one of the others too, in turns.
    """
    if route.name.startswith("admin:"):
        return ("site administrator",)
    other = (("viewer",), (), ("site administrator",), ())[turn % 4]
    return ("user", *other)


@pytest.mark.usefixtures("plain_pages")
@pytest.mark.parametrize("role", ROLES)
def test_no_answer_to_one_of_a_tells_of_b(world: Walled, db: None, role: str) -> None:
    client, marks, faults = client_of(world.people[role]), _links_to_b(world), {}

    for turn, route in enumerate(routes()):
        if route.name.startswith(_NOT_FOR_PEOPLE) or route.name == "web:logout":
            continue
        if role not in _askers(route, turn):
            continue
        at = address(world.b, route)
        status, text = _ask(client, at)
        if found := _betrayed(marks, at, text):
            faults[route.name] = found
        elif _leads_to_somebodys(route) and (
            status < 300 or status != _ask(client, _absent(world, route))[0]
        ):
            faults[route.name] = status

    assert faults == {}


@pytest.mark.usefixtures("plain_pages")
def test_no_answer_to_a_question_of_one_of_a_tells_of_b(world: Walled, db: None) -> None:
    marks, faults = _links_to_b(world), {}
    named = {
        "dag": world.b.dag.pk, "job": world.b.job.pk, "task_queue": world.b.task_queue.pk,
        "failure": FailureGroup.objects.values_list("pk", flat=True)[0],
    }  # fmt: skip

    client = client_of(world.people["user"])
    for question in _ASKED:
        at = question.format(**named)
        if found := _betrayed(marks, at, _ask(client, at)[1]):
            faults[at] = found

    assert faults == {}


def _states() -> list[tuple[str, Any]]:
    more: dict[type, tuple[str, ...]] = {
        Job: ("priority",), Node: ("priority",), Dag: ("priority", "labels"), Cluster: ("labels",),
    }  # fmt: skip
    rows = {
        model: model.objects.order_by("pk").values_list("pk", "state", *more.get(model, ()))
        for model in _CHANGED
    }
    return [(model.__name__, tuple(found)) for model, found in rows.items()]


@dataclass(frozen=True, slots=True)
class _Write:
    """A request in the name of one of A that would change something of B's."""

    role: str
    method: str
    route: Route

    def send(self, client: Client, at: str) -> tuple[int, str]:
        answer: tuple[int, str] = _ask(client, at, self.method, BODIES.get(self.route.name, dict)())
        return answer


def _writes() -> list[_Write]:
    return [
        _Write(role, method, route)
        for method, table in {"POST": POST, "PUT": PUT, "DELETE": DELETE}.items()
        for turn, route in enumerate(routes())
        if _leads_to_somebodys(route) and rule_of(table, route)
        for role in _askers(route, turn)
    ]


def _changes(world: Walled, write: _Write) -> bool:
    """Whether a request alone changes something. It is taken back."""
    before = _states()
    with transaction.atomic():
        write.send(client_of(world.people[write.role]), address(world.b, write.route))
        is_changed = _states() != before
        transaction.set_rollback(True)
    return is_changed


def test_nobody_of_a_changes_what_is_bs(world: Walled, db: None) -> None:
    clients = {role: client_of(world.people[role]) for role in ROLES}
    before, marks, faults = _states(), _links_to_b(world), {}

    with transaction.atomic():
        for write in _writes():
            at, absent = address(world.b, write.route), _absent(world, write.route)
            status, text = write.send(clients[write.role], at)
            if status < 400 or status >= 500 or _betrayed(marks, at, text):
                faults[write] = status
            elif write.role == "user" and status != write.send(clients["user"], absent)[0]:
                faults[write] = status, "of what is not there another one"
        is_changed = _states() != before
        transaction.set_rollback(True)

    assert faults == {}
    # All are refused, so that it need not be looked at after each of them.
    assert not is_changed, [write for write in _writes() if _changes(world, write)]


def limited_admin(world: Walled) -> Client:
    """Client with a token of an administrator that is limited to A."""
    ada = world.b.people.ada
    issued = issue_limited_token(ada, frontend="afrontend", name="a", actor=Actor.person(ada))
    return Client(raise_request_exception=False, headers={"authorization": f"Bearer {issued.text}"})


def _of_api() -> list[Route]:
    return [route for route in routes() if route.name.startswith("api:")]


@pytest.mark.usefixtures("unlogged_refusals")
def test_an_administrators_token_that_is_limited_to_a_reads_nothing_of_b(
    world: Walled, db: None
) -> None:
    client, marks, faults = limited_admin(world), _links_to_b(world), {}

    for route in _of_api():
        # The same for everybody, and dear.
        if route.name in {"api:schema", "api:history-figure"}:
            continue
        at = address(world.b, route)
        status, text = _ask(client, at)
        if found := _betrayed(marks, at, text):
            faults[route.name] = found
        elif _leads_to_somebodys(route) and status not in {403, 404, 405}:
            faults[route.name] = status

    for question in (each for each in _ASKED if each.startswith("/api/")):
        if found := _betrayed(marks, question, _ask(client, question)[1]):
            faults[question] = found
    assert faults == {}
    own = {"dags": world.dag, "clusters": world.cluster, "jobs": world.job}
    at = [f"/api/v1/{kind}/{row.pk}/" for kind, row in own.items()]
    at += [f"/api/v1/pilots/{world.pilot.uuid}/", "/api/v1/sites/UW/"]
    assert {each: _ask(client, each)[0] for each in at} == dict.fromkeys(at, 200)


@pytest.mark.usefixtures("unlogged_refusals")
def test_an_administrators_token_that_is_limited_to_a_changes_nothing_of_b_or_of_all(
    world: Walled, db: None
) -> None:
    client, marks, faults = limited_admin(world), _links_to_b(world), {}
    before = _states()
    # They are asked by a body, and change nothing.
    asked = {"api:dags-check", "api:jobs-check", "api:explain", "api:login"}

    with transaction.atomic():
        for method, table in {"POST": POST, "PUT": PUT, "DELETE": DELETE}.items():
            for route in _of_api():
                if route.name in asked or not rule_of(table, route):
                    continue
                body = BODIES.get(route.name, dict)()
                at = address(world.b, route)
                status, text = _ask(client, at, method, body)
                if status not in {400, 403, 404} or _betrayed(marks, at, text):
                    faults[method, route.name] = status
        is_changed = _states() != before
        transaction.set_rollback(True)

    assert faults == {}
    assert not is_changed
    dag = f"/api/v1/dags/{world.dag.pk}/hold/"
    assert _ask(client, dag, "POST", {"reason": "look"})[0] == 200


def test_a_bulk_operation_holds_nothing_of_other_frontends(world: Walled, db: None) -> None:
    client, dags = client_of(world.people["user"]), [world.b.dag.pk, world.dag.pk]
    body = {"list": "dags", "action": "hold", "dry_run": True}

    named = _ask(client, "/api/v1/bulk/", "POST", body | {"ids": dags})
    picked = client.post("/bulk/new/", {"list": "dags", "action": "hold", "pick": dags})
    status, text = _ask(client, "/api/v1/bulk/", "POST", body | {"filter": {"state": ["running"]}})

    assert (named[0], picked.status_code) == (404, 404)
    assert (status, _betrayed(_links_to_b(world), "", text)) == (201, [])
    items = BulkItem.objects.filter(operation__owner=world.people["user"])
    assert {item.object_id for item in items} == {world.dag.pk}


def test_explanations_of_bs_objects_are_refused_by_the_api(world: Walled, db: None) -> None:
    client = client_of(world.people["user"])
    about = {
        "dag": world.b.dag.pk, "job": world.b.job.pk, "task_queue": world.b.task_queue.pk,
    }  # fmt: skip

    for name, pk in about.items():
        status, text = _ask(client, "/api/v1/explain/", "POST", {name: pk})
        assert (status, _betrayed(_links_to_b(world), "", text)) == (404, [])
    status, text = _ask(client, "/api/v1/explain/", "POST", {"site": "UW"})
    assert (status, _betrayed(_links_to_b(world), "", text)) == (200, [])


def test_people_see_their_own_frontends_and_shifters_see_all(world: Walled, db: None) -> None:
    a, b = f"/dags/{world.dag.pk}/", f"/dags/{world.b.dag.pk}/"
    bob = factories.dag(world.b.people.bob)
    default = f"/dags/{bob.pk}/"
    seen = {
        "amy": (a, None, None), "owner": (None, b, None), "bob": (None, None, default),
        "sam": (a, b, default),
    }  # fmt: skip
    people = {
        "amy": world.people["user"], "owner": world.owner, "bob": world.b.people.bob,
        "sam": world.b.people.sam,
    }  # fmt: skip

    for name, expected in seen.items():
        client = client_of(people[name])
        found = tuple(at if client.get(at).status_code == 200 else None for at in (a, b, default))
        assert (name, found) == (name, expected)
        listed = client.get("/api/v1/dags/").json()["results"]
        ids = {f"/dags/{row['id']}/" for row in listed}
        assert ids == {at for at in expected if at}


def test_who_leaves_a_group_sees_and_steers_nothing_of_it_at_once(world: Walled, db: None) -> None:
    amy = world.people["user"]
    client, actor = client_of(amy), Actor.person(amy)
    token = {"HTTP_AUTHORIZATION": f"Token {factories.token_for(amy)}"}
    at, in_api = f"/dags/{world.dag.pk}/", f"/api/v1/dags/{world.dag.pk}/"
    assert client.get(at).status_code == 200
    assert Client().get(in_api, **token).status_code == 200

    AccountingGroup.objects.get(name="agroup").members.remove(amy)

    assert client.get(at).status_code == 404
    assert Client().get(in_api, **token).status_code == 404
    assert world.cluster not in visible_clusters(amy)
    with pytest.raises(NotFound):
        hold_dags([world.dag.pk], actor=actor, reason="look")
    assert walls_of(amy).sees_default


def test_who_is_in_no_frontend_keeps_what_is_the_default_frontends(world: Walled, db: None) -> None:
    amy, bob = world.people["user"], world.b.people.bob
    own, other = factories.dag(amy), factories.dag(bob)
    client = client_of(amy)

    assert client.get(f"/dags/{own.pk}/").status_code == 200
    assert client.get(f"/dags/{other.pk}/").status_code == 404

    plain = AccountingGroup.objects.create(name="plain")
    plain.members.add(amy)

    assert client.get(f"/dags/{other.pk}/").status_code == 200


def test_administrators_of_a_site_steer_its_pilots_and_see_no_jobs_of_them(
    world: Walled, db: None
) -> None:
    tina, pilot = world.b.people.tina, world.b.pilot
    client = client_of(tina)
    assert client.get(f"/pilots/{pilot.pk}/").status_code == 404

    world.b.site.administrators.add(tina)

    status, page = _ask(client, f"/pilots/{pilot.pk}/")
    _, attempts = _ask(client, f"/api/v1/pilots/{pilot.uuid}/attempts/")
    assert (status, f"{MARK}job" in page + attempts) == (200, False)
    assert client.get(f"/jobs/{world.b.job.pk}/").status_code == 404
    drained = _ask(client, f"/api/v1/pilots/{pilot.uuid}/drain/", "POST", {"reason": "look"})
    assert drained[0] == 200
