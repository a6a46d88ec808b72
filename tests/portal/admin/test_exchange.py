"""Sites as YAML on the pages of the administration: preview, confirmation, refusals."""

from __future__ import annotations

from typing import Any

from django.test import Client

from tests import factories
from wms.core.models import AuditEntry
from wms.sites.models import Site

ADDRESS = "/admin/sites/site/import/"
TEXT = "format: pilotage-sites\nversion: 1\nsites:\n- name: UW\n  max_matches: 5\n"


def _previewed(client: Client, text: str = TEXT) -> dict[str, Any]:
    """What the form under the preview sends."""
    form = client.post(ADDRESS, {"text": text}).context["confirm"]
    return {**form.initial, "reason": "as ordered", "confirm": "yes"}


def test_what_was_previewed_is_stored_when_it_is_confirmed(olga: Client) -> None:
    factories.site("UW")

    body = _previewed(olga)
    assert Site.objects.get().max_matches == 100
    answer = olga.post(ADDRESS, body)

    assert answer.status_code == 302
    assert Site.objects.get().max_matches == 5
    assert {each.reason for each in AuditEntry.objects.filter(actor="olga")} == {"as ordered"}


def test_a_confirmation_that_cannot_be_read_says_why_and_keeps_the_document(olga: Client) -> None:
    factories.site("UW")

    answer = olga.post(ADDRESS, _previewed(olga) | {"reason": "r" * 2001})

    assert answer.status_code == 400
    assert "at most 2000 characters" in answer.content.decode()
    assert answer.context["form"].initial["text"] == TEXT
    assert Site.objects.get().max_matches == 100


def test_a_document_that_changed_its_meaning_shows_what_it_would_do_now(olga: Client) -> None:
    factories.site("UW")
    body = _previewed(olga)
    Site.objects.update(max_matches=7)

    answer = olga.post(ADDRESS, body)

    assert answer.status_code == 409
    [step] = answer.context["plan"].steps
    assert [(each.old, each.new) for each in step.changes] == [(7, 5)]
    assert Site.objects.get().max_matches == 7


def test_a_document_without_sites_is_not_called_stored_already(olga: Client) -> None:
    page = olga.post(
        ADDRESS, {"text": TEXT.partition("sites:")[0] + "sites: []\n"}
    ).content.decode()

    assert "names no site" in page
    assert "so already: there" not in page
