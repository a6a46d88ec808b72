"""Actions on one job from its page lead through the bulk preview."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse

from tests import factories
from tests.wms.bulk.conftest import finish
from wms.bulk.models import BulkOperation
from wms.core.models import User
from wms.jobs.models import Job

Offered = Callable[[User], set[str]]


@pytest.fixture
def people(db: None) -> SimpleNamespace:
    return factories.people()


@pytest.fixture
def job(people: SimpleNamespace) -> Job:
    return factories.job(people.alice)


@pytest.fixture
def offered(client: Client, job: Job) -> Offered:
    """The names of the actions that the page of the job has a button for."""

    def ask(user: User) -> set[str]:
        client.force_login(user)
        page = client.get(reverse("web:job", args=[job.pk])).context
        return {action.name for action in page["further"]}

    return ask


def test_the_page_offers_what_fits_the_state(
    offered: Offered, people: SimpleNamespace, job: Job
) -> None:
    assert offered(people.alice) == {"hold", "prioritise"}

    Job.objects.filter(pk=job.pk).update(state="held", state_reason="looked at")
    assert offered(people.alice) == {"release", "prioritise"}


def test_nothing_is_offered_to_those_who_may_not(offered: Offered, people: SimpleNamespace) -> None:
    assert offered(people.bob) == set()
    assert offered(people.vera) == set()
    assert "hold" in offered(people.sam)


def test_a_job_is_held_from_its_page(client: Client, people: SimpleNamespace, job: Job) -> None:
    client.force_login(people.alice)
    body = {"list": "jobs", "pick": job.pk, "action": "hold"}

    assert client.post(reverse("web:new-bulk"), body).status_code == 302
    operation = BulkOperation.objects.get()
    confirm = {"seen": 1, "reason": "wrong input"}
    client.post(reverse("web:confirm-bulk", args=[operation.pk]), confirm)
    finish(operation)

    job.refresh_from_db()
    assert (job.state, job.state_reason) == ("held", "wrong input")
