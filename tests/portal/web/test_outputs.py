"""Outputs on the page of a job: until when they are kept, all as an archive, and when they went."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.portal.web.markup import text_of
from tests.wms.jobs.sandboxes.samples import cluster_of, ended_cluster, job_of, send, take_next
from wms.jobs.models import Cluster, Job, OutputLease
from wms.jobs.sandboxes import sweep


@pytest.fixture
def cluster(people: SimpleNamespace) -> Cluster:
    return ended_cluster(people.alice, 1)


def page_of(alice: Client, job: Job) -> str:
    return alice.get(reverse("web:job", args=[job.pk])).content.decode()


def test_the_page_tells_how_long_outputs_are_kept_and_gives_all(
    alice: Client, cluster: Cluster
) -> None:
    job = job_of(cluster, 0)

    page = page_of(alice, job)

    assert text_of(page, "outputs-kept-until")
    assert f'href="{reverse("api:job-output-archive", args=[job.pk])}"' in page
    archive = alice.get(reverse("api:job-output-archive", args=[job.pk]))
    assert b"of 0" in b"".join(archive.streaming_content)


def test_the_page_tells_that_outputs_have_been_removed(alice: Client, cluster: Cluster) -> None:
    OutputLease.objects.update(kept_until=timezone.now() - timedelta(days=1))
    sweep.remove_next(timezone.now())
    job = job_of(cluster, 0)

    page = page_of(alice, job)

    assert text_of(page, "outputs-removed")
    assert reverse("api:job-output-archive", args=[job.pk]) not in page


def test_there_is_no_archive_of_a_job_that_runs(alice: Client, people: SimpleNamespace) -> None:
    cluster = cluster_of(people.alice, 1)
    send(take_next(), {"out.root": b"x"})

    assert "outputs-archive" not in page_of(alice, job_of(cluster, 0))
