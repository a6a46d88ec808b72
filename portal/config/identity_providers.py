"""Settings of identity: providers by which people log in, and issuers whose tokens are accepted.

Both are JSON objects, of one's own or of the file that the variable with `_FILE` names. What is
wrong with them stops the start, with its place; what is secret is never told.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

_PROVIDERS, _ISSUERS = "PILOTAGE_OIDC_PROVIDERS", "PILOTAGE_TOKEN_ISSUERS"
_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_LONGEST_ISSUER = 500
#: Roles that no claim has to give.
_DEFAULT_ROLES = ("viewer", "user")
_ROLES = (*_DEFAULT_ROLES, "site_admin", "shifter", "operator", "admin")
#: The portal's scopes, and `cancel`, which is the part of `control` that ends DAGs and jobs.
_SCOPES = ("read", "submit", "control", "site", "admin", "cancel")
#: What the scopes of the WLCG profile are here; those for storages mean nothing to a portal.
WLCG_SCOPES: Mapping[str, tuple[str, ...]] = {
    "compute.read": ("read",),
    "compute.create": ("submit",),
    "compute.modify": ("control",),
    "compute.cancel": ("cancel",),
}


@dataclass(frozen=True, slots=True)
class ClaimRules:
    """Rules of what claims mean: whose names are looked for where, and what they give.

    `claims` are the places in which the provider lists groups and roles. Of `required` a person
    needs one, if there are any.
    """

    claims: tuple[str, ...] = ("groups",)
    required: tuple[str, ...] = ()
    roles: Mapping[str, str] = field(default_factory=dict)
    default_role: str = "viewer"
    groups: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OidcProvider:
    """A provider by which people log in, under the id that its addresses have here."""

    id: str
    name: str
    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    scopes: tuple[str, ...]
    rules: ClaimRules
    asks_userinfo: bool
    links_by_email: bool
    #: Of the command line, which has no secret; empty: it does not log in by this provider.
    device_client_id: str
    device_scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TokenIssuer:
    """An issuer of signed tokens that the API accepts: for whom, and what their scopes mean."""

    issuer: str
    audience: tuple[str, ...]
    scopes: Mapping[str, tuple[str, ...]]
    base_path: str
    subjects: Mapping[str, str]


def oidc_providers(text: str) -> dict[str, OidcProvider]:
    """The providers that the value of PILOTAGE_OIDC_PROVIDERS describes, by their ids."""
    found = {}
    for key, value in _object(_PROVIDERS, text).items():
        place = _Place(_PROVIDERS, key)
        if not _ID.fullmatch(key):
            raise place.wrong("is no id: lower-case letters, digits and hyphens make one")
        found[key] = _provider(key, place.table(value))
    return found


def token_issuers(text: str, *, audience: str) -> dict[str, TokenIssuer]:
    """The issuers that the value of PILOTAGE_TOKEN_ISSUERS describes, by their addresses.

    By default their tokens are for `audience`.
    """
    return {
        issuer: _issuer(issuer, _Place(_ISSUERS, issuer).table(value), audience)
        for issuer, value in _object(_ISSUERS, text).items()
    }


def _provider(key: str, table: _Table) -> OidcProvider:
    scopes = table.texts("scopes", ("openid", "profile", "email"))
    if "openid" not in scopes:
        raise table.wrong("scopes", "have to name openid")
    provider = OidcProvider(
        id=key,
        name=table.text("name", key),
        issuer=_checked_issuer(table.text("issuer"), table),
        client_id=table.text("client_id"),
        client_secret=_secret(table),
        scopes=scopes,
        rules=_rules(table),
        asks_userinfo=table.flag("userinfo", True),
        links_by_email=table.flag("link_by_email", False),
        device_client_id=table.text("device_client_id", ""),
        device_scopes=table.texts("device_scopes", (*scopes, "offline_access")),
    )
    table.end()
    return provider


def _rules(table: _Table) -> ClaimRules:
    roles = table.names("roles")
    if unknown := sorted(set(roles.values()) - set(_ROLES)):
        raise table.wrong("roles", f"name {unknown[0]}, which is none of {', '.join(_ROLES)}")
    default_role = table.text("default_role", "viewer")
    if default_role not in _DEFAULT_ROLES:
        raise table.wrong("default_role", f"must be one of {', '.join(_DEFAULT_ROLES)}")
    return ClaimRules(
        claims=table.texts("claims", ("groups",)),
        required=table.texts("required", ()),
        roles=roles,
        default_role=default_role,
        groups=table.names("groups"),
    )


def _secret(table: _Table) -> str:
    """Secret of the client, of a file or of a variable; empty for a client that has none."""
    path, variable = table.text("client_secret_file", ""), table.text("client_secret_env", "")
    if path and variable:
        raise table.wrong("client_secret_file", "and client_secret_env are two secrets")
    if path:
        try:
            return Path(path).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise table.wrong("client_secret_file", f"cannot be read: {error.strerror}") from None
    if variable and not os.environ.get(variable):
        raise table.wrong("client_secret_env", f"names {variable}, which is not set")
    return os.environ[variable].strip() if variable else ""


def _issuer(issuer: str, table: _Table, audience: str) -> TokenIssuer:
    scopes = table.lists("scopes") or WLCG_SCOPES
    if unknown := sorted({each for given in scopes.values() for each in given} - set(_SCOPES)):
        raise table.wrong("scopes", f"give {unknown[0]}, which is none of {', '.join(_SCOPES)}")
    base_path = table.text("base_path", "/")
    if not base_path.startswith("/"):
        raise table.wrong("base_path", "has to begin with /")
    found = TokenIssuer(
        issuer=_checked_issuer(issuer, table),
        audience=table.texts("audience", (audience,)),
        scopes=scopes,
        base_path=base_path,
        subjects=table.names("subjects"),
    )
    table.end()
    if not found.audience:
        raise table.wrong("audience", "is empty: tokens have to be for somebody")
    return found


def _checked_issuer(issuer: str, table: _Table) -> str:
    parts = urlsplit(issuer)
    is_near = parts.scheme == "http" and parts.hostname in _LOOPBACK
    if not parts.hostname or not (parts.scheme == "https" or is_near) or parts.query:
        raise table.wrong("issuer", "has to be an address with https")
    if len(issuer) > _LONGEST_ISSUER:
        raise table.wrong("issuer", f"has more than {_LONGEST_ISSUER} characters")
    return issuer


def _object(name: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text.strip() or "{}")
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must be a JSON object: {error}.") from None
    if not isinstance(value, dict):
        raise ImproperlyConfigured(f"{name} must be a JSON object.")
    return value


@dataclass(frozen=True, slots=True)
class _Place:
    """Place of a value, for what is told of it."""

    name: str
    key: str

    def wrong(self, why: str) -> ImproperlyConfigured:
        return ImproperlyConfigured(f"{self.name}: {self.key} {why}.")

    def table(self, value: object) -> _Table:
        if not isinstance(value, dict):
            raise self.wrong("must be a JSON object")
        return _Table(self, dict(value))


@dataclass(frozen=True, slots=True)
class _Table:
    """Members of an object, taken out one by one; what is left at the end is unknown."""

    place: _Place
    left: dict[str, Any]

    def wrong(self, member: str, why: str) -> ImproperlyConfigured:
        return self.place.wrong(f"{member} {why}")

    def text(self, member: str, default: str | None = None) -> str:
        value = self.left.pop(member, default)
        if value is None:
            raise self.wrong(member, "is missing")
        if not isinstance(value, str):
            raise self.wrong(member, "must be a text")
        return value

    def flag(self, member: str, default: bool) -> bool:
        value = self.left.pop(member, default)
        if not isinstance(value, bool):
            raise self.wrong(member, "must be true or false")
        return value

    def texts(self, member: str, default: tuple[str, ...]) -> tuple[str, ...]:
        value = self.left.pop(member, default)
        if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
            raise self.wrong(member, "must be a list of texts")
        return tuple(value)

    def names(self, member: str) -> dict[str, str]:
        value = self.left.pop(member, {})
        if not isinstance(value, dict) or not all(isinstance(to, str) for to in value.values()):
            raise self.wrong(member, "must be an object of texts")
        return value

    def lists(self, member: str) -> dict[str, tuple[str, ...]]:
        value = self.left.pop(member, {})
        if not isinstance(value, dict):
            raise self.wrong(member, "must be an object")
        inner = _Table(_Place(self.place.name, f"{self.place.key} {member}"), dict(value))
        return {key: inner.texts(key, ()) for key in value}

    def end(self) -> None:
        if self.left:
            raise self.wrong(min(self.left), "is unknown")
