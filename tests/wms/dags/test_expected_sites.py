"""A DAG that no site takes as the sites are now: warned of when it is checked and submitted."""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.utils import timezone

from tests.wms.conftest import SUBMIT_FILE
from tests.wms.dags.driving import match
from wms.core.actors import Actor
from wms.core.models import User
from wms.dags.models import Dag
from wms.dags.negotiation.requests import loads_by_site
from wms.dags.submission.submit import DagSubmission, check_submission, submission_warnings
from wms.sites.ads import publish_ads
from wms.sites.services import ban_site

ONE = "JOB A step.sub\n"
WANTING = {"requirements": "CurMatches < MaxMatches && TARGET.WANT_X =?= true"}
TOLD = "All 3 sites require WANT_X = true, which this DAG does not set."


def publish() -> None:
    publish_ads(loads_by_site(), now=timezone.now())


def warnings_of(owner: User, description: str = "", job: str = SUBMIT_FILE) -> list[str]:
    files = {"step.sub": job, "step.sh": "#!/bin/sh\n"}
    checked = check_submission(
        DagSubmission(
            "test.dag",
            ONE,
            {name: io.BytesIO(text.encode()) for name, text in files.items()},
            description_text=description,
            description_name="dag.sub" if description else "",
        ),
        owner=owner,
    )
    assert checked.findings == []
    return [each.message for each in checked.warnings]


@pytest.fixture
def three_sites(make_site: Any) -> None:
    for name in ("site-a", "site-b", "site-c"):
        make_site(name, **WANTING)
    publish()


@pytest.mark.parametrize("description", ["", "binding = job\n", "+WANT_Y = true\n"])
def test_an_attribute_that_all_sites_require_is_named(
    three_sites: None, alice: User, description: str
) -> None:
    [warning] = warnings_of(alice, description)

    assert TOLD in warning


def test_a_dag_that_sets_it_is_not_warned_of(three_sites: None, alice: User) -> None:
    assert warnings_of(alice, "+WANT_X = true\n") == []


def test_the_submission_stores_the_warning_and_the_idle_dag_says_the_same(
    three_sites: None, submit: Any
) -> None:
    dag = submit(ONE)

    [warning] = submission_warnings(dag)
    assert (TOLD in warning.message, warning.file) == (True, "test.dag")
    assert TOLD in match(dag).unmatched_reason
    assert dag.state == "idle"
    assert Dag.objects.count() == 1


def test_what_would_help_is_told_where_the_dag_refuses_the_sites(
    make_site: Any, alice: User
) -> None:
    make_site("site-a", attributes="Memory = 2000")
    publish()

    [warning] = warnings_of(alice, "requirements = TARGET.Memory >= 64000\n")

    assert "TARGET.Memory >= 2000" in warning


def test_a_node_that_no_queue_can_run_is_named(make_site: Any, alice: User) -> None:
    make_site("site-a", queue={"memory_mb": 1000})
    publish()

    [warning] = warnings_of(alice, job="request_memory = 9000\n" + SUBMIT_FILE)

    assert "Node A: 9000 MB of memory" in warning


def test_a_site_that_is_only_closed_or_full_is_no_reason(
    make_site: Any, alice: User, olga: User
) -> None:
    make_site("site-a", max_matches=0)
    make_site("site-b")
    ban_site("site-b", reason="tests", actor=Actor.person(olga))
    publish()

    assert warnings_of(alice) == []


def test_without_any_site_nothing_is_known(alice: User) -> None:
    assert warnings_of(alice, "requirements = TARGET.Memory >= 64000\n") == []
