"""Credentials in the administration, in the API and on the overview: set, and never shown."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests.portal.furnishing import credentials
from wms.core.models import AuditEntry
from wms.pilots.credential_models import Credential
from wms.pilots.credentials.sealing import unseal
from wms.sites.models import Site

ADD = "/admin/pilots/credential/add/"
API = "/api/v1/credentials/"
SECRET = "e30.eyJzdWIiOiJsc3N0In0.c2VjcmV0"


@pytest.fixture
def site(db: None) -> Site:
    credentials(1)
    Credential.objects.all().delete()
    return Site.objects.get(name="Pool0of1")


def test_a_secret_that_is_typed_in_is_shown_on_no_page(olga: Client, site: Site) -> None:
    typed = {"name": "t", "site": site.pk, "kind": "htcondor-token", "secret": SECRET}
    refused = olga.post(ADD, typed | {"account": "x"})
    assert set(refused.context["adminform"].form.errors) == {"account"}

    assert olga.post(ADD, typed | {"is_enabled": "on"}).status_code == 302

    row = Credential.objects.get()
    assert (unseal(row.sealed), row.subject) == (SECRET, "lsst")
    pages = [refused.content.decode()]
    for address in ("", f"{row.pk}/change/", f"{row.pk}/history/", f"{row.pk}/delete/"):
        answer = olga.get(f"/admin/pilots/credential/{address}")
        assert answer.status_code == 200
        pages.append(answer.content.decode())
    assert row.fingerprint in pages[2]
    pages += [olga.get(API).content.decode(), olga.get(f"{API}{row.pk}/").content.decode()]
    pages += map(str, AuditEntry.objects.values_list("facts", "target", "reason"))
    assert not any(part in page for page in pages for part in (SECRET, row.sealed))


def test_the_api_sets_renews_and_deletes_one_and_never_tells_it(olga: Client, site: Site) -> None:
    body: dict[str, Any] = {"name": "t", "site": site.name, "kind": "htcondor-token"}
    missing = olga.post(API, body, content_type="application/json")
    assert missing.status_code == 400
    assert [each["field"] for each in missing.json()["findings"]] == ["secret"]

    made = olga.post(API, body | {"secret": SECRET}, content_type="application/json")
    assert made.status_code == 201, made.content
    assert "secret" not in made.json()
    address = f"{API}{made.json()['id']}/"
    kept = olga.put(address, body | {"is_enabled": False}, content_type="application/json")
    assert (kept.status_code, kept.json()["is_enabled"]) == (200, False)
    assert unseal(Credential.objects.get().sealed) == SECRET

    assert olga.delete(address).status_code == 204
    assert not Credential.objects.exists()
    assert AuditEntry.objects.filter(target="credential t").count() == 3


def test_the_end_of_a_credential_is_told_on_the_overview(olga: Client, site: Site) -> None:
    row = Credential(name="t", site=site, kind="htcondor-token", sealed="x")
    row.valid_until = timezone.now() + timedelta(hours=1)
    row.expires_at, row.replaced_at = row.valid_until, timezone.now() - timedelta(hours=9)
    row.save()

    page = olga.get("/").content.decode()

    assert f"needy-credential-{row.pk}" in page
