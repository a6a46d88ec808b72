"""Overview of a DAG's page: causes of failure, rate and expected end, main button."""

from __future__ import annotations

import re
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests import factories
from wms.dags.models import Dag, Node
from wms.failures import grouping


@pytest.fixture
def chain(people: SimpleNamespace) -> Dag:
    """Three nodes, one after another, of which the second failed."""
    dag = factories.running_dag(people.alice, node_count=3, is_chain=True)
    pilot = factories.pilot(dag.site.queues.get())
    for exit_code in (0, 1):
        factories.run_job(pilot, exit_code=exit_code)
        factories.turn()
    dag.refresh_from_db()
    return dag


def _overview(client: Client, dag: Dag):
    return client.get(reverse("web:dag", args=[dag.pk]))


def test_the_page_of_a_failing_dag_tells_its_causes_and_links_to_its_own_failures(
    alice: Client, people: SimpleNamespace, chain: Dag
) -> None:
    other = factories.running_dag(people.bob, node_count=1)
    pilot = factories.pilot(other.site.queues.get())
    factories.run_job(pilot, exit_code=1)
    factories.turn()
    grouping.run_cycle(timezone.now())

    of_dag = _overview(alice, chain).context["causes"]
    found = {hit.group.kind: hit for hit in of_dag}
    assert {kind: hit.count for kind, hit in found.items()} == {"job": 1}
    query = {"dag": chain.pk, "within": "all"}
    listed = alice.get(reverse("web:errors"), query).context
    assert {line.hit.group.pk: line.hit.count for line in listed["lines"]} == {
        hit.group.pk: hit.count for hit in of_dag
    }
    assert listed["matrix"].total == 1
    group = reverse("web:error", args=[found["job"].group.pk])
    assert alice.get(group, query).context["chosen"] == 1
    assert alice.get(group, {"within": "all"}).context["chosen"] == 2
    jobs = {"dag": chain.pk, "failure": found["job"].group.pk}
    assert alice.get(reverse("web:jobs"), jobs).context["listing"].chosen_total.value == 1


def test_a_running_dag_tells_its_rate_and_expected_end_once_enough_nodes_have_ended(
    alice: Client, people: SimpleNamespace, chain: Dag
) -> None:
    assert 'id="rate"' not in _overview(alice, chain).content.decode()
    dag, now = factories.running_dag(people.alice, node_count=30), timezone.now()
    Dag.objects.filter(pk=dag.pk).update(matched_at=now - timedelta(hours=2), done_count=24)
    for place, node in enumerate(Node.objects.filter(dag=dag).order_by("pk")[:24]):
        at = now - timedelta(minutes=5 * place + 1)
        Node.objects.filter(pk=node.pk).update(state="done", state_since=at)

    found = _overview(alice, dag).context["forecast"]

    assert round(found.per_hour) == 12
    assert timedelta(minutes=25) < found.expected - now < timedelta(minutes=35)


@pytest.mark.parametrize(
    ("state", "failed", "offered"),
    [
        ("completed", 0, {"to-rescue"}),
        ("failed", 2, {"to-rescue", "retry-all-failed", "rerun-all-failed"}),
        ("running", 2, {"retry-all-failed", "rerun-all-failed"}),
    ],
)
def test_the_main_button_of_a_dag_is_to_retry_what_failed(
    alice: Client, people: SimpleNamespace, state: str, failed: int, offered: set[str]
) -> None:
    dag = factories.running_dag(people.alice, node_count=2)
    Dag.objects.filter(pk=dag.pk).update(state=state, failed_count=failed)

    page = _overview(alice, dag).content.decode()

    ways = {"to-rescue", "retry-all-failed", "rerun-all-failed"}
    assert {way for way in ways if f'id="{way}"' in page} == offered
    main = re.findall(r'class="btn btn-main" id="([\w-]+)"', page)
    assert main == (["retry-all-failed"] if state == "failed" else [])
