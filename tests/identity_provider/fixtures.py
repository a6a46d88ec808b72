"""Fixtures: a running identity provider, and settings by which the portal knows it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from portal.config.identity_providers import oidc_providers, token_issuers
from tests.identity_provider.server import Provider, identity_provider

PORTAL = "https://pilotage.example.org"
CALLBACK = f"{PORTAL}/login/openid/iam/callback/"


@pytest.fixture(scope="session")
def running_provider(processes: None) -> Iterator[Provider]:
    """One provider for all tests of a process."""
    with identity_provider(CALLBACK) as provider:
        yield provider


@pytest.fixture
def provider(running_provider: Provider, settings: Any, monkeypatch: Any) -> Provider:
    """The provider, by which people log in and whose tokens are accepted; its own people only."""
    monkeypatch.setenv("IAM_SECRET", "portal-secret")
    settings.PUBLIC_URL = PORTAL
    settings.OIDC_PROVIDERS = oidc_providers(json.dumps({"iam": described(running_provider)}))
    issuers = json.dumps({running_provider.issuer: {}})
    settings.TOKEN_ISSUERS = token_issuers(issuers, audience=PORTAL)
    return running_provider


def described(provider: Provider, **changed: Any) -> dict[str, Any]:
    """The provider as an operator describes it."""
    return {
        "name": "Example IAM", "issuer": provider.issuer, "client_id": "portal",
        "client_secret_env": "IAM_SECRET", "claims": ["wlcg.groups", "realm_access.roles"],
        "roles": {"/atlas/production": "operator", "/atlas/shift": "shifter"},
        "groups": {"/atlas": "atlas"}, "device_client_id": "client", **changed,
    }  # fmt: skip
