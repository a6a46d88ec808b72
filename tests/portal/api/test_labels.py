"""Labels and priority by the API: given, changed, asked for; also in bulk and by command."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import call_command
from rest_framework.test import APIClient

from tests import factories
from tests.portal.api.submissions import URL, dag_form, findings_in, is_nothing_stored
from tests.wms.bulk.conftest import finish
from tests.wms.jobs.clusters.samples import PLAIN, submit
from wms.bulk.models import BulkOperation
from wms.core.models import AuditEntry
from wms.dags.models import Dag


def _label(client: APIClient, address: str, **body: Any) -> Any:
    return client.post(f"{address}label/", {"reason": "tidy", **body}, format="json")


def test_a_dag_is_submitted_with_labels_and_a_priority(alice: APIClient) -> None:
    answer = alice.post(URL, dag_form(labels="campaign=mc27, higgs", priority="4"))

    told = answer.json()
    assert answer.status_code == 201, answer.content
    assert (told["labels"], told["priority"]) == (["campaign=mc27", "higgs"], 4)


@pytest.mark.parametrize(
    ("field", "value"),
    [("labels", "x" * 65), ("labels", "a\x01b"), ("priority", "11"), ("priority", "1e1")],
)
def test_faulty_labels_and_priorities_are_refused_with_their_field(
    alice: APIClient, field: str, value: str
) -> None:
    found = findings_in(alice.post(URL, dag_form(**{field: value})))

    assert [fault["field"] for fault in found] == [field]
    assert is_nothing_stored()


def test_dags_are_found_by_any_of_their_labels(alice: APIClient, people: SimpleNamespace) -> None:
    ids = {}
    for name, labels in (("a", "campaign=mc27,higgs"), ("b", "higgs"), ("c", "")):
        ids[name] = alice.post(URL, dag_form(labels=labels)).json()["id"]

    def found(question: str) -> set[int]:
        return {row["id"] for row in alice.get(f"{URL}?label={question}").json()["results"]}

    assert found("campaign=mc27") == {ids["a"]}
    assert found("campaign=mc27,higgs") == {ids["a"], ids["b"]}
    assert found("!campaign=mc27") == {ids["b"], ids["c"]}


def test_labels_of_dags_and_clusters_are_changed(alice: APIClient, people: SimpleNamespace) -> None:
    dag = factories.dag(people.alice)
    cluster = submit(people.alice, f"{PLAIN}queue 1\n", options={"labels": ["old"]}).cluster

    of_dag = _label(alice, f"{URL}{dag.pk}/", add=["campaign=mc27"])
    of_cluster = _label(
        alice, f"/api/v1/clusters/{cluster.pk}/", add=["campaign=mc27"], remove=["old"]
    )
    refused = _label(alice, f"{URL}{dag.pk}/", add=["a b"])

    assert of_dag.json()["labels"] == of_cluster.json()["labels"] == ["campaign=mc27"]
    assert (refused.status_code, refused.json()["findings"][0]["field"]) == (400, "add")
    assert AuditEntry.objects.filter(action__startswith="label ", reason="tidy").count() == 2


def test_a_dag_gets_another_priority_until_it_ends(
    alice: APIClient, people: SimpleNamespace
) -> None:
    dag = factories.dag(people.alice)
    body = {"priority": 6, "reason": "the conference"}

    answer = alice.post(f"{URL}{dag.pk}/prioritise/", body, format="json")
    alice.post(f"{URL}{dag.pk}/remove/", {"reason": "over"}, format="json")
    late = alice.post(f"{URL}{dag.pk}/prioritise/", body, format="json")

    assert answer.json()["priority"] == 6
    assert late.status_code == 409
    assert alice.get(f"{URL}?priority=5..9").json()["results"][0]["id"] == dag.pk


@pytest.mark.slow
def test_many_dags_are_labelled_at_once(alice: APIClient, people: SimpleNamespace) -> None:
    dags = [factories.dag(people.alice, name=f"d{number}.dag") for number in range(2)]
    body = {
        "list": "dags", "action": "label", "dry_run": True, "filter": {"owner": ["alice"]},
        "reason": "tidy", "arguments": {"add": ["campaign=mc27"]},
    }  # fmt: skip
    preview = alice.post("/api/v1/bulk/", body, format="json")
    token = {"operation_token": preview.data["operation_token"]}
    alice.post("/api/v1/bulk/", token, format="json")
    finish(BulkOperation.objects.get())

    found = Dag.objects.filter(labels=["campaign=mc27"])
    assert set(found.values_list("pk", flat=True)) == {dag.pk for dag in dags}
    refused = alice.post("/api/v1/bulk/", body | {"arguments": {"add": "x"}}, format="json")
    assert refused.status_code == 400


def test_labels_and_priority_are_changed_by_command(people: SimpleNamespace, capsys) -> None:
    dag = factories.dag(people.alice)
    who = ("--user", "alice", "--reason", "tidy")

    call_command("steer", "label-dag", str(dag.pk), "--add", "a,b", *who)
    call_command("steer", "prioritise-dag", str(dag.pk), "--priority", "7", *who)

    dag.refresh_from_db()
    assert (dag.labels, dag.priority) == (["a", "b"], 7)
    assert "prioritised" in capsys.readouterr().out
