"""Storages in the administration and on their pages."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse

from tests import factories
from wms.core.models import AuditEntry
from wms.placement.storages.models import Storage


@pytest.fixture
def olga(db: None) -> SimpleNamespace:
    people, client = factories.people(), Client()
    client.force_login(people.olga)
    return SimpleNamespace(client=client, people=people)


def _add(client: Client, **values: object):
    data = {"name": "pool", "endpoints": "s3://pool/\r\nhttps://pool.example/", "is_enabled": "on",
            **values}  # fmt: skip
    return client.post(reverse("admin:placement_storage_add"), data)


def test_a_storage_is_made_with_its_sites_and_a_space_with_a_unit(olga: SimpleNamespace) -> None:
    site = factories.site("UW")

    answer = _add(olga.client, sites=[site.pk], space_bytes="2 GB", max_transfers="4")

    assert answer.status_code == 302
    made = Storage.objects.get()
    assert (made.space_bytes, made.max_transfers) == (2 * 2**30, 4)
    assert made.endpoints.splitlines() == ["s3://pool/", "https://pool.example/"]
    assert list(made.sites.all()) == [site]
    assert AuditEntry.objects.get(action="create storage").actor == "olga"


@pytest.mark.parametrize(
    "wrong",
    [
        {"endpoints": "nonsense"},
        {"space_bytes": "much"},
        {"name": "a b"},
        {"transfer_requirements": "Owner = 1"},
    ],
)
def test_what_is_wrong_is_told_and_nothing_stored(
    olga: SimpleNamespace, wrong: dict[str, str]
) -> None:
    answer = _add(olga.client, **wrong)

    assert answer.status_code == 200
    assert set(answer.context["adminform"].form.errors) == set(wrong)
    assert not Storage.objects.exists()


def test_the_pages_show_what_is_configured(olga: SimpleNamespace) -> None:
    _add(
        olga.client,
        space_bytes="1 TB",
        note="tape behind it",
        transfer_requirements="SizeBytes > 7",
    )

    assert b"pool" in olga.client.get(reverse("web:storages")).content
    page = olga.client.get(reverse("web:storage", args=["pool"])).content.decode()
    assert "tape behind it" in page
    assert "SizeBytes &gt; 7" in page
    assert "s3://pool/" in page
