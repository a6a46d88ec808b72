"""Settings of identity that are wrong stop the start, told with their place and without secrets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from portal.config.identity_providers import ClaimRules, oidc_providers, token_issuers
from portal.identity.claims import claim_at, names_in

GOOD: dict[str, Any] = {"issuer": "https://iam.example.org/", "client_id": "portal"}


def test_a_secret_comes_from_a_file_or_a_variable_and_is_shown_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text("of a file\n")
    monkeypatch.setenv("IAM_SECRET", "of a variable")

    by_file = {**GOOD, "client_secret_file": str(tmp_path / "secret")}
    by_variable = {**GOOD, "client_secret_env": "IAM_SECRET"}
    found = oidc_providers(json.dumps({"a": by_file, "b": by_variable, "c": GOOD}))

    assert [each.client_secret for each in found.values()] == ["of a file", "of a variable", ""]
    assert "of a" not in repr(found)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"issuer": "http://iam.example.org/"}, "iam issuer"),
        ({"issuer": None}, "iam issuer"),
        ({"client_id": 7}, "iam client_id"),
        ({"roles": {"/atlas": "king"}}, "iam roles"),
        ({"default_role": "admin"}, "iam default_role"),
        ({"scopes": ["profile"]}, "iam scopes"),
        ({"claims": "groups"}, "iam claims"),
        ({"client_secret_env": "NOT_SET"}, "iam client_secret_env"),
        ({"client_secret": "in the open"}, "iam client_secret"),
        ({"link_by_email": "yes"}, "iam link_by_email"),
    ],
)
def test_a_member_that_is_wrong_is_named(changed: dict[str, Any], told: str) -> None:
    with pytest.raises(ImproperlyConfigured) as error:
        oidc_providers(json.dumps({"iam": {**GOOD, **changed}}))

    assert f"PILOTAGE_OIDC_PROVIDERS: {told} " in str(error.value)
    assert "in the open" not in str(error.value)


@pytest.mark.parametrize("text", ["[]", "{", '{"A b": {}}', '{"iam": []}'])
def test_what_is_no_object_of_providers_is_refused(text: str) -> None:
    with pytest.raises(ImproperlyConfigured):
        oidc_providers(text)


@pytest.mark.parametrize(
    "issuers",
    [
        {"http://wlcg.example.org": {}},
        {"https://wlcg.example.org": {"audience": []}},
        {"https://wlcg.example.org": {"scopes": {"compute.read": ["all"]}}},
        {"https://wlcg.example.org": {"base_path": "atlas"}},
        {"https://wlcg.example.org": {"who": "knows"}},
    ],
)
def test_an_issuer_that_is_wrong_is_refused(issuers: dict[str, Any]) -> None:
    with pytest.raises(ImproperlyConfigured):
        token_issuers(json.dumps(issuers), audience="https://pilotage.example.org")


def test_names_are_found_in_claims_with_dots_and_within_others() -> None:
    claims = {
        "wlcg.groups": ["/atlas", 7],
        "realm_access": {"roles": ["shift"]},
        "resource_access": {"my.client": {"roles": ["user"]}},
        "entitlements": "one two",
    }
    places = (
        "wlcg.groups",
        "realm_access.roles",
        "resource_access.my.client.roles",
        "entitlements",
    )

    assert names_in(claims, ClaimRules(claims=places)) == {"/atlas", "shift", "user", "one", "two"}
    assert claim_at(claims, "realm_access.nothing") is None
    assert claim_at(claims, "wlcg.groups.deeper") is None
    assert names_in({"groups": {"a": 1}}, ClaimRules()) == frozenset()
