"""Configuration and keys of issuers, fetched from them and kept in the database.

Kept ones are used for an hour; then the issuer is asked again, and if it is away they go on being
used for a week. A token signed by an unknown key has them fetched anew at once, but no issuer is
asked more often than twice a minute, by all processes together.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import requests
import structlog
import urllib3

from wms.core.errors import IssuerAway
from wms.core.identity_models import IssuerDocument
from wms.core.issuer_documents import claim_attempt, keep_document, kept_document

log = structlog.get_logger(__name__)
_FRESH_FOR = timedelta(hours=1)
_KEPT_FOR = timedelta(days=7)
_FLOOR = timedelta(seconds=30)
_TIMEOUT_S = (3.05, 5.0)
_MOST_BYTES = 512 * 1024
_WELL_KNOWN = "/.well-known/openid-configuration"
_NEEDED = ("issuer", "jwks_uri")


class Malformed(Exception):
    """An issuer answered with something that is no configuration or no keys."""


@dataclass(frozen=True, slots=True)
class Issuer:
    """An issuer as it describes itself."""

    issuer: str
    configuration: dict[str, Any]
    keys: tuple[dict[str, Any], ...]

    def endpoint(self, name: str) -> str:
        """Address of one of its endpoints; raises IssuerAway where it names none."""
        address = self.configuration.get(name)
        if not isinstance(address, str) or not address:
            raise IssuerAway(f"{self.issuer} names no {name}: it cannot be used for this.")
        return address


def issuer_of(address: str, *, now: datetime, unknown_key: bool = False) -> Issuer:
    """The issuer with its keys. Raises IssuerAway where it is away and nothing of it is kept.

    `unknown_key`: the kept keys did not do, so they are fetched anew if that may be now.
    """
    kept = kept_document(address)
    is_fresh = kept is not None and _is_younger(kept, now, _FRESH_FOR)
    if is_fresh and not unknown_key:
        return _issuer(kept)
    if claim_attempt(address, now=now, floor=_FLOOR):
        try:
            configuration, keys = _fetched(address)
        except (requests.RequestException, Malformed) as error:
            log.warning("issuer_not_read", issuer=address, error=str(error)[:300])
        else:
            kept = keep_document(address, configuration=configuration, keys=keys, now=now)
            return _issuer(kept)
    if kept is None or not _is_younger(kept, now, _KEPT_FOR):
        raise IssuerAway(f"{address} does not answer as an identity provider: try again later.")
    return _issuer(kept)


def _is_younger(kept: IssuerDocument, now: datetime, age: timedelta) -> bool:
    return kept.fetched_at is not None and now - kept.fetched_at < age


def _issuer(kept: IssuerDocument | None) -> Issuer:
    assert kept is not None
    return Issuer(kept.issuer, kept.configuration, tuple(kept.keys["keys"]))


def _fetched(address: str) -> tuple[dict[str, Any], dict[str, Any]]:
    configuration = get_json(address.rstrip("/") + _WELL_KNOWN)
    if any(not isinstance(configuration.get(name), str) for name in _NEEDED):
        raise Malformed(f"the configuration lacks one of {', '.join(_NEEDED)}")
    if configuration["issuer"] != address:
        raise Malformed(f"it calls itself {configuration['issuer'][:200]}")
    addresses = [value for name, value in configuration.items() if _is_address(name)]
    if not all(isinstance(each, str) and _is_as_safe(each, address) for each in addresses):
        raise Malformed("an endpoint of it has no address with https")
    keys = get_json(configuration["jwks_uri"])
    listed = keys.get("keys")
    if not isinstance(listed, list) or not all(isinstance(key, dict) for key in listed):
        raise Malformed("its keys are no list of keys")
    return configuration, {"keys": listed}


def _is_address(name: str) -> bool:
    return name.endswith(("_endpoint", "_uri"))


def _is_as_safe(address: str, issuer: str) -> bool:
    """Whether an address has TLS, or the issuer has none either."""
    return urlsplit(address).scheme == "https" or issuer.startswith("http:")


def get_json(address: str, headers: dict[str, str] | None = None) -> dict[str, Any]:
    """Object at an address, of a bounded size and without redirects.

    Raises RequestException or Malformed.
    """
    with requests.get(
        address, headers=headers, timeout=_TIMEOUT_S, stream=True, allow_redirects=False
    ) as answer:
        answer.raise_for_status()
        try:
            content = answer.raw.read(_MOST_BYTES + 1, decode_content=True)
        except urllib3.exceptions.HTTPError as error:
            # What is read past the package is not told in its words.
            raise requests.ConnectionError(error) from None
    if answer.status_code != requests.codes.ok or len(content) > _MOST_BYTES:
        raise Malformed(f"{address} answered with status {answer.status_code}")
    try:
        value = json.loads(content)
    except ValueError:
        raise Malformed(f"{address} answered with no JSON") from None
    if not isinstance(value, dict):
        raise Malformed(f"{address} answered with no object")
    return value
