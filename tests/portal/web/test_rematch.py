from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from django.contrib.messages import get_messages
from django.test import Client
from django.urls import reverse

from tests import factories
from wms.core.models import AuditEntry, User
from wms.dags.models import Dag, DagEvent, MatchRecord
from wms.jobs.models import Job

ADDRESS = reverse("web:rematch")


def _picks(page: str) -> list[str]:
    return [part.split('"')[0] for part in page.split('id="pick-')[1:]]


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
    assert f"DAG {dag.pk} is taken from its site." in page
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

    on_page = alice.post(
        reverse("web:steer", args=[dag.pk, "rematch"]), body | {"lets_finish": "on"}
    )
    on_list = alice.post(ADDRESS, body | {"dag": dag.pk, "lets_finish": "on"})

    for answer in (on_page, on_list):
        assert answer.status_code == 400
        page = answer.content.decode()
        assert fault in page
        assert 'name="lets_finish" checked' in page
        assert f'value="{body.get("avoid_min", "")}"' in page
    dag.refresh_from_db()
    assert dag.state == "running"


def test_only_what_can_be_rematched_can_be_selected(
    alice: Client, people: SimpleNamespace, browser_of: Callable[[User], Client]
) -> None:
    mine, other = factories.running_dag(people.alice), factories.running_dag(people.bob)
    factories.dag(people.alice)
    address = reverse("web:dags")

    assert _picks(alice.get(address).content.decode()) == [str(mine.pk)]
    by_sam = browser_of(people.sam).get(address).content.decode()
    assert _picks(by_sam) == [str(other.pk), str(mine.pk)]
    by_vera = browser_of(people.vera).get(address).content.decode()
    assert _picks(by_vera) == []
    assert "Rematch the selected" not in by_vera


def test_before_a_rematch_one_sees_what_it_means_and_nothing_is_done(
    people: SimpleNamespace, browser_of: Callable[[User], Client]
) -> None:
    first = factories.running_dag(people.alice, node_count=3)
    second = factories.running_dag(people.bob, node_count=2)
    idle = factories.dag(people.alice)
    assert factories.claim(factories.pilot(first.site.queues.get())) is not None

    answer = browser_of(people.sam).get(ADDRESS, {"dag": [first.pk, second.pk, idle.pk]})

    page = " ".join(answer.content.decode().split())
    assert "Rematch 2 DAGs" in page
    assert "<b>4</b> queued jobs leave the queues at once." in page
    assert "<b>1</b> running job is stopped, or may finish if you say so." in page
    assert "it is at no site" in page
    assert not DagEvent.objects.filter(event="rematch").exists()


def test_a_selection_is_rematched_with_one_reason_and_audited(
    people: SimpleNamespace, browser_of: Callable[[User], Client]
) -> None:
    dags = [factories.running_dag(user) for user in (people.alice, people.bob)]

    answer = browser_of(people.sam).post(
        ADDRESS, {"dag": [dag.pk for dag in dags], "reason": "the site burns", "avoid_min": ""}
    )

    assert answer["Location"] == reverse("web:dags")
    assert [str(m) for m in get_messages(answer.wsgi_request)] == [
        "2 DAGs are taken from their sites."
    ]
    assert set(Job.objects.values_list("state", flat=True)) == {"killed"}
    entries = AuditEntry.objects.filter(action="rematch DAG").order_by("pk")
    assert [(e.actor, e.target, e.reason) for e in entries] == [
        ("sam", f"DAG {dag.pk}", "the site burns") for dag in dags
    ]
    assert set(MatchRecord.objects.values_list("end", flat=True)) == {"rematch"}


def test_what_changed_meanwhile_is_left_and_told(alice: Client, people: SimpleNamespace) -> None:
    running, gone = (factories.running_dag(people.alice) for _ in range(2))
    alice.post(reverse("web:steer", args=[gone.pk, "remove"]), {"reason": "no use"})

    answer = alice.post(ADDRESS, {"dag": [running.pk, gone.pk], "reason": "slow"}, follow=True)

    page = answer.content.decode()
    assert f"DAG {running.pk} is taken from its site." in page
    assert f"Left as they are: DAG {gone.pk} is removed." in page


def test_when_nothing_could_be_done_the_page_says_so(
    alice: Client, people: SimpleNamespace
) -> None:
    idle = factories.dag(people.alice)

    answer = alice.post(ADDRESS, {"dag": idle.pk, "reason": "slow"})

    assert answer.status_code == 409
    assert "none of these DAGs is at a site" in answer.content.decode()


def test_the_dags_of_others_are_not_rematched(alice: Client, people: SimpleNamespace) -> None:
    mine, other = factories.running_dag(people.alice), factories.running_dag(people.bob)

    shown = alice.get(ADDRESS, {"dag": [mine.pk, other.pk]}).content.decode()
    answer = alice.post(ADDRESS, {"dag": [mine.pk, other.pk], "reason": "mine"})

    assert "it belongs to bob" in shown
    assert answer.status_code == 403
    mine.refresh_from_db()
    assert mine.state == "running"


@pytest.mark.parametrize("given", ["x", "-1", "9" * 30, "987654", "²"])
def test_what_is_no_dag_is_not_found(alice: Client, given: str) -> None:
    assert alice.get(ADDRESS, {"dag": given}).status_code == 404


def test_too_many_at_once_are_refused(alice: Client) -> None:
    assert alice.get(ADDRESS, {"dag": list(range(1, 202))}).status_code == 409


def test_without_a_selection_the_page_leads_back(alice: Client) -> None:
    page = alice.get(ADDRESS).content.decode()

    assert "No DAG is selected" in page


def test_a_running_dag_shows_its_policy_with_the_figures_of_the_moment(
    alice: Client, people: SimpleNamespace
) -> None:
    dag = factories.running_dag(people.alice)
    address = reverse("web:dag", args=[dag.pk])
    assert "Rematched by policy" not in alice.get(address).content.decode()

    Dag.objects.filter(pk=dag.pk).update(rematch_expression="NodesQueud > 5")
    page = alice.get(address).content.decode()

    assert "<code>NodesQueud &gt; 5</code>" in page
    assert "This takes nothing away: its value is undefined, not a truth value" in page
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

    assert "NodesRunning <b>0</b>, QueuedSeconds <b>7500</b>" in page
