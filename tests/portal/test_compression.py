"""Answers are compressed for who accepts it: whole pages and JSON, not what is streamed."""

from __future__ import annotations

import gzip
from datetime import timedelta
from types import SimpleNamespace

import pytest
import time_machine
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests import factories

GZIP = {"HTTP_ACCEPT_ENCODING": "gzip, br"}


@pytest.fixture
def people(db: None) -> SimpleNamespace:
    return factories.people()


@pytest.fixture
def sam(people: SimpleNamespace) -> Client:
    client = Client()
    client.force_login(people.sam)
    return client


@pytest.mark.parametrize("name", ["web:dashboard", "api:dags"])
def test_a_page_and_json_are_compressed_for_who_accepts_it(sam: Client, name: str) -> None:
    plain, packed = sam.get(reverse(name)), sam.get(reverse(name), **GZIP)

    assert "Content-Encoding" not in plain
    if name == "web:dashboard":
        assert packed["Content-Encoding"] == "gzip"
        assert len(packed.content) < len(plain.content) / 3
        assert b"</html>" in gzip.decompress(packed.content)


def test_an_unchanged_part_of_a_page_is_known_by_its_weak_etag(
    people: SimpleNamespace, sam: Client
) -> None:
    for _ in range(3):
        factories.job(people.alice)
    part = {"HTTP_HX_REQUEST": "true", "HTTP_HX_TARGET": "live", **GZIP}
    first = sam.get(reverse("web:jobs"), **part)

    again = sam.get(reverse("web:jobs"), **part, HTTP_IF_NONE_MATCH=first["ETag"])

    assert first["Content-Encoding"] == "gzip"
    assert first["ETag"].startswith("W/")
    assert again.status_code == 304


def test_a_list_in_which_only_time_has_passed_is_not_sent_again(
    people: SimpleNamespace, sam: Client
) -> None:
    factories.job(people.alice)
    part = {"HTTP_HX_REQUEST": "true", "HTTP_HX_TARGET": "live"}
    first = sam.get(reverse("web:jobs"), **part)

    with time_machine.travel(timezone.now() + timedelta(seconds=90), tick=False):
        again = sam.get(reverse("web:jobs"), **part, HTTP_IF_NONE_MATCH=first["ETag"])
    factories.job(people.alice)
    changed = sam.get(reverse("web:jobs"), **part, HTTP_IF_NONE_MATCH=first["ETag"])

    assert (again.status_code, changed.status_code) == (304, 200)


def test_what_is_streamed_goes_out_as_it_is(people: SimpleNamespace, sam: Client) -> None:
    dag = factories.dag(people.alice)

    answer = sam.get(reverse("web:dag-file", args=[dag.pk, dag.dag_files[0]]), **GZIP)

    assert answer.streaming
    assert "Content-Encoding" not in answer
    assert b"".join(answer.streaming_content).startswith(b"JOB")
