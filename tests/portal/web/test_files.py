from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse

from tests import factories

SCRIPT = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"


def test_a_file_is_sent_as_a_download_that_no_browser_shows(
    alice: Client, people: SimpleNamespace
) -> None:
    dag = factories.dag(people.alice, files={"evil.html": b"<script>alert(1)</script>"})

    answer = alice.get(reverse("web:dag-file", args=[dag.pk, "evil.html"]))

    assert answer.getvalue() == b"<script>alert(1)</script>"
    assert answer["Content-Disposition"] == 'attachment; filename="evil.html"'
    assert answer["Content-Type"] == "application/octet-stream"
    assert answer["X-Content-Type-Options"] == "nosniff"


def test_a_picture_is_sent_into_a_sandbox(alice: Client, people: SimpleNamespace) -> None:
    dag = factories.dag(people.alice, files={"plot.svg": SCRIPT})

    answer = alice.get(reverse("web:dag-picture", args=[dag.pk, "plot.svg"]))

    assert answer.getvalue() == SCRIPT
    assert answer["Content-Type"] == "image/svg+xml"
    assert answer["Content-Security-Policy"].startswith("sandbox; default-src 'none'")
    assert answer["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("path", ["job.sub", "nothing.svg", "../plot.svg"])
def test_only_pictures_that_are_there_are_sent_as_pictures(
    alice: Client, people: SimpleNamespace, path: str
) -> None:
    dag = factories.dag(people.alice)

    answer = alice.get(f"/dags/{dag.pk}/pictures/{path}")

    assert answer.status_code == 404


def test_what_a_job_printed_is_shown_as_text_only(alice: Client, people: SimpleNamespace) -> None:
    factories.running_dag(people.alice, node_count=1)
    job = factories.run_job(factories.pilot(), stdout=b"<b>bold</b> \xff\n")
    assert job is not None

    page = alice.get(reverse("web:job", args=[job.pk])).content.decode()

    assert "&lt;b&gt;bold&lt;/b&gt; \N{REPLACEMENT CHARACTER}" in page
    assert "<b>bold</b>" not in page


def test_the_log_of_each_attempt_can_be_taken_away(alice: Client, people: SimpleNamespace) -> None:
    factories.running_dag(people.alice, node_count=1)
    job = factories.run_job(factories.pilot(), stdout=b"hello\n")
    assert job is not None

    answer = alice.get(reverse("web:attempt-file", args=[job.pk, 1, "stdout", "stdout"]))

    assert answer.getvalue() == b"hello\n"
    assert f'filename="job-{job.pk}-1.stdout.txt"' in answer["Content-Disposition"]


@pytest.mark.parametrize(
    "place", [(1, "stdout", "other"), (2, "stdout", "stdout"), (1, "core", "stdout")]
)
def test_a_file_that_was_never_sent_is_not_found(
    alice: Client, people: SimpleNamespace, place: tuple[int, str, str]
) -> None:
    factories.running_dag(people.alice, node_count=1)
    job = factories.run_job(factories.pilot())
    assert job is not None

    assert alice.get(reverse("web:attempt-file", args=[job.pk, *place])).status_code == 404
