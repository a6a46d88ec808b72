from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse

from tests import factories
from wms.dags.models import Dag, DagEvent


def test_a_dags_page_offers_to_rematch_it_and_tells_where_it_was(
    alice: Client, people: SimpleNamespace
) -> None:
    dag = factories.running_dag(people.alice)
    address = reverse("web:steer", args=[dag.pk, "rematch"])

    body = {"reason": "too slow", "lets_finish": "on", "avoid_min": "90"}
    answer = alice.post(address, body, follow=True)

    dag.refresh_from_db()
    assert (dag.state, dag.rematch_count) == ("idle", 1)
    facts = DagEvent.objects.get(event="rematch").facts
    assert (facts["lets_finish"], facts["avoid_s"]) == (True, 5400)
    page = answer.content.decode()
    assert "Earlier sites: " in page
    assert "rematched by hand" in page
    assert 'id="steer-rematch"' not in page


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ({"reason": " "}, "Give a reason"),
        ({"reason": "x", "avoid_min": "soon"}, "Give a whole number of minutes."),
        ({"reason": "x", "avoid_min": "-1"}, "A time cannot be negative."),
        ({"reason": "x", "avoid_min": "99999999"}, "At most 43200 minutes."),
    ],
)
def test_a_faulty_form_comes_back_with_what_was_typed(
    alice: Client, people: SimpleNamespace, body: dict[str, str], fault: str
) -> None:
    dag = factories.running_dag(people.alice)

    answer = alice.post(
        reverse("web:steer", args=[dag.pk, "rematch"]), body | {"lets_finish": "on"}
    )

    assert answer.status_code == 400
    page = answer.content.decode()
    assert fault in page
    assert 'name="lets_finish" checked' in page
    assert f'value="{body.get("avoid_min", "")}"' in page
    dag.refresh_from_db()
    assert dag.state == "running"


def test_a_running_dag_shows_its_policy_with_the_figures_of_the_moment(
    alice: Client, people: SimpleNamespace
) -> None:
    dag = factories.running_dag(people.alice)
    address = reverse("web:dag", args=[dag.pk])
    assert "Rematched by policy" not in alice.get(address).content.decode()

    Dag.objects.filter(pk=dag.pk).update(rematch_expression="NodesQueud > 5")
    page = alice.get(address).content.decode()

    assert "<code>NodesQueud &gt; 5</code>" in page
    assert "undefined" in page
    assert "NodesRunning 0, NodesQueued 2, NodesDone 0" in page


def test_the_figures_that_fired_a_rematch_are_shown(alice: Client, people: SimpleNamespace) -> None:
    dag = factories.running_dag(people.alice)
    figures = {"QueuedSeconds": 7500, "NodesRunning": 0}
    dag.events.create(
        event="rematch",
        from_state="running",
        to_state="idle",
        actor="system",
        reason="by policy",
        facts={"figures": figures},
    )

    page = alice.get(reverse("web:dag", args=[dag.pk])).content.decode()

    assert "NodesRunning <b>0</b>" in page
    assert "QueuedSeconds <b>7500</b>" in page
