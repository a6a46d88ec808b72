"""Questions why something does not run, at the API."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from tests import factories
from wms.core.actors import Actor
from wms.dags.models import Dag
from wms.dags.negotiation.requests import loads_by_site
from wms.dags.services.dags import rematch_dags
from wms.jobs.models import Job
from wms.sites.ads import publish_ads
from wms.sites.models import Queue


@pytest.fixture
def alice(people: SimpleNamespace, as_user) -> APIClient:
    factories.site("UW", attributes="Memory = 12288")
    publish_ads(loads_by_site(), now=timezone.now())
    return as_user(people.alice)


def ask(client: APIClient, **question: object):
    return client.post("/api/v1/explain/", question, format="json")


def test_a_pasted_ad_is_explained_with_the_nearest_miss(alice: APIClient) -> None:
    answer = ask(alice, ad="Need = 16384\nRequirements = TARGET.Memory >= Need").json()

    assert answer["verdict"] == "never"
    (conjunct,) = answer["explanation"]["conjuncts"]
    assert conjunct["text"] == "TARGET.Memory >= Need"
    assert (conjunct["alone"], conjunct["together"], conjunct["undefined"]) == (0, 0, 0)
    assert answer["misses"][0] == {
        "attribute": "Need", "old": "16384", "new": "12288", "before": 0, "after": 1,
        "is_enough": True,
    }  # fmt: skip
    [(stand, sites)] = answer["explanation"]["stands"].items()
    assert ("DAG" in stand, sites) == (True, ["UW"])


def test_a_node_that_no_queue_can_run_is_named_with_its_need(
    people: SimpleNamespace, alice: APIClient
) -> None:
    Queue.objects.update(memory_mb=8192)
    dag = factories.dag(people.alice)
    need = {"node_needs": [{"memory_mb": 16384}], "need_nodes": ["sim"]}
    Dag.objects.filter(pk=dag.pk).update(**need)

    answer = ask(alice, dag=dag.pk).json()

    assert answer["verdict"] == "never"
    [unmet] = answer["explanation"]["unmet"]
    assert (unmet["node"], unmet["code"], unmet["sites"]) == ("sim", "memory", ["UW"])
    assert "16384 MB" in unmet["text"]


def test_what_if_tells_the_counts_after_the_change(alice: APIClient) -> None:
    answer = ask(
        alice,
        ad="Requirements = TARGET.Memory >= 16384",
        changes={"sites": {"UW": {"Memory": "20000"}}},
    ).json()

    assert answer["explanation"]["willing"] == 0
    assert answer["after"]["willing"] == 1
    assert answer["after"]["would_match"] is True


def test_a_dag_that_left_a_site_tells_why_and_until_when_it_avoids_it(
    people: SimpleNamespace, alice: APIClient
) -> None:
    dag = factories.running_dag(people.alice)
    by_alice = Actor.person(people.alice)
    rematch_dags([dag.pk], actor=by_alice, reason="disk full", avoid_s=600)

    answer = ask(alice, dag=dag.pk).json()

    assert "UW: disk full" in answer["summary"]
    (avoided,) = answer["avoided"]
    assert (avoided["site"], avoided["reason"]) == ("UW", "disk full")
    assert avoided["until"] > timezone.now().isoformat()


def test_dags_jobs_task_queues_and_sites_can_be_asked_about(
    people: SimpleNamespace, alice: APIClient
) -> None:
    dag = factories.running_dag(people.alice)
    job = Job.objects.order_by("pk").first()

    assert ask(alice, dag=dag.pk).json()["verdict"] == "has a site"
    assert ask(alice, job=job.pk).json()["queues"][0]["site"] == "UW"
    assert ask(alice, site="UW").json()["explanation"]["dags"] == 0
    assert ask(alice, task_queue=4711).status_code == 404


@pytest.mark.parametrize(
    ("question", "fault"),
    [
        ({}, "name exactly one of"),
        ({"dag": 1, "site": "UW"}, "name exactly one of"),
        ({"ad": "Requirements = (("}, "not a ClassAd expression"),
        ({"job": 1, "changes": {"dag": {"A": "1"}}}, "means nothing here"),
        ({"ad": "A = 1", "changes": {"dag": {"A b": "1"}}}, "not an attribute name"),
        ({"site": "UW", "changes": {"sites": {"UW": {"Memory": "(("}}}}, "Memory"),
    ],
)
def test_questions_at_fault_are_refused_with_the_reason(
    alice: APIClient, question: dict[str, object], fault: str
) -> None:
    answer = ask(alice, **question)

    assert answer.status_code == 400
    assert fault in answer.content.decode()


def test_changes_of_jobs_and_queues_are_compared(people: SimpleNamespace, alice: APIClient) -> None:
    factories.running_dag(people.alice)
    job = Job.objects.filter(state="waiting").order_by("pk")[0]

    greedy = ask(alice, job=job.pk, changes={"needs": {"memory_mb": "999999"}}).json()
    site = ask(alice, site="UW", changes={"queues": {"UW": {"required_tags": "x"}}}).json()
    plain = ask(alice, job=job.pk).json()

    assert (greedy["verdict"], greedy["after"]["verdict"]) == ("waiting its turn", "never")
    assert plain["after"] is None
    assert (site["jobs"]["fitting"], site["jobs_after"]["fitting"]) == (2, 0)


@pytest.mark.parametrize(
    ("subject", "changes", "message"),
    [
        ({"job": 1}, {"dag": {"Need": "1"}}, "means nothing here: change needs or queues"),
        ({"site": "UW"}, {"queues": {"Lost": {"cores": "1"}}}, "There is no queue or site Lost"),
        ({"ad": "A = 1"}, {"needs": {"cores": "1"}}, "means nothing here: change dag or sites"),
    ],
)
def test_changes_that_mean_nothing_are_refused(
    alice: APIClient, subject: dict[str, object], changes: dict[str, object], message: str
) -> None:
    answer = ask(alice, **subject, changes=changes)

    assert answer.status_code == 400
    assert message in answer.content.decode()
