"""A program that has the answer already is told so, without it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.test import Client
from rest_framework.test import APIClient

from tests import factories
from wms.dags.models import Dag

URL = "/api/v1/dags/"


@pytest.mark.parametrize("is_list", [False, True])
def test_an_answer_is_sent_again_only_when_it_has_changed(
    alice: APIClient, people: SimpleNamespace, is_list: bool
) -> None:
    dag = factories.dag(people.alice)
    address = URL if is_list else f"{URL}{dag.pk}/"
    tag = alice.get(address)["ETag"]

    same = alice.get(address, headers={"If-None-Match": tag})
    Dag.objects.filter(pk=dag.pk).update(name="renamed")
    other = alice.get(address, headers={"If-None-Match": tag})

    assert (same.status_code, same.content, same["ETag"]) == (304, b"", tag)
    assert (other.status_code, other["ETag"] != tag) == (200, True)
    assert other["Cache-Control"] == "private, no-cache"


def test_a_browser_keeps_nothing(client: Client, people: SimpleNamespace) -> None:
    client.force_login(people.alice)

    assert client.get(URL)["Cache-Control"] == "private, no-store"


@pytest.mark.parametrize("address", [f"{URL}999/", "/api/v1/events/"])
def test_refusals_and_events_have_no_tag(alice: APIClient, address: str) -> None:
    assert "ETag" not in alice.get(address)
