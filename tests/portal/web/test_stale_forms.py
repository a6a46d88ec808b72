"""Stale forms are refused with a conflict and change nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client
from django.urls import resolve, reverse

from portal.personal.services import change_filter, save_filter
from tests import factories
from tests.portal.routes import routes
from tests.portal.world import World, small_world
from wms.core.actors import Actor
from wms.core.models import User
from wms.dags.models import Dag, Node
from wms.dags.services.dags import change_limits, hold_dags, release_dags, remove_dags, rescue_dag
from wms.dags.services.nodes import change_nodes
from wms.failures.models import FailureGroup
from wms.failures.services import mute_groups
from wms.jobs.operations import hold_jobs
from wms.sites.services import ban_site

BrowserOf = Callable[[User], Client]
#: Forms that change nothing that others change too, each with the reason.
EXEMPT = {
    "web:preferences": "one's own",
    "web:wallboards": "makes a new one, and revokes by what was not revoked yet",
    "web:columns": "one's own",
    "web:save-filter": "makes a new one",
    "web:remove-filter": "stands in the form that changes the filter",
    "web:logout": "one's own",
    "web:submit": "makes a new one",
    "web:new-trial": "makes a new one",
    "web:stop-trial": "can only be done once",
    "web:submit-jobs": "makes a new one",
    "web:submit-placements": "makes new ones",
    "web:placement-credentials": "one's own",
    "web:forget-placement-credential": "one's own",
    "web:import-downtimes": "carries out what was previewed, by its token",
    "web:dag-grow": "adds nodes, whose names cannot be there twice",
    "web:connect-queue": "asks again, while no other asks",
    "web:test-queue": "makes a new one, while there is no other",
    "web:new-downtime": "makes a new one, and tells what it overlaps",
    "web:explain": "writes nothing",
    "web:what-if": "writes nothing",
    "web:new-bulk": "freezes what it was made from",
    "web:retry-bulk": "makes a new one",
    "web:stop-bulk": "can only be done once",
    "web:clear-node": "can only be done once",
    "web:remove-archive": "can only be done once, and an archive does not change",
    "web:release-allocation": "can only be done once",
    "web:remove-logical-file": "can only be done once",
    "web:tell": "one's own",
    "web:notes": "says it beside the form, where the refreshed page tells who looks after it",
    "web:write-log": "makes a new one",
    "web:change-filter": "one of its forms: with what one's own list opens",
}
#: Of the page of one's account.
_OWN = {
    f"web:{name}"
    for name in (
        "add-token", "revoke-token", "link-identity", "unlink-identity",
        "password", "start-filter", "subscribe", "unsubscribe",
        "add-channel", "change-channel", "read-notices",
    )
}  # fmt: skip
_FORM = re.compile(r"<form\b[^>]*method=\"post\"[^>]*>.*?</form>", re.S)
_ACTION = re.compile(r"<form\b[^>]*action=\"([^\"]*)\"")
_SEEN = re.compile(r'name="(?:seen|version)" value="[^"]+"')


def forms_of(client: Client, address: str) -> list[tuple[str, str]]:
    """The forms of a page that are posted, by the name of the route that takes them."""
    answer = client.get(address)
    if answer.streaming:
        b"".join(answer.streaming_content)  # reading a file to its end closes it
    if answer.streaming or "html" not in answer["Content-Type"]:
        return []
    forms = []
    for text in _FORM.findall(answer.content.decode()):
        action = _ACTION.search(text.split(">", 1)[0] + ">")
        target = (action[1] if action else address).split("?")[0].replace("&#x27;", "'")
        forms.append((resolve(target or address).view_name, text))
    return forms


def seen_on(client: Client, address: str, route: str) -> str:
    """From what the form on a page says that it was made."""
    for name, text in forms_of(client, address):
        found = re.search(r'name="seen" value="([^"]+)"', text)
        if name == route and found:
            return found[1]
    raise AssertionError(f"{address} has no form for {route} that says from what it was made")


@pytest.fixture(scope="module")
def world(module_rows: None) -> World:
    return small_world()


@pytest.fixture
def ada(world: World, db: None) -> Client:
    client = Client()
    client.force_login(world.people.ada)
    return client


@pytest.mark.slow
def test_every_form_says_from_what_it_was_made_or_has_a_reason_not_to(
    world: World, ada: Client
) -> None:
    found = {}

    for route in routes():
        if route.name.startswith("web:"):
            for name, text in forms_of(ada, world.address(route)):
                found.setdefault(name, []).append(bool(_SEEN.search(text)))

    silent = {name for name, said in found.items() if not all(said)}
    assert silent - _OWN - EXEMPT.keys() == set()
    assert {"web:steer", "web:steer-site", "web:dag-limits"} <= found.keys() - silent


CASES: dict[str, tuple[Any, ...]] = {
    # route, page, change meanwhile, body
    "DAG": (
        lambda w: reverse("web:steer", args=[w.dag.pk, "remove"]),
        lambda w: reverse("web:dag", args=[w.dag.pk]),
        lambda w: hold_dags([w.dag.pk], actor=factories.SYSTEM, reason="look"),
        "DAG",
    ),
    "site": (
        lambda w: reverse("web:steer-site", args=[w.site.name, "drain"]),
        lambda w: reverse("web:site", args=[w.site.name]),
        lambda w: ban_site(w.site.name, actor=factories.SYSTEM, reason="look"),
        "",
    ),
    "group of failures": (
        lambda w: reverse("web:steer-error", args=[_group(w).pk, "resolve"]),
        lambda w: reverse("web:error", args=[_group(w).pk]),
        lambda w: mute_groups([_group(w).pk], actor=factories.SYSTEM, reason="known"),
        "failure group",
    ),
    "limits": (
        lambda w: reverse("web:dag-limits", args=[w.dag.pk]),
        lambda w: reverse("web:dag-limits", args=[w.dag.pk]),
        lambda w: change_limits(
            w.dag.pk, actor=factories.SYSTEM, reason="look", options={"max_jobs": 7}
        ),
        "the limits of this DAG changed",
    ),
}


def _group(world: World) -> FailureGroup:
    return FailureGroup.objects.order_by("pk")[0]


@pytest.mark.parametrize("case", CASES)
def test_what_has_changed_meanwhile_is_told_and_left_alone(
    world: World, ada: Client, case: str
) -> None:
    address, page, change, told = CASES[case]
    seen = seen_on(ada, page(world), resolve(address(world)).view_name)
    change(world)
    before = list(Dag.objects.values("pk", "state", "options")) + list(
        FailureGroup.objects.values("pk", "state")
    )

    answer = ada.post(address(world), {"reason": "mine", "seen": seen, "max_jobs": "5"})

    assert answer.status_code == 409
    assert told in answer.content.decode()
    after = list(Dag.objects.values("pk", "state", "options")) + list(
        FailureGroup.objects.values("pk", "state")
    )
    assert after == before


def test_a_held_dag_that_runs_again_is_not_removed_by_an_old_form(
    people: SimpleNamespace, browser_of: BrowserOf
) -> None:
    dag = factories.dag(people.alice, node_count=1)
    hold_dags([dag.pk], actor=factories.SYSTEM, reason="look")
    alice, page = browser_of(people.alice), reverse("web:dag", args=[dag.pk])
    seen = seen_on(alice, page, "web:steer")
    release_dags([dag.pk], actor=factories.SYSTEM, reason="go on")

    answer = alice.post(
        reverse("web:steer", args=[dag.pk, "remove"]), {"reason": "it hangs", "seen": seen}
    )

    dag.refresh_from_db()
    assert (answer.status_code, dag.state) == (409, "idle")
    assert (answer.context["error"].status, "held" in str(answer.context["error"])) == (409, True)
    again = alice.post(
        reverse("web:steer", args=[dag.pk, "remove"]), {"reason": "it hangs", "seen": "idle"}
    )
    assert again.status_code == 302


def test_a_further_run_is_not_begun_twice(people: SimpleNamespace, browser_of: BrowserOf) -> None:
    dag = factories.dag(people.alice, node_count=1)
    remove_dags([dag.pk], actor=factories.SYSTEM, reason="look")
    alice, page = browser_of(people.alice), reverse("web:rescue", args=[dag.pk])
    seen = seen_on(alice, page, "web:rescue")
    rescue_dag(dag.pk, actor=factories.SYSTEM, reason="look")

    answer = alice.post(page, {"reason": "again", "seen": seen})

    assert answer.status_code == 409
    assert Dag.objects.filter(previous_run=dag).count() == 1


def test_nodes_that_were_changed_meanwhile_are_left_alone(
    people: SimpleNamespace, browser_of: BrowserOf
) -> None:
    dag = factories.dag(people.alice, node_count=1)
    node = Node.objects.get(dag=dag)
    alice = browser_of(people.alice)
    address = reverse("web:steer-nodes", args=[dag.pk, "change"])
    seen = seen_on(alice, f"{address}?node={node.pk}", "web:steer-nodes")
    change_nodes(dag.pk, [node.name], actor=factories.SYSTEM, reason="look", priority=3)

    answer = alice.post(
        address, {"reason": "mine", "nodes": node.name, "priority": "9", "seen": seen}
    )

    node.refresh_from_db()
    assert (answer.status_code, node.priority) == (409, 3)


def test_a_job_that_moved_on_is_not_killed(people: SimpleNamespace, browser_of: BrowserOf) -> None:
    job = factories.job(people.alice)
    alice, page = browser_of(people.alice), reverse("web:job", args=[job.pk])
    seen = seen_on(alice, page, "web:steer-job")
    hold_jobs([job.pk], actor=factories.SYSTEM, reason="look")

    answer = alice.post(
        reverse("web:steer-job", args=[job.pk, "kill"]), {"reason": "mine", "seen": seen}
    )

    job.refresh_from_db()
    assert (answer.status_code, job.state) == (409, "held")


def test_a_filter_that_was_renamed_meanwhile_keeps_its_name(
    people: SimpleNamespace, browser_of: BrowserOf
) -> None:
    actor = Actor.person(people.charlie)
    kept = save_filter("dags", name="mine", parameters={"state": ["held"]}, actor=actor)
    charlie = browser_of(people.charlie)
    seen = seen_on(charlie, reverse("web:dags") + "?saved=none", "web:change-filter")
    change_filter(kept.pk, name="theirs", actor=actor)

    answer = charlie.post(
        reverse("web:change-filter", args=[kept.pk]), {"name": "other", "seen": seen}
    )

    kept.refresh_from_db()
    assert (answer.status_code, kept.name) == (409, "theirs")
