"""Input data on the pages of jobs and DAGs, in the API's answers, and in the explanations."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from matching.task_queues.needs import Needs
from tests import factories
from tests.portal.web.markup import text_of
from tests.wms.placement.replicas import lose, replica, storage
from wms.core.actors import Actor
from wms.dags.models import Dag
from wms.jobs.input_data import refreshing
from wms.jobs.operations import create_workspace, submit_jobs
from wms.jobs.specs import JobSpec

SUBMIT = "executable = run.sh\ntransfer_input_files = lfn:/x\n{more}\nqueue\n"


@pytest.fixture
def sites(people: SimpleNamespace) -> None:
    """Sites UW and CERN with a storage each, and a file at that of CERN."""
    for name in ("UW", "CERN"):
        factories.site(name)
        storage(f"se-{name.lower()}", name)
    replica(people.alice, "/x", "se-cern", size_bytes=10)


def _dag(people: SimpleNamespace, more: str = "") -> Dag:
    files = {"job.sub": SUBMIT.format(more=more).encode()}
    made = factories.dag(people.alice, node_count=1, files=files)
    factories.turn()
    made.refresh_from_db()
    return made


def test_a_job_tells_where_its_input_data_are_and_waits_for_them(
    alice: Client, people: SimpleNamespace, sites: None
) -> None:
    spec = JobSpec(
        name="j", executable="/bin/true", needs=Needs.of("alice"),
        directives={"input_data": ["lfn:/x"]},
    )  # fmt: skip
    [pk] = submit_jobs(
        [spec], owner=people.alice, workspace=create_workspace(people.alice, {}),
        actor=Actor.system("test"),
    )  # fmt: skip

    page = alice.get(reverse("web:job", args=[pk])).content.decode()
    told = alice.get(reverse("api:job", args=[pk])).json()["inputs"]

    assert "lfn:/x is at se-cern (near CERN)" in text_of(page, "job-inputs")
    assert 'id="job-inputs-missing"' not in page
    assert (told["cause"], told["sites"], told["tenths"]) == ("near", ["CERN"], {})

    lose("/x", "se-cern")
    refreshing.run_cycle(timezone.now())
    page = alice.get(reverse("web:job", args=[pk])).content.decode()
    told = alice.get(reverse("api:job", args=[pk])).json()["inputs"]
    why = alice.post(reverse("api:explain"), {"job": pk}, content_type="application/json").json()

    assert "lfn:/x" in text_of(page, "job-inputs-missing")
    assert (told["cause"], told["sites"]) == ("missing", [])
    assert (why["verdict"], why["inputs"]["cause"]) == ("not now", "missing")
    assert alice.get(reverse("web:explain"), {"job": pk}).status_code == 200


def test_a_dag_tells_which_sites_its_input_data_are_near(
    alice: Client, people: SimpleNamespace, sites: None
) -> None:
    near, far = _dag(people), _dag(people, "data_access = anywhere")

    pages = [alice.get(reverse("web:dag", args=[dag.pk])).content.decode() for dag in (near, far)]
    told = [alice.get(reverse("api:dag", args=[dag.pk])).json()["inputs"] for dag in (near, far)]

    assert {near.site.name, far.site.name} == {"CERN"}
    assert "se-cern (near CERN)" in text_of(pages[0], "dag-inputs-1")
    assert "100 % are near CERN" in text_of(pages[1], "dag-inputs-1")
    assert [(each["is_anywhere"], each["cause"]) for [each] in told] == [
        (False, "near"), (True, "")
    ]  # fmt: skip
    assert [(each["sites"], each["tenths"]) for [each] in told] == [
        (["CERN"], {}), (None, {"CERN": 10})
    ]  # fmt: skip


def test_the_candidates_of_a_dag_tell_how_much_is_near(
    alice: Client, people: SimpleNamespace, sites: None
) -> None:
    dag = _dag(people, "data_access = anywhere")

    why = alice.post(
        reverse("api:explain"), {"dag": dag.pk}, content_type="application/json"
    ).json()

    candidates = why["explanation"]["candidates"]
    assert [(each["site"], each["input_tenths"]) for each in candidates] == [
        ("CERN", 10),
        ("UW", 0),
    ]
