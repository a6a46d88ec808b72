"""Issuers that the settings name: by which people log in, and whose signed tokens are accepted."""

from __future__ import annotations

from django.conf import settings

from portal.config.identity_providers import OidcProvider


def provider_of(issuer: str) -> OidcProvider | None:
    """The provider by which people log in with identities of this issuer."""
    providers: list[OidcProvider] = list(settings.OIDC_PROVIDERS.values())
    return next((each for each in providers if each.issuer == issuer), None)


def login_issuers() -> frozenset[str]:
    """Issuers by whose identities people log in."""
    return frozenset(each.issuer for each in settings.OIDC_PROVIDERS.values())


def known_issuers() -> list[str]:
    """All issuers whose identities are good for something here, in their order."""
    return sorted({*login_issuers(), *settings.TOKEN_ISSUERS})
