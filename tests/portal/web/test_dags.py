from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse

from tests import factories
from wms.core.models import User
from wms.dags.models import Dag, Node


def _steer(client: Client, dag: Dag, event: str, reason: str = ""):
    return client.post(reverse("web:steer", args=[dag.pk, event]), {"reason": reason})


def test_the_owner_holds_and_releases_and_the_reason_is_in_the_events(
    alice: Client, people: SimpleNamespace
) -> None:
    dag = factories.running_dag(people.alice)

    held = _steer(alice, dag, "hold", "disk full")
    dag.refresh_from_db()
    assert held.status_code == 302
    assert (dag.state, dag.state_reason) == ("held", "disk full")

    _steer(alice, dag, "release")
    dag.refresh_from_db()
    assert dag.state == "running"
    assert [e.actor for e in dag.events.filter(event__in=["hold", "resume"])] == ["alice"] * 2


@pytest.mark.parametrize("event", ["hold", "remove"])
def test_without_a_reason_the_form_comes_back_with_the_fault(
    alice: Client, people: SimpleNamespace, event: str
) -> None:
    dag = factories.running_dag(people.alice)

    answer = _steer(alice, dag, event, "  ")

    assert answer.status_code == 400
    assert "Give a reason" in answer.content.decode()
    refused = [each.action.name for each in answer.context["offers"] if each.error]
    assert refused == [event]
    dag.refresh_from_db()
    assert dag.state == "running"


def test_a_stale_form_shows_the_conflict_and_changes_nothing(
    alice: Client, people: SimpleNamespace
) -> None:
    dag = factories.dag(people.alice)
    _steer(alice, dag, "remove", "not needed")

    answer = _steer(alice, dag, "hold", "too late")

    assert answer.status_code == 409
    assert answer.context["error"].status == 409
    assert Dag.objects.get(pk=dag.pk).state == "removed"


def test_steering_the_dag_of_another_is_refused_with_a_page(
    people: SimpleNamespace, browser_of: Callable[[User], Client]
) -> None:
    dag = factories.running_dag(people.alice)

    answer = _steer(browser_of(people.bob), dag, "hold", "mine")

    assert answer.status_code == 403
    assert Dag.objects.get(pk=dag.pk).state == "running"


def test_nothing_is_steered_by_following_a_link(alice: Client, people: SimpleNamespace) -> None:
    dag = factories.running_dag(people.alice)

    answer = alice.get(reverse("web:steer", args=[dag.pk, "hold"]))

    assert answer["Location"] == reverse("web:dag", args=[dag.pk])
    dag.refresh_from_db()
    assert dag.state == "running"


def test_a_form_without_its_token_is_refused(people: SimpleNamespace) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(people.alice)
    dag = factories.running_dag(people.alice)

    answer = _steer(client, dag, "hold", "disk full")

    assert answer.status_code == 403
    assert Dag.objects.get(pk=dag.pk).state == "running"


def test_an_idle_dag_says_why_it_has_no_site(alice: Client, people: SimpleNamespace) -> None:
    factories.site(max_matches=0)
    dag = factories.dag(people.alice)
    factories.turn()

    page = alice.get(reverse("web:dag", args=[dag.pk])).content.decode()

    dag.refresh_from_db()
    assert "No site yet." in page
    assert "MaxMatches" in dag.unmatched_reason
    assert dag.unmatched_reason.split(",")[0] in page


def test_nodes_are_drawn_below_their_parents(alice: Client, people: SimpleNamespace) -> None:
    dag = factories.dag(people.alice, node_count=3, is_chain=True)

    levels = alice.get(reverse("web:dag", args=[dag.pk])).context["levels"]

    assert [[node.name for node in level] for level in levels] == [["A1"], ["A2"], ["A3"]]


def test_the_node_table_is_cut_by_state_and_into_pages(
    alice: Client, people: SimpleNamespace
) -> None:
    dag = factories.dag(people.alice, node_count=205)
    Node.objects.filter(dag=dag, name="A7").update(state="failed", state_reason="exit code 1")
    address = reverse("web:dag", args=[dag.pk])

    failed = alice.get(f"{address}?nodes=failed").context["nodes"]
    first = alice.get(f"{address}?tab=nodes").context["nodes"]
    second = alice.get(address + first.following).context["nodes"]

    assert [node.name for node in failed.rows] == ["A7"]
    assert [node.ordinal for node in [*first.rows, *second.rows]] == list(range(1, 206))
    assert (first.first, second.following) == ("", "")


def test_an_unknown_dag_is_a_page_that_says_so(alice: Client) -> None:
    answer = alice.get(reverse("web:dag", args=[987]))

    assert answer.status_code == 404
    assert "987" in answer.content.decode()


def test_the_part_that_is_refreshed_offers_what_can_be_done_now(
    alice: Client, people: SimpleNamespace
) -> None:
    dag = factories.running_dag(people.alice)
    _steer(alice, dag, "halt", "look")

    address = reverse("web:dag", args=[dag.pk])
    part = alice.get(address, headers={"HX-Request": "true", "HX-Target": "live"})

    offered = [(each.action.name, each.label) for each in part.context["offers"]]
    assert offered[:2] == [("hold", "Hold"), ("release", "Resume")]
    assert 'id="steer-release"' in part.content.decode()
