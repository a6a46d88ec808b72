"""ID tokens of providers, by which people log in: checked, and completed by userinfo."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import jwt
import requests

from portal.config.identity_providers import OidcProvider
from portal.identity.issuers import Issuer, Malformed, get_json
from portal.identity.signed_tokens import claims_of
from wms.core.errors import IssuerAway, LoginFailed, TokenExpired, TokenUnreadable

#: Of an ID token that comes by way of a client: so long it proves that somebody is there.
_PROOF_FOR = timedelta(minutes=10)


def id_claims(
    provider: OidcProvider, text: str, *, client_id: str, now: datetime, nonce: str | None = None
) -> Mapping[str, Any]:
    """Claims of an ID token that was made for `client_id`, and with `nonce` where one was sent.

    Raises NotAuthenticated or IssuerAway.
    """
    claims = claims_of(text, issuer=provider.issuer, audience=[client_id], now=now)
    _check_kind(text, claims)
    if claims.get("azp", client_id) != client_id:
        raise TokenUnreadable("The ID token was made for another client.")
    told = claims.get("nonce")
    if nonce is not None and not (isinstance(told, str) and hmac.compare_digest(told, nonce)):
        raise TokenUnreadable("The ID token is not of this login: its nonce is another one.")
    return claims


def _check_kind(text: str, claims: Mapping[str, Any]) -> None:
    """Raise TokenUnreadable for an access token, which others have whom the person gave it.

    Those say so in their header (RFC 9068), in `typ` (Keycloak), or by a scope.
    """
    header_type = str(jwt.get_unverified_header(text).get("typ", "")).lower()
    is_access = header_type.endswith("at+jwt") or claims.get("typ") == "Bearer"
    if is_access or "scope" in claims or "scp" in claims:
        raise TokenUnreadable("This is an access token, and no ID token.")


def check_recent(claims: Mapping[str, Any], *, now: datetime) -> None:
    """Raise TokenExpired for an ID token that was made too long ago to prove who is there now."""
    made = claims.get("iat")
    if not isinstance(made, int | float) or now.timestamp() - made > _PROOF_FOR.total_seconds():
        raise TokenExpired("The ID token was made more than ten minutes ago: get a new one.")


def with_userinfo(
    provider: OidcProvider, issuer: Issuer, claims: Mapping[str, Any], access_token: str
) -> Mapping[str, Any]:
    """The claims, with what the provider tells of the person beside its token, if it does.

    Raises IssuerAway or LoginFailed.
    """
    if not provider.asks_userinfo or not issuer.configuration.get("userinfo_endpoint"):
        return claims
    address = issuer.endpoint("userinfo_endpoint")
    try:
        told = get_json(address, headers={"Authorization": f"Bearer {access_token}"})
    except requests.HTTPError as error:
        status = error.response.status_code
        raise LoginFailed(f"{provider.name} tells nothing of you: status {status}.") from None
    except requests.RequestException:
        raise IssuerAway(f"{provider.name} does not answer: try again in a moment.") from None
    except Malformed as error:
        raise LoginFailed(f"{provider.name} tells nothing of you: {error}.") from None
    if told.get("sub") != claims["sub"]:
        raise LoginFailed(f"{provider.name} tells of somebody else than its token.")
    return merged(claims, told)


def merged(claims: Mapping[str, Any], told: Mapping[str, Any]) -> Mapping[str, Any]:
    """Claims with those of userinfo, whose `email_verified` is of the address that is left."""
    merged = {**claims, **told}
    email = merged.get("email")
    said = [each for each in (told, claims) if each.get("email") == email]
    merged["email_verified"] = next(
        (each["email_verified"] for each in said if "email_verified" in each), False
    )
    return merged
