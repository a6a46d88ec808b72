"""Tokens with which one installation calls another: made, kept as a hash, compared."""

from __future__ import annotations

import hashlib
import hmac
import secrets

_TOKEN_BYTES = 32


def new_token() -> str:
    """A token that nobody guesses."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def digest(token: str) -> str:
    """Hash of a token, as it is stored; both sides know it, and secrets are sealed under it."""
    # It has 256 random bits, so a plain hash is enough: there is nothing to guess.
    return hashlib.sha256(token.encode()).hexdigest()


def is_token(token: str, stored: str) -> bool:
    """Whether this is the token of a stored hash; none is, where nothing is stored."""
    return bool(stored) and hmac.compare_digest(stored, digest(token))
