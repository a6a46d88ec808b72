"""Nodes that programs add to a DAG."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from rest_framework.test import APIClient

from tests import factories
from wms.core.models import AuditEntry
from wms.dags.models import Dag, Growth

FRAGMENT = "\n\nJOB X {\nexecutable = /bin/true\n}\n"


@pytest.fixture
def dag(people: SimpleNamespace) -> Dag:
    return factories.running_dag(people.alice, node_count=2, is_chain=True)


def post(client: APIClient, dag: Dag, body: dict[str, Any]) -> Any:
    return client.post(f"/api/v1/dags/{dag.pk}/grow/", body, format="json")


def test_a_fragment_is_added_and_audited(alice: APIClient, dag: Dag) -> None:
    first = dag.nodes.order_by("ordinal").values_list("name", flat=True)[0]

    answer = post(alice, dag, {"text": FRAGMENT, "after": [first], "reason": "more"})

    assert answer.status_code == 200
    assert answer.json()["nodes"]["total"] == 3
    assert AuditEntry.objects.get(action="grow DAG").reason == "more"
    events = alice.get(f"/api/v1/dags/{dag.pk}/events/").json()["results"]
    [grown] = [each for each in events if each["event"] == "grow"]
    assert grown["facts"]["nodes"] == ["X"]


_HOSTILE: tuple[dict[str, Any], ...] = (
    {"text": FRAGMENT},
    {"reason": "more"},
    {"text": "", "reason": "more"},
    {"text": 5.5, "after": "A", "reason": "more"},
    {"text": FRAGMENT, "after": [1, None], "reason": "more"},
    {"text": FRAGMENT, "after": ["x"] * 101, "reason": "more"},
    {"text": FRAGMENT, "file": "../../x", "reason": "more"},
    {"text": FRAGMENT, "file": "", "reason": "more"},
    {"text": "JOB X\0 {\n}\n", "reason": "more"},
)


def test_a_hostile_body_is_refused(alice: APIClient, dag: Dag) -> None:
    answers = [post(alice, dag, body).status_code for body in _HOSTILE]

    assert answers == [400] * len(_HOSTILE)
    assert not Growth.objects.exists()


def test_a_text_that_is_none_is_refused(alice: APIClient, dag: Dag) -> None:
    body = '{"text": "JOB X\\ud800 {", "reason": "more"}'

    answer = alice.post(f"/api/v1/dags/{dag.pk}/grow/", body, content_type="application/json")

    assert answer.status_code == 400
    assert not Growth.objects.exists()


def test_faults_have_their_lines(alice: APIClient, dag: Dag) -> None:
    answer = post(alice, dag, {"text": f"{FRAGMENT}JOB Y no.sub\n", "reason": "more"})

    [fault] = answer.json()["findings"]
    assert (fault["file"], fault["line"]) == ("added.dag", 6)
    assert "no.sub" in fault["message"]
    assert not Growth.objects.exists()


def test_a_dag_that_has_ended_does_not_grow(alice: APIClient, dag: Dag) -> None:
    Dag.objects.filter(pk=dag.pk).update(state="completed")

    assert post(alice, dag, {"text": FRAGMENT, "reason": "more"}).status_code == 409
