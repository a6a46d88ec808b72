"""Comparison of two DAGs by page, file and API, within walls."""

from __future__ import annotations

import csv
import io

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from tests import factories
from tests.portal.walled_world import walled_world
from wms.core.models import User
from wms.dags.models import Dag, Node


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def api_of(user: User) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {factories.token_for(user)}")
    return client


@pytest.fixture
def runs(db: None) -> tuple[Dag, Dag]:
    """Two runs of Alice's DAG, of which the later has a node more, and one that failed."""
    alice = factories.person("alice")
    there, here = factories.dag(alice), factories.dag(alice, node_count=3)
    first = Node.objects.filter(dag=here).order_by("ordinal")[0]
    Node.objects.filter(pk=first.pk).update(state="failed", state_cause="payload")
    return here, there


def test_page_file_and_api_tell_the_same(runs: tuple[Dag, Dag]) -> None:
    here, there = runs
    alice = client_of(here.owner)
    page, file = reverse("web:dag-compare", args=[here.pk]), f"/dags/{here.pk}/compare.csv"
    api = f"/api/v1/dags/{here.pk}/compare/"

    chooser = alice.get(page)
    shown = alice.get(page, {"with": there.pk, "differs": "any"})
    [head, *lines] = csv.reader(io.StringIO(alice.get(file, {"with": there.pk}).content.decode()))
    told = api_of(here.owner).get(api, {"with": there.pk, "page_size": 1}).json()

    assert [dag.pk for each in chooser.context["proposed"] for dag in each.dags] == [there.pk]
    differences = [list(line.node.differences) for line in shown.context["lines"]]
    assert differences == [["state", "outcome"], ["only_here"]]
    assert (len(lines), head[0], f"state_{there.pk}" in head) == (3, "node", True)
    assert (told["total"], told["next_offset"], told["counts"]["any"]) == (3, 1, 2)
    assert told["results"][0]["differences"] == ["state", "outcome"]
    assert told["here"]["nodes"] == {"failed": 1, "waiting": 2}
    assert told["results"][0]["there"]["tries"] == 0
    last = api_of(here.owner).get(api, {"with": there.pk, "offset": 1}).json()
    assert (len(last["results"]), last["next_offset"]) == (2, None)


@pytest.mark.parametrize(
    "query",
    [{}, {"with": "x"}, {"with": "0"}, {"with": "1", "differs": "colour"},
     {"with": "1", "offset": "-1"}, {"with": "1", "page_size": "1001"}, {"with": "1", "wiht": "2"},
     {"with": "9" * 19}],
)  # fmt: skip
def test_a_question_that_cannot_be_read_is_refused(
    runs: tuple[Dag, Dag], query: dict[str, str]
) -> None:
    here, _ = runs

    told = api_of(here.owner).get(f"/api/v1/dags/{here.pk}/compare/", query)

    assert told.status_code == 400
    assert {each["field"] for each in told.json()["findings"]}
    shown = client_of(here.owner).get(reverse("web:dag-compare", args=[here.pk]), query)
    assert shown.status_code == (400 if query else 200)


def test_a_dag_is_compared_with_another_one_that_the_user_may_see(db: None) -> None:
    world = walled_world()
    user, own, of_b = world.people["user"], world.dag, world.b.dag
    for here, there, status in (
        (own, own, 400), (own, of_b, 404), (of_b, own, 404),
    ):  # fmt: skip
        for at in (f"/api/v1/dags/{here.pk}/compare/", f"/dags/{here.pk}/compare.csv",
                   f"/dags/{here.pk}/compare/"):  # fmt: skip
            client = api_of(user) if at.startswith("/api") else client_of(user)
            assert client.get(at, {"with": there.pk}).status_code == status, at
    proposed = client_of(user).get(f"/dags/{own.pk}/compare/").context["proposed"]
    assert of_b.pk not in {dag.pk for each in proposed for dag in each.dags}
