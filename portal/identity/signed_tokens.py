"""Check of signed tokens (JWT): by the keys of their issuer, for whom, and when they are good.

Only asymmetric algorithms are known here, and the key decides which of them fit. Who holds a good
signature is told what else is wrong; what is malformed is told as such, and logged by nobody.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

import jwt

from portal.identity.issuers import Issuer, issuer_of
from wms.core.errors import (
    AudienceWrong,
    IssuerForeign,
    TokenExpired,
    TokenTooEarly,
    TokenUnreadable,
)

#: RSA, RSA-PSS, elliptic curves and Edwards curves; never `none` and never a shared secret.
ALGORITHMS = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)
MOST_CHARACTERS = 8192
#: Clocks of two hosts may differ by so much.
LEEWAY_S = 60
_LEAST_RSA_BITS = 2048
#: Beside those of the package what its parsers let through: depth, types, unbounded numbers.
_FAULTS = (jwt.PyJWTError, RecursionError, OverflowError, TypeError, ValueError, OSError)


def claims_of(
    text: str, *, issuer: str, audience: Collection[str], now: datetime
) -> Mapping[str, Any]:
    """Claims of a token that is good. Raises NotAuthenticated or IssuerAway."""
    header = _header(text)
    algorithm = header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise TokenUnreadable(f"The token is signed by {str(algorithm)[:20]}, which is not taken.")
    key = _key(header, algorithm, issuer, now)
    try:
        claims: dict[str, Any] = jwt.decode(
            text,
            key,
            algorithms=[algorithm],
            audience=list(audience),
            issuer=issuer,
            leeway=LEEWAY_S,
            options={"require": ["iss", "sub", "exp", "aud"]},
        )
        # Such a time can be kept, too.
        datetime.fromtimestamp(float(claims["exp"]), UTC)
        return claims
    except jwt.ExpiredSignatureError:
        raise TokenExpired(_told(text, "exp", "The token has expired at", now)) from None
    except jwt.ImmatureSignatureError:
        raise TokenTooEarly(_too_early(text, now)) from None
    except (jwt.InvalidAudienceError, jwt.MissingRequiredClaimError) as error:
        raise _audience_error(error, audience) from None
    except jwt.InvalidIssuerError:
        raise IssuerForeign(f"The token is not of {issuer}.") from None
    except _FAULTS as error:
        raise TokenUnreadable(f"The token is not good: {_words(error)}.") from None


def unchecked_issuer(text: str) -> str:
    """Issuer that a token names; nothing of it is believed yet. Raises TokenUnreadable."""
    _header(text)
    found = _unchecked(text).get("iss")
    if not isinstance(found, str):
        raise TokenUnreadable("The token names no issuer.")
    return found


def _header(text: str) -> dict[str, Any]:
    if len(text) > MOST_CHARACTERS:
        raise TokenUnreadable(f"The token has more than {MOST_CHARACTERS} characters.")
    try:
        header = jwt.get_unverified_header(text)
    except _FAULTS as error:
        raise TokenUnreadable(f"The token cannot be read: {_words(error)}.") from None
    # Extensions that have to be understood are not.
    if "crit" in header:
        raise TokenUnreadable("The token needs extensions that the portal does not know.")
    return header


def _unchecked(text: str) -> dict[str, Any]:
    try:
        return jwt.decode(text, options={"verify_signature": False})
    except _FAULTS as error:
        raise TokenUnreadable(f"The token cannot be read: {_words(error)}.") from None


def _key(header: Mapping[str, Any], algorithm: str, issuer: str, now: datetime) -> Any:
    """Key of the issuer that fits the header; its keys are read anew where none does."""
    for unknown_key in (False, True):
        found = _fitting(issuer_of(issuer, now=now, unknown_key=unknown_key), header, algorithm)
        if found is not None:
            return found
    raise TokenUnreadable("The token is signed by a key that its issuer does not publish.")


def _fitting(issuer: Issuer, header: Mapping[str, Any], algorithm: str) -> Any:
    kid = header.get("kid")
    for each in issuer.keys:
        # Without a name in the header the only key counts, as its issuer has no other.
        is_named = each.get("kid") == kid if kid is not None else len(issuer.keys) == 1
        if not is_named or each.get("use", "sig") != "sig":
            continue
        if each.get("alg", algorithm) != algorithm:
            continue
        try:
            key = jwt.PyJWK(each, algorithm=algorithm).key
        except (jwt.PyJWTError, ValueError, TypeError):
            continue
        if getattr(key, "key_size", _LEAST_RSA_BITS) >= _LEAST_RSA_BITS or each["kty"] != "RSA":
            return key
    return None


def _words(error: Exception) -> str:
    return str(error)[:200].rstrip(".") if isinstance(error, jwt.PyJWTError) else "it is malformed"


def _audience_error(error: Exception, audience: Collection[str]) -> AudienceWrong | TokenUnreadable:
    missing = getattr(error, "claim", "aud")
    if missing != "aud":
        return TokenUnreadable(f"The token has no {missing}.")
    return AudienceWrong(f"The token is not for this portal: its `aud` has to be {_any(audience)}.")


def _any(names: Collection[str]) -> str:
    return " or ".join(sorted(names))


def _too_early(text: str, now: datetime) -> str:
    claims = _unchecked(text)
    name = "nbf" if claims.get("nbf", 0) > now.timestamp() + LEEWAY_S else "iat"
    return _told(text, name, "The token is good from", now)


def _told(text: str, claim: str, words: str, now: datetime) -> str:
    """A time as a token tells it, and the time here: one of two clocks may be wrong."""
    try:
        moment = f"{datetime.fromtimestamp(float(_unchecked(text)[claim]), UTC):%Y-%m-%d %H:%M:%S}"
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        moment = "a time that is none,"
    return (
        f"{words} {moment} UTC; by the portal's clock it is "
        f"{now.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC."
    )
