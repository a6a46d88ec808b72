"""Bearer tokens of other issuers, in the form of the WLCG profile or of SciTokens.

They are checked without asking anybody, by the keys that the issuer published last. Whom a token
names is an account that is linked to the subject, or one that the settings name for it; what the
token may be used for are its scopes, of what the account may.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django.conf import settings

from portal.config.identity_providers import TokenIssuer
from portal.identity.foreign_tokens import ForeignToken
from portal.identity.signed_tokens import claims_of, unchecked_issuer
from wms.core.errors import InvalidInput, IssuerForeign, TokenUnreadable
from wms.core.identities import account_of, checked_subject
from wms.core.models import Scope

_CANCEL = "cancel"
_WLCG = re.compile(r"1\.[0-9]+")
_SCITOKENS = frozenset({"scitoken:2.0", "scitokens:2.0"})


def accepted(text: str, *, now: datetime, address: str | None = None) -> ForeignToken:
    """The token, if it is good. Raises NotAuthenticated or IssuerAway."""
    named = unchecked_issuer(text)
    issuer: TokenIssuer | None = settings.TOKEN_ISSUERS.get(named)
    if issuer is None:
        raise IssuerForeign(f"The portal takes no tokens of {named[:200]}.")
    claims = claims_of(text, issuer=issuer.issuer, audience=issuer.audience, now=now)
    _check_profile(claims)
    subject = _subject(claims)
    granted = granted_by(claims, issuer)
    user = account_of(
        issuer.issuer, subject, username=issuer.subjects.get(subject, ""), now=now, address=address
    )
    return ForeignToken(
        user=user,
        prefix=f"of {issuer.issuer}",
        scopes=tuple(scope for scope in Scope.values if scope in granted),
        may_cancel=_CANCEL in granted,
        expires_at=datetime.fromtimestamp(float(claims["exp"]), UTC),
        holder=f"{issuer.issuer} {subject}",
    )


def _subject(claims: Mapping[str, Any]) -> str:
    try:
        return checked_subject(claims["sub"])
    except InvalidInput as error:
        raise TokenUnreadable(f"The token's `sub` cannot be taken: {error}.") from None


def granted_by(claims: Mapping[str, Any], issuer: TokenIssuer) -> set[str]:
    """Scopes here for which a token's scopes stand; those with a path count at or above ours."""
    told = claims.get("scope", "")
    if not isinstance(told, str):
        raise TokenUnreadable("The token's `scope` is no text.")
    found: set[str] = set()
    for each in told.split():
        if each in issuer.scopes:
            found.update(issuer.scopes[each])
            continue
        name, _, path = each.partition(":")
        if name in issuer.scopes and path and _is_within(issuer.base_path, path):
            found.update(issuer.scopes[name])
    return found


def _is_within(inner: str, outer: str) -> bool:
    """Whether a path is another one or below it; one with `..` is nowhere."""
    steps = outer.strip("/").split("/") if outer.strip("/") else []
    if not outer.startswith("/") or any(step in {"", ".", ".."} for step in steps):
        return False
    return inner.strip("/").split("/")[: len(steps)] == steps


def _check_profile(claims: Mapping[str, Any]) -> None:
    """Raise TokenUnreadable for a token of no profile: its scopes would mean something else."""
    wlcg, scitokens = claims.get("wlcg.ver"), claims.get("ver")
    is_wlcg = isinstance(wlcg, str) and _WLCG.fullmatch(wlcg) is not None
    if not is_wlcg and scitokens not in _SCITOKENS:
        raise TokenUnreadable(
            "The token has neither `wlcg.ver` 1.x nor `ver` scitokens:2.0: it is no bearer token."
        )
