"""Halt, rescue, limits: steering runs of DAGs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from rest_framework.test import APIClient

from tests import factories
from wms.core.models import AuditEntry
from wms.dags.models import Dag, SharedLimit
from wms.dags.services.shared_limits import save_shared_limit

URL = "/api/v1/dags/"


def _post(client: APIClient, address: str, body: dict[str, Any]) -> Any:
    return client.post(f"{URL}{address}", body, format="json")


@pytest.fixture
def failed(people: SimpleNamespace) -> Dag:
    """A DAG of three nodes in a chain, the second of which failed."""
    dag = factories.running_dag(people.alice, node_count=3, is_chain=True)
    pilot = factories.pilot(dag.site.queues.get())
    factories.run_job(pilot)
    factories.turn()
    factories.run_job(pilot, exit_code=3)
    factories.turn()
    dag.refresh_from_db()
    assert dag.state == "failed"
    return dag


@pytest.mark.slow
def test_a_halted_dag_ends_with_a_rescue_when_it_is_drained(
    alice: APIClient, people: SimpleNamespace
) -> None:
    dag = factories.running_dag(people.alice, node_count=2, is_chain=True)

    answer = _post(alice, f"{dag.pk}/halt/", {"reason": "shift ends"})
    assert answer.json()["state"] == "halted"
    factories.finish(dag)

    told = alice.get(f"{URL}{dag.pk}/").json()
    assert (told["state"], told["status"], told["exit_code"]) == ("failed", 6, 1)
    [rescue] = alice.get(f"{URL}{dag.pk}/rescues/").json()["results"]
    assert (rescue["number"], rescue["done_count"]) == (1, 1)
    content = alice.get(f"{URL}{dag.pk}/files/{rescue['path']}")
    assert b"DONE A1" in b"".join(content.streaming_content)


@pytest.mark.slow
def test_a_rescue_runs_what_is_not_done_as_a_new_dag(alice: APIClient, failed: Dag) -> None:
    answer = _post(alice, f"{failed.pk}/rescue/", {"reason": "mended", "options": {"max_jobs": 1}})

    told = answer.json()
    assert answer.status_code == 201, answer.content
    assert (told["previous_run"], told["rescue_number"]) == (failed.pk, 1)
    assert (told["nodes"]["done"], told["options"]) == (1, {"max_jobs": 1})
    runs = alice.get(f"{URL}?previous_run={failed.pk}").json()["results"]
    assert [run["id"] for run in runs] == [told["id"]]
    assert AuditEntry.objects.filter(action="rescue DAG", reason="mended").count() == 1


@pytest.mark.slow
def test_a_rescue_that_is_asked_for_again_with_its_key_runs_once(
    alice: APIClient, failed: Dag
) -> None:
    body, key = {"reason": "mended"}, {"Idempotency-Key": "monday"}
    first, again, other = (
        alice.post(f"{URL}{failed.pk}/rescue/", each, format="json", headers=key)
        for each in (body, body, {"reason": "mended", "options": {"max_jobs": 1}})
    )

    assert [first.status_code, again.status_code, other.status_code] == [201, 200, 409]
    assert again["Idempotency-Replayed"] == "true"
    assert again["Location"] == first["Location"] == f"{URL}{first.json()['id']}/"
    assert Dag.objects.filter(previous_run=failed).count() == 1


_SENSELESS: tuple[tuple[dict[str, Any], str], ...] = (
    ({}, "reason"),
    ({"reason": "x", "resume": "9"}, "rescue009"),
    ({"reason": "x", "resume": "later"}, "newest, afresh"),
    ({"reason": "x", "save_point": "A.save"}, "A.save"),
    ({"reason": "x", "options": {"max_job": 1}}, "no such option"),
    ({"reason": "x", "options": [1]}, "JSON object"),
    ({"reason": "x", "resumee": "1"}, "unknown"),
)


@pytest.mark.slow
def test_a_rescue_that_makes_no_sense_is_refused_with_why(alice: APIClient, failed: Dag) -> None:
    for body, words in _SENSELESS:
        answer = _post(alice, f"{failed.pk}/rescue/", body)

        assert answer.status_code == 400, body
        assert words in answer.json()["detail"], body
    assert Dag.objects.count() == 1


def test_a_dag_that_goes_on_cannot_be_rescued(alice: APIClient, people: SimpleNamespace) -> None:
    dag = factories.running_dag(people.alice)

    answer = _post(alice, f"{dag.pk}/rescue/", {"reason": "x"})

    assert answer.status_code == 409
    assert f"DAG {dag.pk} is running" in answer.json()["detail"]


def test_limits_change_while_the_dag_runs_and_tell_what_keeps_nodes_back(
    alice: APIClient, people: SimpleNamespace
) -> None:
    factories.site()
    dag = factories.dag(people.alice, node_count=3)
    last = dag.nodes.order_by("ordinal").last()
    dag.nodes.filter(pk=last.pk).update(category="big")
    save_shared_limit(SharedLimit(owner=people.alice, max_jobs=2), actor=factories.SYSTEM)
    body = {"reason": "fragile disk", "options": {"max_jobs": 1}, "categories": {"big": 4}}

    changed = _post(alice, f"{dag.pk}/limits/", body)
    factories.turn()
    told = alice.get(f"{URL}{dag.pk}/limits/").json()

    assert changed.status_code == 200, changed.content
    known = {option["name"]: option for option in told["options"]}
    assert (known["max_jobs"]["value"], known["max_jobs"]["is_live"]) == (1, True)
    assert known["priority"]["is_live"] is False
    (category,) = told["categories"]
    assert (category["name"], category["limit"], category["submitted"]) == ("big", 4, 0)
    assert told["shared"] == [SharedLimit.objects.get().pk]
    assert "1" in told["room"]["reason"].split()


@pytest.mark.parametrize(
    "body",
    [
        {"options": {"max_jobs": 1}},
        {"reason": "x", "options": {"priority": 1}},
        {"reason": "x", "options": {"max_jobs": -1}},
        {"reason": "x", "categories": {"big": "many"}},
        {"reason": "x", "categories": []},
    ],
)
def test_limits_that_cannot_be_changed_so_are_refused(
    alice: APIClient, people: SimpleNamespace, body: dict[str, Any]
) -> None:
    dag = factories.dag(people.alice)

    answer = _post(alice, f"{dag.pk}/limits/", body)

    assert answer.status_code == 400
    dag.refresh_from_db()
    assert (dag.options, dag.category_limits) == ({}, {})


@pytest.mark.slow
def test_records_are_made_on_demand(alice: APIClient, people: SimpleNamespace) -> None:
    dag = factories.finish(factories.running_dag(people.alice, node_count=2))

    for kind, words in {
        "status": 'Type = "DagStatus"',
        "jobstate": "DAGMAN_STARTED",
        "dot": "digraph",
        "metrics": '"type"',
        "eventlog": "Job submitted",
    }.items():
        answer = alice.get(f"{URL}{dag.pk}/exports/{kind}/")
        text = b"".join(answer.streaming_content).decode()

        assert answer.status_code == 200, kind
        assert words in text, kind
        assert answer["Content-Disposition"].startswith('attachment; filename="analysis.dag.')


def test_records_are_listed_and_an_unknown_one_is_not_found(
    alice: APIClient, people: SimpleNamespace
) -> None:
    dag = factories.dag(people.alice)

    kinds = [each["kind"] for each in alice.get(f"{URL}{dag.pk}/exports/").json()]

    assert kinds == ["status", "jobstate", "dot", "metrics", "eventlog"]
    assert alice.get(f"{URL}{dag.pk}/exports/nothing/").status_code == 404


def test_operators_set_limits_that_dags_share(people: SimpleNamespace, as_user: Any) -> None:
    olga, address = as_user(people.olga), "/api/v1/shared-limits/"
    factories.site()

    made = olga.post(address, {"owner": "alice", "site": "UW", "max_jobs": 7}, format="json")
    again = olga.post(address, {"owner": "alice", "site": "UW", "max_jobs": 8}, format="json")
    factories.running_dag(people.alice, node_count=2)
    told = olga.get(f"{address}{made.json()['id']}/").json()

    assert (made.status_code, again.status_code) == (201, 400)
    assert (told["owner"], told["site"], told["submitted"]) == ("alice", "UW", 2)
    entry = AuditEntry.objects.get(action="create shared limit")
    assert entry.target.endswith("alice at UW")
