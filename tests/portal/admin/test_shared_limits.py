"""Limits that DAGs share, in the administration."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse

from tests import factories
from wms.core.models import AuditEntry
from wms.dags.models import SharedLimit


@pytest.fixture
def olga(db: None) -> SimpleNamespace:
    people, client = factories.people(), Client()
    client.force_login(people.olga)
    return SimpleNamespace(client=client, people=people)


def _add(client: Client, **values: object):
    data = {"owner": "", "site": "", "category": "", "max_jobs": "5", "note": "", **values}
    return client.post(reverse("admin:dags_sharedlimit_add"), data)


def test_an_operator_sets_a_limit_and_it_is_audited(olga: SimpleNamespace) -> None:
    answer = _add(olga.client, owner=olga.people.alice.pk, category="heavy")

    assert answer.status_code == 302
    limit = SharedLimit.objects.get()
    assert (limit.owner.username, limit.category, limit.max_jobs) == ("alice", "heavy", 5)
    entry = AuditEntry.objects.get(action="create shared limit")
    assert (entry.actor, entry.facts["max_jobs"]) == ("olga", [None, 5])


def test_a_second_limit_of_a_kind_is_refused_at_the_form(olga: SimpleNamespace) -> None:
    _add(olga.client)

    answer = _add(olga.client, max_jobs="6")

    assert answer.status_code == 200
    assert "already exists" in answer.content.decode()
    assert SharedLimit.objects.get().max_jobs == 5


def test_the_list_tells_what_is_submitted_now(olga: SimpleNamespace) -> None:
    factories.running_dag(olga.people.alice, node_count=3)
    _add(olga.client, owner=olga.people.alice.pk)

    page = olga.client.get(reverse("admin:dags_sharedlimit_changelist")).content.decode()

    assert '<td class="field-submitted">3</td>' in page


def test_a_deleted_limit_is_audited(olga: SimpleNamespace) -> None:
    _add(olga.client)
    address = reverse("admin:dags_sharedlimit_delete", args=[SharedLimit.objects.get().pk])

    olga.client.post(address, {"post": "yes"})

    assert not SharedLimit.objects.exists()
    assert AuditEntry.objects.filter(action="delete shared limit", actor="olga").exists()
