"""Where DAGs were, and taking them from there."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from rest_framework.test import APIClient

from tests import factories
from wms.core.models import AuditEntry
from wms.dags.models import DagEvent
from wms.jobs.models import Job

URL = "/api/v1/dags/"


def test_a_dag_is_rematched_with_a_reason(alice: APIClient, people: SimpleNamespace) -> None:
    dag = factories.running_dag(people.alice)

    answer = alice.post(
        f"{URL}{dag.pk}/rematch/", {"reason": "too slow", "avoid_s": 60}, format="json"
    )

    assert answer.status_code == 200, answer.content
    shown = answer.json()
    assert (shown["state"], shown["site"], shown["rematch_count"]) == ("idle", None, 1)
    assert shown["nodes"]["submitted"] == 0
    assert set(Job.objects.values_list("state", flat=True)) == {"killed"}
    facts = DagEvent.objects.get(event="rematch").facts
    assert (facts["avoid_s"], facts["lets_finish"]) == (60, False)
    assert AuditEntry.objects.get(action="rematch DAG").reason == "too slow"


def test_what_runs_may_finish(alice: APIClient, people: SimpleNamespace) -> None:
    dag = factories.running_dag(people.alice)
    claimed = factories.claim(factories.pilot(dag.site.queues.get()))
    assert claimed is not None

    body = {"reason": "too slow", "lets_finish": True}
    shown = alice.post(f"{URL}{dag.pk}/rematch/", body, format="json").json()

    assert (shown["state"], shown["nodes"]["submitted"]) == ("idle", 1)
    claimed.start().end()


def test_a_dag_without_a_site_cannot_be_rematched(
    alice: APIClient, people: SimpleNamespace
) -> None:
    dag = factories.dag(people.alice)

    answer = alice.post(f"{URL}{dag.pk}/rematch/", {"reason": "too slow"}, format="json")

    assert answer.status_code == 409
    assert f"DAG {dag.pk} is idle" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"reason": "x", "avoid_s": -1}, "avoid_s"),
        ({"reason": "x", "avoid_s": 10**9}, "avoid_s"),
        ({"reason": "x", "avoid_s": "soon"}, "avoid_s"),
        ({"reason": "x", "lets_finish": "perhaps"}, "lets_finish"),
    ],
)
def test_a_body_that_makes_no_sense_is_refused_at_its_field(
    alice: APIClient, people: SimpleNamespace, body: dict, field: str
) -> None:
    dag = factories.running_dag(people.alice)

    answer = alice.post(f"{URL}{dag.pk}/rematch/", body, format="json")

    assert answer.status_code == 400
    assert {finding["field"].split(".")[0] for finding in answer.json()["findings"]} == {field}
    dag.refresh_from_db()
    assert dag.state == "running"


def test_a_rematch_without_a_reason_is_refused(alice: APIClient, people: SimpleNamespace) -> None:
    dag = factories.running_dag(people.alice)

    answer = alice.post(f"{URL}{dag.pk}/rematch/", {}, format="json")

    assert answer.status_code == 400
    assert "Give a reason" in answer.json()["detail"]


def test_a_misspelt_wish_is_refused_and_changes_nothing(
    alice: APIClient, people: SimpleNamespace
) -> None:
    dag = factories.running_dag(people.alice)

    body = {"reason": "slow", "let_finish": True}
    answer = alice.post(f"{URL}{dag.pk}/rematch/", body, format="json")

    assert answer.status_code == 400
    [finding] = answer.json()["findings"]
    assert finding["field"] == "let_finish"
    assert "reason, lets_finish, avoid_s" in finding["message"]
    dag.refresh_from_db()
    assert dag.state == "running"


def test_the_stays_of_a_dag_are_listed_latest_first(
    alice: APIClient, people: SimpleNamespace
) -> None:
    dag = factories.running_dag(people.alice)
    alice.post(f"{URL}{dag.pk}/rematch/", {"reason": "too slow", "avoid_s": 0}, format="json")
    factories.turn()

    second, first = alice.get(f"{URL}{dag.pk}/matches/").json()["results"]

    assert (first["site"], first["end"], first["reason"]) == ("UW", "rematch", "too slow")
    assert first["avoided_until"] == first["ended_at"]
    assert (second["end"], second["ended_at"], second["avoided_until"]) == ("", None, None)
