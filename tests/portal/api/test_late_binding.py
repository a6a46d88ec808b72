"""DAGs with `binding = job` at the API: submission, accepting sites, what the claim filled in."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from rest_framework.test import APIClient

from tests import factories
from tests.portal.api.submissions import URL, dag_form
from wms.jobs.models import Job
from wms.sites.models import Queue

DESCRIPTION = b"executable = run.sh\narguments = $$(Name) $(JOB)\nqueue\n"


@pytest.fixture
def alice(people: SimpleNamespace, as_user) -> APIClient:
    factories.site("UW")
    factories.site("UF", max_matches=0)
    return as_user(people.alice)


@pytest.fixture
def dag_id(alice: APIClient) -> int:
    files = {"job.sub": DESCRIPTION, "run.sh": b"#!/bin/sh\n"}
    answer = alice.post(URL, dag_form(files=files, binding="job"), format="multipart")
    assert answer.status_code == 201, answer.json()
    factories.turn()
    return answer.json()["id"]


def test_the_dag_names_the_sites_that_accept_it(alice: APIClient, dag_id: int) -> None:
    dag = alice.get(f"{URL}{dag_id}/").json()

    assert (dag["binding"], dag["site"], dag["accepting_sites"]) == ("job", None, ["UW"])


def test_a_dag_with_a_site_of_its_own_names_none(alice: APIClient) -> None:
    dag = alice.post(URL, dag_form(), format="multipart").json()

    assert (dag["binding"], dag["accepting_sites"]) == ("site", None)


def test_another_word_is_refused(alice: APIClient) -> None:
    answer = alice.post(URL, dag_form(binding="pilot"), format="multipart")

    assert answer.status_code == 400
    assert [each["field"] for each in answer.json()["findings"]] == ["binding"]


def test_each_site_says_whether_it_accepts_and_why_not(alice: APIClient, dag_id: int) -> None:
    answer = alice.post("/api/v1/explain/", {"dag": dag_id}, format="json").json()

    assert answer["verdict"] == "has a site"
    told = {each["site"]: (each["accepts"], bool(each["reason"])) for each in answer["sites"]}
    assert told == {"UW": (True, False), "UF": (False, True)}


def test_a_job_tells_what_is_filled_in_and_then_what_it_was(alice: APIClient, dag_id: int) -> None:
    job = Job.objects.order_by("pk").first()
    address = f"/api/v1/jobs/{job.pk}/"
    before = alice.get(address).json()
    pilot = factories.pilot(Queue.objects.get(site__name="UW"))
    factories.run_job(pilot)
    factories.run_job(pilot)

    after = alice.get(address).json()

    assert (before["arguments"], before["late"]) == ([], {"arguments": "$$(Name) A1"})
    assert (after["arguments"], after["late"]) == (["UW", "A1"], {})
    assert after["attributes"]["MATCH_Name"] == "UW"
    assert [each["site_name"] for each in after["attempts"]] == ["UW"]
