"""Two users act on the same object at once: the second gets a conflict."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.test import Client
from django.urls import resolve, reverse

from portal.personal.services import change_filter, save_filter
from tests import factories
from tests.portal.furnishing import failures
from tests.portal.web.test_stale_forms import forms_of
from wms.core.actors import Actor
from wms.dags.models import Node
from wms.dags.services.dags import change_limits, hold_dags, remove_dags, rescue_dag
from wms.dags.services.nodes import change_nodes
from wms.failures.models import FailureGroup
from wms.failures.services import categorise_groups, mute_groups
from wms.jobs.operations import hold_jobs
from wms.pilots.lifecycle import apply as apply_to_pilots
from wms.sites.services import ban_site

#: By whom the other one acts, and why.
OTHER: dict[str, Any] = {"actor": factories.SYSTEM, "reason": "look"}
_WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"


@dataclass(frozen=True, slots=True)
class Meeting:
    """A form, on which page it stands, and what somebody else does before it is carried out."""

    address: str
    page: str
    other: Callable[[], object]
    values: dict[str, str] = field(default_factory=dict)


def _dag(people: SimpleNamespace) -> Meeting:
    made = factories.dag(people.alice, node_count=1)
    return Meeting(
        reverse("web:steer", args=[made.pk, "remove"]),
        reverse("web:dag", args=[made.pk]),
        lambda: hold_dags([made.pk], **OTHER),
    )


def _limits(people: SimpleNamespace) -> Meeting:
    made = factories.dag(people.alice, node_count=1)
    address = reverse("web:dag-limits", args=[made.pk])
    options = {"max_jobs": 7}
    return Meeting(
        address, address, lambda: change_limits(made.pk, options=options, **OTHER),
        {"max_jobs": "5"},
    )  # fmt: skip


def _further_run(people: SimpleNamespace) -> Meeting:
    made = factories.dag(people.alice, node_count=1)
    remove_dags([made.pk], **OTHER)
    address = reverse("web:rescue", args=[made.pk])

    def other() -> None:
        new = rescue_dag(made.pk, **OTHER)
        remove_dags([new.pk], **OTHER)  # so that only what was seen keeps a second one away

    return Meeting(address, address, other)


def _nodes(people: SimpleNamespace) -> Meeting:
    made = factories.dag(people.alice, node_count=1)
    node = Node.objects.get(dag=made)
    address = reverse("web:steer-nodes", args=[made.pk, "change"])
    return Meeting(
        address,
        f"{address}?node={node.pk}",
        lambda: change_nodes(made.pk, [node.name], priority=3, **OTHER),
        {"nodes": node.name, "priority": "9"},
    )


def _job(people: SimpleNamespace) -> Meeting:
    made = factories.job(people.alice)
    return Meeting(
        reverse("web:steer-job", args=[made.pk, "kill"]),
        reverse("web:job", args=[made.pk]),
        lambda: hold_jobs([made.pk], **OTHER),
    )


def _pilot(people: SimpleNamespace) -> Meeting:
    made = factories.pilot()
    return Meeting(
        reverse("web:drain-pilot", args=[made.pk]),
        reverse("web:pilot", args=[made.pk]),
        lambda: apply_to_pilots("stall", [made.pk], **OTHER),
    )


def _group(people: SimpleNamespace) -> FailureGroup:
    failures(factories.site("Tier2"), 1)
    return FailureGroup.objects.get()


def _muted_group(people: SimpleNamespace) -> Meeting:
    group = _group(people)
    return Meeting(
        reverse("web:steer-error", args=[group.pk, "resolve"]),
        reverse("web:error", args=[group.pk]),
        lambda: mute_groups([group.pk], **OTHER),
    )


def _category(people: SimpleNamespace) -> Meeting:
    group = _group(people)
    return Meeting(
        reverse("web:steer-error", args=[group.pk, "categorise"]),
        reverse("web:error", args=[group.pk]),
        lambda: categorise_groups([group.pk], category="person", **OTHER),
        {"category": "data"},
    )


def _site(people: SimpleNamespace) -> Meeting:
    made = factories.site("Tier2")
    return Meeting(
        reverse("web:steer-site", args=[made.name, "drain"]),
        reverse("web:site", args=[made.name]),
        lambda: ban_site(made.name, **OTHER),
    )


def _filter(people: SimpleNamespace) -> Meeting:
    actor = Actor.person(people.ada)
    kept = save_filter("dags", name="mine", parameters={"state": ["held"]}, actor=actor)
    return Meeting(
        reverse("web:change-filter", args=[kept.pk]),
        reverse("web:dags") + "?saved=none",
        lambda: change_filter(kept.pk, name="theirs", actor=actor),
        {"name": "other"},
    )


CASES = {
    "DAG": _dag, "limits": _limits, "further run": _further_run, "nodes": _nodes, "job": _job,
    "pilot": _pilot, "failure group": _muted_group, "category": _category, "site": _site,
    "filter": _filter,
}  # fmt: skip


def _seen(client: Client, meeting: Meeting) -> str:
    """From what the form was made that leads to the address; pages have several of a route."""
    route = resolve(meeting.address).view_name
    texts = [text for name, text in forms_of(client, meeting.page) if name == route]
    chosen = [text for text in texts if f'action="{meeting.address}"' in text] or texts
    return re.findall(r'name="seen" value="([^"]+)"', "".join(chosen))[0]


def _wait_for_lock(thread: threading.Thread) -> None:
    """Until the other session waits for ours, or has ended without."""
    while thread.is_alive():
        with connection.cursor() as cursor:
            cursor.execute(_WAITING)
            if cursor.fetchone()[0]:
                return
        time.sleep(0.02)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("case", CASES)
def test_who_comes_second_is_told_and_changes_nothing(case: str) -> None:
    people = factories.people()
    meeting, client = CASES[case](people), Client()
    client.force_login(people.ada)
    seen = _seen(client, meeting)
    answers: list[Any] = []

    def post() -> None:
        values = {"reason": "mine", "seen": seen, **meeting.values}
        answers.append(client.post(meeting.address, values))
        connections.close_all()

    thread = threading.Thread(target=post)
    with transaction.atomic():
        meeting.other()
        thread.start()
        _wait_for_lock(thread)  # the second has read what was before, and the first now ends
    thread.join(timeout=60)

    [answer] = answers
    assert answer.status_code == 409
    assert "Nothing was" in answer.content.decode()
