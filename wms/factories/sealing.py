"""Sealing of short secrets: encrypted and authenticated under a key derived for one purpose."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

_KEY_BYTES = 32
_MOST_BYTES = 1024


class BrokenSeal(ValueError):
    """The text was sealed with another key, or changed."""


def key_of(secret: str, *, purpose: str) -> bytes:
    """Key for one purpose, derived from a secret of at least 128 random bits (RFC 5869)."""
    kdf = HKDF(SHA256(), _KEY_BYTES, salt=None, info=f"pilotage sealing:{purpose}".encode())
    return base64.urlsafe_b64encode(kdf.derive(secret.encode()))


def seal(key: bytes, text: str) -> str:
    """The text as only holders of the key can read it; never twice the same."""
    content = text.encode()
    if len(content) > _MOST_BYTES:
        raise ValueError(f"a secret has at most {_MOST_BYTES} bytes")
    return Fernet(key).encrypt(content).decode()


def unseal(keys: Sequence[bytes], sealed: str) -> str:
    """The text that was sealed with one of the keys. Raises BrokenSeal."""
    try:
        return MultiFernet([Fernet(key) for key in keys]).decrypt(sealed.encode()).decode()
    except InvalidToken as error:
        raise BrokenSeal("it was sealed with another key, or changed") from error
