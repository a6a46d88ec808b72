"""Invalid addresses and forms are refused with the field, on every page and in the API."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests import factories
from wms.failures import grouping
from wms.failures.models import FailureGroup


@pytest.fixture
def people(db: None) -> SimpleNamespace:
    return factories.people()


@pytest.fixture
def alice(people: SimpleNamespace, client: Client) -> Client:
    client.force_login(people.alice)
    return client


@pytest.mark.parametrize("query", ["tab=graph&q", "tab=nodes&q", "tab=timeline&q", "tab=files&q"])
def test_a_null_character_is_refused_by_the_tabs_of_a_dag(
    alice: Client, people: SimpleNamespace, query: str
) -> None:
    dag = factories.running_dag(people.alice)

    answer = alice.get(reverse("web:dag", args=[dag.pk]) + f"?{query}=a%00b")

    assert answer.status_code == 400
    assert "Null characters" in answer.content.decode()


def test_a_null_character_is_refused_by_the_page_of_a_failure(
    alice: Client, people: SimpleNamespace
) -> None:
    factories.job(people.alice)
    factories.run_job(factories.pilot(), exit_code=1)
    grouping.run_cycle(timezone.now())
    group = FailureGroup.objects.get()

    assert alice.get(reverse("web:error", args=[group.pk]) + "?owner=%00").status_code == 400


@pytest.mark.parametrize("value", ["%25", "%25s", "100%25 done", "%25(value)s"])
def test_a_per_cent_sign_in_a_faulty_filter_is_told_as_it_is(alice: Client, value: str) -> None:
    answer = alice.get(reverse("api:jobs") + f"?state={value}")

    assert answer.status_code == 400
    (finding,) = answer.json()["findings"]
    assert finding["field"] == "state"
    assert value.replace("%25", "%") in finding["message"]
