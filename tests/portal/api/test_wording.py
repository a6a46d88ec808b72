"""Sentences of refusals that programs show to people; other tests assert their facts only."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from rest_framework.test import APIClient

from tests import factories

_REASON = {"reason": "x"}


@pytest.mark.parametrize(
    ("path", "body", "sentence"),
    [
        ("dags/{dag}/release/", _REASON, "DAG {dag} is idle: it cannot be released."),
        ("dags/{dag}/rematch/", _REASON, "DAG {dag} is idle: it cannot be rematched."),
        ("dags/{dag}/hold/", {}, "Give a reason: it is recorded with the change (hold)."),
        (
            "dags/{dag}/rematch/",
            {"let_finish": True},
            "let_finish: unknown; known are reason, lets_finish, avoid_s",
        ),
    ],
)
def test_refusals_are_told_in_these_words(
    alice: APIClient,
    people: SimpleNamespace,
    path: str,
    body: dict[str, object],
    sentence: str,
) -> None:
    dag = factories.dag(people.alice)

    answer = alice.post(f"/api/v1/{path.format(dag=dag.pk)}", body, format="json")

    assert answer.json()["detail"] == sentence.format(dag=dag.pk)
