"""Decisions about claims: which groups and roles a provider tells of, and what they give here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from portal.config.identity_providers import ClaimRules, OidcProvider
from wms.accounting.entering import Entrant
from wms.core.errors import LoginRefused
from wms.core.models import Role

_MOST_NAMES = 2000


def entrant_of(provider: OidcProvider, claims: Mapping[str, Any]) -> Entrant:
    """The person of whom a provider tells, by the rules. Raises LoginRefused."""
    rules, names = provider.rules, names_in(claims, provider.rules)
    if rules.required and not names & set(rules.required):
        raise LoginRefused(
            f"{provider.name} does not say that you are of {' or '.join(rules.required)}, which "
            "this portal asks for."
        )
    email = _text(claims, "email")
    told = claims.get("email_verified")
    # Some providers write the truth as a text.
    is_verified = told is True or told == "true"
    return Entrant(
        issuer=provider.issuer,
        subject=claims["sub"],
        username=_text(claims, "preferred_username") or email.partition("@")[0],
        first_name=_text(claims, "given_name"),
        last_name=_text(claims, "family_name"),
        email=email if is_verified else "",
        role=_role(rules, names),
        default_role=Role(rules.default_role),
        groups=frozenset(group for name, group in rules.groups.items() if name in names),
        managed_groups=frozenset(rules.groups.values()),
        links_by_email=provider.links_by_email,
    )


def names_in(claims: Mapping[str, Any], rules: ClaimRules) -> frozenset[str]:
    """Names of groups and roles that the claims list in the places of the rules."""
    found: set[str] = set()
    for place in rules.claims:
        value = claim_at(claims, place)
        listed = value.split() if isinstance(value, str) else value
        if isinstance(listed, list | tuple):
            found.update(name for name in listed[:_MOST_NAMES] if isinstance(name, str))
    return frozenset(found)


def claim_at(claims: Any, place: str) -> Any:
    """Value at a place: a claim of this name, or one within others where dots part the names.

    Names have dots of their own (`wlcg.groups`), so the longest that is there counts.
    """
    if not isinstance(claims, Mapping):
        return None
    if place in claims:
        return claims[place]
    for end in reversed([at for at, character in enumerate(place) if character == "."]):
        if place[:end] in claims:
            return claim_at(claims[place[:end]], place[end + 1 :])
    return None


def _role(rules: ClaimRules, names: frozenset[str]) -> Role | None:
    """The highest role that the claims give, else the default; None where they decide of none."""
    if not rules.roles:
        return None
    order = list(Role.values)
    given = [role for name, role in rules.roles.items() if name in names]
    return Role(max([*given, rules.default_role], key=order.index))


def _text(claims: Mapping[str, Any], name: str) -> str:
    value = claims.get(name)
    clean = value.strip() if isinstance(value, str) else ""
    return clean[:150] if clean.isprintable() else ""
