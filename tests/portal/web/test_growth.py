"""Page that adds nodes to a DAG: checked, refused by line, added, from a text or a file."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tests import factories
from wms.dags.models import Dag, Growth

FRAGMENT = "JOB X {\r\nexecutable = /bin/true\r\n}\r\nJOB Y {\nexecutable = /bin/true\n}\n"


@pytest.fixture
def dag(people: SimpleNamespace) -> Dag:
    return factories.running_dag(people.alice, node_count=2, is_chain=True)


def address(dag: Dag) -> str:
    return reverse("web:dag-grow", args=[dag.pk])


def names(dag: Dag) -> list[str]:
    return list(dag.nodes.order_by("ordinal").values_list("name", flat=True))


def test_a_fragment_is_checked_and_then_added(alice: Client, dag: Dag) -> None:
    first, last = names(dag)
    page = alice.get(reverse("web:dag", args=[dag.pk])).content.decode()
    assert address(dag) in page
    given = {"text": FRAGMENT, "after": first, "before": last, "reason": ""}

    checked = alice.post(address(dag), {**given, "do": "check"})
    assert "2 nodes would be added" in checked.content.decode()
    assert names(dag) == [first, last]
    refused = alice.post(address(dag), {**given, "do": "add"})
    assert refused.status_code == 400
    assert "Give a reason" in refused.content.decode()
    answer = alice.post(address(dag), {**given, "do": "add", "reason": "more"}, follow=True)

    assert answer.redirect_chain == [(reverse("web:dag", args=[dag.pk]), 302)]
    assert "2 nodes are added" in answer.content.decode()
    assert names(dag) == [first, last, "X", "Y"]
    growth = Growth.objects.get(dag=dag)
    assert (growth.after, growth.before, growth.path) == ([first], [last], "added.dag.grown001")


def test_faults_are_told_with_the_lines_that_were_typed(alice: Client, dag: Dag) -> None:
    text = FRAGMENT + "PARENT X CHILD Z\nFROG\n"

    answer = alice.post(address(dag), {"text": text, "reason": "more", "file": "m.dag"})

    page = answer.content.decode()
    assert answer.status_code == 400
    assert "Nothing was added: 2 faults" in page
    assert "m.dag:7" in page
    assert "unknown child Z" in page
    assert "m.dag:8" in page
    assert "PARENT X CHILD Z" in page
    assert not Growth.objects.exists()


def test_a_file_counts_instead_of_the_text(alice: Client, dag: Dag) -> None:
    sent = io.BytesIO(FRAGMENT.replace("JOB X", "JOB W").encode())
    sent.name = "sent.dag"

    alice.post(address(dag), {"text": FRAGMENT, "reason": "more", "fragment": sent})

    assert names(dag)[2:] == ["W", "Y"]
    assert Growth.objects.get(dag=dag).path == "sent.dag.grown001"


@pytest.mark.parametrize(
    "given",
    [
        {"text": ""},
        {"text": FRAGMENT, "after": "nobody"},
        {"text": FRAGMENT, "file": "/etc/passwd"},
        {"text": FRAGMENT, "before": "<b>x</b>"},
        {"text": "JOB <script> {\nexecutable = /bin/true\n}\nPARENT <script> CHILD Q\n"},
    ],
)
def test_a_refusal_keeps_what_was_typed(alice: Client, dag: Dag, given: dict[str, Any]) -> None:
    answer = alice.post(address(dag), {**given, "reason": "because of it"})

    page = answer.content.decode()
    assert answer.status_code == 400
    assert "because of it" in page
    assert "<script>" not in page.replace("<script ", "")
    assert "<b>x</b>" not in page
    assert not Growth.objects.exists()


def test_a_dag_that_has_ended_offers_no_growth(alice: Client, dag: Dag) -> None:
    Dag.objects.filter(pk=dag.pk).update(state="completed")

    page = alice.get(address(dag)).content.decode()

    assert "has ended" in page
    assert 'value="add"' not in page
    assert address(dag) not in alice.get(reverse("web:dag", args=[dag.pk])).content.decode()
    assert alice.post(address(dag), {"text": FRAGMENT, "reason": "x"}).status_code == 409
