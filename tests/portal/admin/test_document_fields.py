"""Help at the fields of the administration: each has one, forms and documents say the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from portal.admin.admin_site import site as administration
from portal.admin.document_fields import FORMS, fields_of, render
from portal.admin.examples import EXAMPLES
from tests import factories
from wms.dags.models import MatchmakingPolicy
from wms.dags.services.policies import check_policy
from wms.sites.ads import check_site
from wms.sites.models import Site

DOCUMENT = Path(settings.BASE_DIR, "docs/reference/fields.md")
REWRITE = "Run with UPDATE_FIELDS=1 to rewrite docs/reference/fields.md, and look at its diff."


def test_the_document_says_what_the_forms_say() -> None:
    if os.environ.get("UPDATE_FIELDS") == "1":
        DOCUMENT.write_text(render(), encoding="utf-8")

    assert DOCUMENT.read_text(encoding="utf-8") == render(), REWRITE


def test_every_field_of_what_is_configured_has_help() -> None:
    missing = {
        f"{form.__name__}.{name}"
        for form in FORMS
        for name, _, help_text in fields_of(form)
        if not help_text
    }

    assert missing == set()


def test_every_form_of_what_is_configured_is_in_the_document() -> None:
    known = {admin.form for admin in administration._registry.values()}

    # Accounts, identities, tokens and the trail are no configuration of the system.
    names = {form.__name__ for form in known - set(FORMS)}
    assert names == {"AccountForm", "IdentityForm", "ServiceAccountForm", "TokenForm", "ModelForm"}


@pytest.mark.parametrize("name", ["requirements", "rank", "attributes", "environment"])
def test_the_examples_of_a_site_can_be_stored(db: None, name: str) -> None:
    for example in EXAMPLES[name]:
        check_site(Site(name="UW", **{name: example.text}))


def test_the_examples_of_the_policy_can_be_stored(db: None) -> None:
    for example in EXAMPLES["rematch_expression"]:
        check_policy(MatchmakingPolicy(pk=1, rematch_expression=example.text))


def test_a_form_shows_the_examples_beside_the_field(olga: Client) -> None:
    site = factories.site("UW")

    page = olga.get(f"/admin/sites/site/{site.pk}/change/").content.decode()

    assert "<code>CurMatches &lt; MaxMatches</code>" in page
