"""Large downloads come from the store, by links that the portal gives to who may read them."""

from __future__ import annotations

import random
import urllib.request
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tests import factories
from wms.core.storage.current import close_stores, current_store
from wms.dags.models import Dag
from wms.jobs.content.blobs import blob_key

pytestmark = [pytest.mark.django_db, pytest.mark.process]

LARGE = random.Random(8).randbytes(300_000)
NAME = 'no "plain" näme.png'
FILES = {NAME: LARGE, "small.txt": b"small"}


@pytest.fixture
def people() -> SimpleNamespace:
    return factories.people()


def _dag(owner: Any) -> Dag:
    return factories.dag(owner, files=FILES)


def _browser(user: Any) -> Client:
    browser = Client()
    browser.force_login(user)
    return browser


def _addresses(dag: Dag, path: str = NAME) -> list[str]:
    at = {"dag_id": dag.pk, "path": path}
    return [reverse("web:dag-file", kwargs=at), reverse("api:dag-file", kwargs=at)]


def _fetch(link: str, **headers: str) -> tuple[int, Any, bytes]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(urllib.request.Request(link, headers=headers), timeout=30) as answer:
        return answer.status, answer.headers, answer.read()


@pytest.mark.usefixtures("bucket")
def test_pages_and_api_lead_who_may_read_a_large_file_to_the_store(
    people: SimpleNamespace,
) -> None:
    dag = _dag(people.alice)

    for at in _addresses(dag):
        answer = _browser(people.alice).get(at)
        status, headers, content = _fetch(answer["Location"])
        ranged = _fetch(answer["Location"], Range="bytes=-5")

        assert (answer.status_code, "no-store" in answer["Cache-Control"]) == (302, True)
        assert (status, content) == (200, LARGE)
        assert headers["Content-Type"] == "application/octet-stream"
        assert headers["Content-Disposition"].startswith("attachment; filename*=utf-8''")
        assert "no-store" in headers["Cache-Control"]
        assert (ranged[0], ranged[2]) == (206, LARGE[-5:])
        assert "X-Amz-Signature" not in Client().get(at).get("Location", "")


@pytest.mark.usefixtures("bucket")
def test_what_is_small_or_stands_in_a_page_or_cannot_be_followed_comes_from_the_portal(
    people: SimpleNamespace, settings: Any
) -> None:
    dag, browser = _dag(people.alice), _browser(people.alice)
    page, api = _addresses(dag)

    def content(answer: Any) -> bytes:
        assert answer.status_code == 200
        return b"".join(answer.streaming_content)

    picture = reverse("web:dag-picture", kwargs={"dag_id": dag.pk, "path": NAME})
    assert content(browser.get(picture)) == LARGE
    assert content(browser.get(_addresses(dag, "small.txt")[0])) == b"small"
    assert browser.head(page, headers={"Range": "bytes=0-1"}).status_code == 206
    # The store has no TLS here.
    assert content(browser.get(api, secure=True)) == LARGE
    of_store = settings.PILOTAGE["BLOBS_S3"] | {"SERVES_PEOPLE": False}
    settings.PILOTAGE = settings.PILOTAGE | {"BLOBS_S3": of_store}
    assert content(browser.get(api)) == LARGE
    close_stores()


@pytest.mark.usefixtures("bucket")
def test_what_the_store_has_lost_is_told_by_the_portal(people: SimpleNamespace) -> None:
    dag = _dag(people.alice)
    current_store().delete([blob_key(dag.workspace.files.get(path=NAME).blob_id)])

    answers = [_browser(people.alice).get(at).status_code for at in _addresses(dag)]

    assert answers == [404, 404]


def test_a_range_of_a_file_comes_from_a_folder_too(people: SimpleNamespace) -> None:
    for at in _addresses(_dag(people.alice)):
        browser = _browser(people.alice)
        part = browser.get(at, headers={"Range": "bytes=299990-"})
        beyond = browser.get(at, headers={"Range": "bytes=300000-"})
        whole = browser.get(at)

        assert (part.status_code, part["Content-Range"]) == (206, "bytes 299990-299999/300000")
        assert b"".join(part.streaming_content) == LARGE[-10:]
        assert part["Content-Disposition"] == whole["Content-Disposition"]
        assert b"".join(whole.streaming_content) == LARGE
        assert (beyond.status_code, beyond["Content-Range"]) == (416, "bytes */300000")
