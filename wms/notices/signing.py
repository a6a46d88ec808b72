"""Secrets of webhooks, and signatures of messages by them (HMAC).

A secret is made of the portal's key and a nonce, so that no table holds it. Also its check value,
which is stored and reveals nothing of it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from django.utils.crypto import salted_hmac

_SALT = "pilotage.webhooks"


def new_nonce() -> str:
    """A new random nonce, of which a secret is made."""
    return secrets.token_urlsafe(24)


def secret_of(nonce: str) -> str:
    """The secret of a channel, with the key of the portal."""
    return "plw_" + salted_hmac(_SALT, nonce, algorithm="sha256").hexdigest()


def check_of(secret: str) -> str:
    """Check value of a secret, which reveals nothing of it."""
    return hashlib.sha256(secret.encode()).hexdigest()[:32]


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """The HMAC-SHA256 of the time stamp, a full stop, and the body, in hexadecimal digits."""
    return hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()
