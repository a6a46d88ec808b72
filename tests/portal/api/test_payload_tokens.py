"""Tokens that payloads have of their jobs' owners: what they read, and until when."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.test import Client
from django.utils import timezone

from tests import factories
from wms.actions.jobs import JOBS
from wms.core.models import Role
from wms.dags.lifecycle import JOB_TOPIC
from wms.jobs.models import Attempt, Job, Workspace
from wms.jobs.payload_tokens import LIFETIME, authenticate_payload, token_for

pytestmark = pytest.mark.django_db


@pytest.fixture
def attempt(people: SimpleNamespace) -> Attempt:
    """An open attempt of a job that asks for a token, of an owner with every power."""
    job = factories.job(people.alice)
    factories.describe(Job.objects.filter(pk=job.pk), directives={"has_token": True})
    type(people.alice).objects.filter(pk=people.alice.pk).update(role=Role.ADMIN, is_superuser=True)
    made = Attempt.objects.create(
        job=job, number=1, pilot_id=1, site_name="UW", claim_key="ab" * 16
    )
    return Attempt.objects.select_related("job__description").get(pk=made.pk)


def called(text: str, path: str, method: str = "get") -> int:
    """Status of the answer to a call with this token."""
    send = getattr(Client(), method)
    return send(f"/api/v1/{path}", headers={"Authorization": f"Bearer {text}"}).status_code


def test_a_payload_reads_its_own_job_and_nothing_else_and_changes_nothing(
    people: SimpleNamespace, attempt: Attempt
) -> None:
    other = factories.job(people.alice)
    token = token_for(attempt, now=timezone.now())
    assert token is not None
    own = f"jobs/{attempt.job_id}/"

    assert called(token.text, own) == 200
    assert called(token.text, f"{own}outputs/") == 200
    for path in (f"jobs/{other.pk}/", "jobs/", "audit/", "sites/", "clusters/0/", "dags/0/"):
        assert called(token.text, path) == 403, path
    for action in JOBS.in_api:
        assert called(token.text, f"{own}{action.name}/", "post") == 403
    assert called(token.text, own, "delete") == 403
    caller = authenticate_payload(token.text, now=timezone.now())
    assert (caller.user.role, caller.user.is_superuser) == (Role.USER, False)
    # The pilots' own addresses know nothing of it.
    assert Client().post(
        "/pilot/v1/claim", headers={"Authorization": f"Bearer {token.text}"}
    ).status_code == 401  # fmt: skip


def test_a_payload_reads_no_other_dag_by_way_of_its_own_nor_beyond_the_limit_of_its_job(
    people: SimpleNamespace, attempt: Attempt
) -> None:
    own, other = (factories.dag(people.alice, name=f"{name}.dag") for name in ("own", "other"))
    Job.objects.filter(pk=attempt.job_id).update(topic=JOB_TOPIC, topic_key=own.pk)
    token = token_for(attempt, now=timezone.now())
    assert token is not None

    assert called(token.text, f"dags/{own.pk}/") == 200
    assert called(token.text, f"dags/{own.pk}/compare/?with={other.pk}") == 403
    Workspace.objects.filter(pk=attempt.job.workspace_id).update(limited_to=1)
    assert called(token.text, f"dags/{own.pk}/") == 404


def test_a_token_ends_with_its_attempt_its_time_and_its_owners_account(
    people: SimpleNamespace, attempt: Attempt
) -> None:
    now = timezone.now()
    token = token_for(attempt, now=now)
    assert token is not None
    own = f"jobs/{attempt.job_id}/"
    kind, job, number, ends_at, signature = token.text.split("_")
    forged = (
        f"{kind}_{job}_{number}_{int(ends_at) + 1}_{signature}",
        f"{kind}_{int(job) + 1}_{number}_{ends_at}_{signature}",
        f"{kind}_{job}_2_{ends_at}_{signature}",
        f"{kind}_{job}_{number}_{ends_at}_{'0' * 64}",
        f"{kind}_{'9' * 18}_{number}_{ends_at}_{signature}",
        f"{kind}_",
        f"{token.text}\x00é",
    )

    assert [called(text, own) for text in forged] == [401] * len(forged)
    expired = token_for(attempt, now=now - LIFETIME - timedelta(seconds=1))
    assert expired is not None
    assert called(expired.text, own) == 401
    Attempt.objects.update(outcome=Attempt.Outcome.LOST, ended_at=now, reason="killed")
    assert called(token.text, own) == 401
    Attempt.objects.update(outcome="", ended_at=None)
    assert called(token.text, own) == 200
    type(people.alice).objects.filter(pk=people.alice.pk).update(is_active=False)
    assert called(token.text, own) == 401


def test_a_job_that_asks_for_no_token_has_none(attempt: Attempt) -> None:
    factories.describe(Job.objects.all(), directives=None)

    again = Attempt.objects.select_related("job__description").get(pk=attempt.pk)

    assert token_for(again, now=timezone.now()) is None
