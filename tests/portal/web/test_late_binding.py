"""Pages of a DAG with `binding = job`: its sites, its explanation, its jobs."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from tests import factories
from wms.core.actors import Actor
from wms.dags.models import Dag
from wms.dags.submission.submit import DagSubmission, submit_dag
from wms.jobs.models import Job


@pytest.fixture
def dag(people: SimpleNamespace) -> Dag:
    for name in ("UW", "UF"):
        factories.site(name)
    factories.site("FNAL", max_matches=0)
    description = b"executable = run.sh\narguments = $$(Name)\nqueue\n"
    files = {"job.sub": description, "run.sh": b"#!/bin/sh\n"}
    submission = DagSubmission(
        dag_name="late.dag",
        dag_text=factories.dag_text(1),
        files={path: io.BytesIO(data) for path, data in files.items()},
        binding="job",
    )
    made = submit_dag(submission, owner=people.alice, actor=Actor.person(people.alice))
    factories.turn()
    made.refresh_from_db()
    return made


def test_the_page_of_a_dag_names_the_sites_that_accept_it(alice: Client, dag: Dag) -> None:
    answer = alice.get(reverse("web:dag", args=[dag.pk]))

    assert answer.status_code == 200
    assert answer.context["accepting"] == ["UF", "UW"]
    assert reverse("web:site", args=["UW"]) in answer.content.decode()


def test_the_explanation_shows_every_site(alice: Client, dag: Dag) -> None:
    page = alice.get(reverse("web:explain"), {"dag": dag.pk}).content.decode()

    assert all(name in page for name in ("UW", "UF", "FNAL"))


def test_the_page_of_a_job_shows_what_its_claim_fills_in(alice: Client, dag: Dag) -> None:
    job = Job.objects.get()

    page = alice.get(reverse("web:job", args=[job.pk])).content.decode()

    assert 'id="job-late"' in page
    assert "$$(Name)" in page


def test_lists_and_node_pages_show_such_a_dag(alice: Client, dag: Dag) -> None:
    assert alice.get(reverse("web:dags")).status_code == 200
    node = dag.nodes.get()
    assert alice.get(reverse("web:node", args=[dag.pk, node.pk])).status_code == 200


def test_the_form_submits_one(alice: Client, people: SimpleNamespace) -> None:
    files = {"job.sub": factories.SUBMIT_FILE.encode(), "run.sh": b"#!/bin/sh\n"}
    alice.post(
        reverse("web:submit"),
        {
            "dag": SimpleUploadedFile("x.dag", factories.dag_text(1).encode()),
            "files": [SimpleUploadedFile(name, content) for name, content in files.items()],
            "binding": "job",
            "do": "submit",
        },
    )

    assert Dag.objects.get().binding == "job"
