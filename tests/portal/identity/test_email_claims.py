"""An address of mail counts as verified only where the provider says so of this address."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.utils import timezone

from portal.config.identity_providers import oidc_providers
from portal.identity.claims import entrant_of
from portal.identity.id_tokens import merged
from tests import factories
from wms.accounting.entering import Entrant, enter
from wms.core.actors import Actor
from wms.core.identities import link_identity
from wms.core.identity_models import Identity
from wms.core.models import User

ISSUER = "https://iam.example.org/"
PROVIDER = oidc_providers(json.dumps({"iam": {"issuer": ISSUER, "client_id": "portal"}}))["iam"]
OURS = "rosa@example.org"


@pytest.mark.parametrize("told", [True, "true"])
def test_a_verified_address_is_taken(told: object) -> None:
    claims = {"sub": "1", "email": OURS, "email_verified": told}

    assert entrant_of(PROVIDER, claims).email == OURS
    assert not PROVIDER.links_by_email


@pytest.mark.parametrize("told", [False, "false", "True", 1, "1", [True], None, "absent"])
def test_an_address_of_which_nothing_else_is_said_is_none(told: object) -> None:
    claims: dict[str, Any] = {"sub": "1", "email": OURS, "email_verified": told}
    if told == "absent":
        del claims["email_verified"]

    assert entrant_of(PROVIDER, claims).email == ""


@pytest.mark.parametrize(
    ("userinfo", "email"),
    [
        ({"email": OURS}, ""),
        ({"email": OURS, "email_verified": False}, ""),
        ({"email": OURS, "email_verified": True}, OURS),
        ({"email": "of-id@example.org"}, "of-id@example.org"),
        ({"email_verified": False}, "of-id@example.org"),
        ({}, "of-id@example.org"),
    ],
)
def test_the_word_of_the_id_token_is_not_of_the_address_of_userinfo(
    userinfo: dict[str, Any], email: str
) -> None:
    claims = {"sub": "1", "email": "of-id@example.org", "email_verified": True}

    assert entrant_of(PROVIDER, merged(claims, {"sub": "1", **userinfo})).email == email


@pytest.mark.django_db
def test_an_address_opens_no_account_that_the_provider_knows_as_somebody_else() -> None:
    rosa = factories.person("rosa")
    User.objects.filter(pk=rosa.pk).update(email=OURS)
    link_identity(rosa, ISSUER, "who left", actor=Actor.system("tests"))

    person = Entrant(ISSUER, "who came", "rosa", email=OURS, links_by_email=True)
    enter(person, now=timezone.now())

    assert Identity.objects.get(subject="who came").user != rosa
