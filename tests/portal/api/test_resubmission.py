"""Edited copies of DAGs that programs make."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rest_framework.test import APIClient

from tests import factories
from wms.dags.models import Dag
from wms.dags.submission.workspaces import read_file


def test_a_copy_is_made_once_with_other_texts_or_refused_with_every_fault(
    alice: APIClient, people: SimpleNamespace
) -> None:
    dag = factories.dag(people.alice)
    Dag.objects.filter(pk=dag.pk).update(labels=["mc"], priority=4)

    def post(key: str = "k1", **body: Any) -> Any:
        given = {"reason": "a typo", "resume": "afresh", **body}
        address = f"/api/v1/dags/{dag.pk}/resubmit/"
        return alice.post(address, given, format="json", headers={"Idempotency-Key": key})

    made, again = (post(texts={"run.sh": "#!/bin/sh\nexit 0\n"}) for _ in range(2))
    faulty = post("k2", texts={"analysis.dag": "JOBB A job.sub\n"})
    refused = [
        post("k3", **body).status_code
        for body in ({"reason": ""}, {"resume": "newest"}, {"resume": "x"}, {"texts": {"x": "y"}},
                     {"texts": "x"}, {"options": {"no": 1}})
    ]  # fmt: skip

    new = Dag.objects.get(previous_run=dag)
    assert (made.status_code, again.status_code) == (201, 200)
    assert made.json()["id"] == again.json()["id"] == new.pk
    assert (made.json()["previous_run"], new.labels, new.priority) == (dag.pk, ["mc"], 4)
    assert read_file(new.workspace_id, "run.sh") == b"#!/bin/sh\nexit 0\n"
    assert (faulty.status_code, faulty.json()["findings"][0]["line"]) == (400, 1)
    assert refused == [400] * len(refused)
