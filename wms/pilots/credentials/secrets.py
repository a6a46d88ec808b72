"""Reading of secrets: what a key, a token or a certificate tells of itself, or why it is none.

No message repeats anything of the text.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from django.views.decorators.debug import sensitive_variables

from wms.core.errors import InvalidInput
from wms.elements.logins import LoginKind

#: More is none of these.
MOST_BYTES = 64 * 1024
_TOKEN = re.compile(r"[!-~]+")
_JWT = re.compile(r"[A-Za-z0-9_-]+\.([A-Za-z0-9_-]+)\.[A-Za-z0-9_-]*")
_KEY_BLOCK = re.compile(r"-----BEGIN ([A-Z ]*)PRIVATE KEY-----.+?-----END \1PRIVATE KEY-----", re.S)
_LONGEST_SUBJECT = 255
_UNREADABLE = (ValueError, TypeError, UnsupportedAlgorithm)


@dataclass(frozen=True, slots=True)
class Material:
    """A secret as it is stored, with what may be shown of it."""

    secret: str = field(repr=False)
    fingerprint: str
    subject: str = ""
    expires_at: datetime | None = None


@sensitive_variables()
def read_secret(kind: LoginKind, text: str) -> Material:
    """Read a secret of this kind. Raises InvalidInput for the field `secret`."""
    if len(text.encode()) > MOST_BYTES:
        raise _bad(f"is longer than {MOST_BYTES} bytes")
    lines = "\n".join(text.strip().splitlines())
    return _READERS[kind](lines)


@sensitive_variables()
def _ssh_key(text: str) -> Material:
    data = f"{text}\n".encode()
    is_openssh = "BEGIN OPENSSH PRIVATE KEY" in text
    load = serialization.load_ssh_private_key if is_openssh else serialization.load_pem_private_key
    try:
        key = load(data, password=None)
        public = key.public_key().public_bytes(
            serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
        )
    except TypeError:
        # What the library says of a key that needs a password.
        raise _bad("is protected by a passphrase, which nobody would type in") from None
    except _UNREADABLE:
        raise _bad("is no SSH private key that can be read") from None
    return Material(f"{text}\n", _fingerprint(base64.b64decode(public.split()[1])))


@sensitive_variables()
def _htcondor_token(text: str) -> Material:
    claims = _claims(text)
    if claims is None:
        raise _bad("is no HTCondor token: one word of three parts joined by points")
    return _token(text, claims)


@sensitive_variables()
def _bearer_token(text: str) -> Material:
    if not _TOKEN.fullmatch(text):
        raise _bad("is no token: one word without spaces")
    # One that tells nothing of itself is a token, too.
    return _token(text, _claims(text) or {})


@sensitive_variables()
def _token(text: str, claims: Mapping[str, Any]) -> Material:
    names = [str(claims[name]) for name in ("sub", "iss") if claims.get(name)]
    # Some issuers write themselves into the subject.
    subject = names[0] if names and "@" in names[0] else "@".join(names)
    return Material(
        text,
        _fingerprint(text.encode()),
        _PRINTED.sub("?", subject)[:_LONGEST_SUBJECT],
        _time(claims.get("exp")),
    )


_PRINTED = re.compile(r"[\x00-\x1f\x7f]")


@sensitive_variables()
def _claims(text: str) -> Mapping[str, Any] | None:
    found = _JWT.fullmatch(text)
    if found is None:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(found[1] + "=" * (-len(found[1]) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return None
    return claims if isinstance(claims, dict) else None


def _time(value: object) -> datetime | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        return None


@sensitive_variables()
def _certificate(text: str) -> Material:
    block = _KEY_BLOCK.search(text)
    try:
        certificates = x509.load_pem_x509_certificates(text.encode())
    except _UNREADABLE:
        raise _bad("has no certificate that can be read") from None
    if block is None:
        raise _bad("has no private key beside the certificate")
    try:
        key = serialization.load_pem_private_key(block[0].encode(), password=None)
        own = _spki(key.public_key()) == _spki(certificates[0].public_key())
    except TypeError:
        raise _bad("has a private key that is protected by a passphrase") from None
    except _UNREADABLE:
        raise _bad("has a private key that cannot be read") from None
    if not own:
        raise _bad("has a private key that is not of its first certificate")
    return Material(
        f"{text}\n",
        _fingerprint(certificates[0].public_bytes(serialization.Encoding.DER)),
        certificates[0].subject.rfc4514_string()[:_LONGEST_SUBJECT],
        min(each.not_valid_after_utc for each in certificates),
    )


def _spki(public: Any) -> bytes:
    written: bytes = public.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return written


def _fingerprint(data: bytes) -> str:
    """Hash as `ssh-keygen -l` writes it."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")


def _bad(why: str) -> InvalidInput:
    return InvalidInput.of(why, field="secret")


_READERS: Mapping[LoginKind, Callable[[str], Material]] = {
    LoginKind.SSH_KEY: _ssh_key,
    LoginKind.HTCONDOR_TOKEN: _htcondor_token,
    LoginKind.BEARER_TOKEN: _bearer_token,
    LoginKind.CERTIFICATE: _certificate,
}
