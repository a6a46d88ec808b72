"""Tokens in addresses, for programs and screens that know an address only: `?token=plt_...`.

Addresses stand in logs and histories: a token that could change anything does not belong there.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from wms.accounting.walls import told_of
from wms.core.errors import NotPermitted
from wms.core.models import ApiToken, Scope, TokenKind
from wms.core.tokens import authenticated_token

#: Parameter of addresses that may have a token in them.
PARAMETER = "token"


def token_in_address(
    parameters: Mapping[str, str],
    *,
    now: datetime,
    address: str | None,
    kind: TokenKind = TokenKind.API,
) -> ApiToken | None:
    """Token of this kind of an address, with its user; None where there is none. One query.

    Raises as `authenticated_token`, and NotPermitted for one that may do more than read.
    """
    text = parameters.get(PARAMETER, "").replace("\0", "")
    if not text:
        return None
    token = authenticated_token(text, now=now, told=told_of("user"), address=address, kind=kind)
    if kind == TokenKind.API and set(token.scopes) != {Scope.READ}:
        raise NotPermitted(
            "A token in an address must have the scope read alone: make one for this purpose."
        )
    return token
