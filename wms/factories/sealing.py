"""Sealing of short secrets: encrypted and authenticated under a key, with what Python itself has.

A keystream of HMAC-SHA256 over a fresh nonce and a counter, and an HMAC over nonce and text.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

_NONCE_BYTES, _TAG_BYTES = 16, 32
_MOST_BYTES = 1024


class BrokenSeal(ValueError):
    """The text was sealed with another key, or changed."""


def key_of(secret: str, *, purpose: str) -> bytes:
    """Key for one purpose, derived from a secret of at least 128 random bits."""
    return hmac.digest(secret.encode(), f"pilotage sealing:{purpose}".encode(), hashlib.sha256)


def seal(key: bytes, text: str) -> str:
    """The text as only holders of the key can read it; never twice the same."""
    content = text.encode()
    if len(content) > _MOST_BYTES:
        raise ValueError(f"a secret has at most {_MOST_BYTES} bytes")
    nonce = secrets.token_bytes(_NONCE_BYTES)
    hidden = nonce + _mixed(key, nonce, content)
    return base64.urlsafe_b64encode(hidden + _tag(key, hidden)).decode()


def unseal(key: bytes, sealed: str) -> str:
    """The text that was sealed with this key. Raises BrokenSeal."""
    try:
        content = base64.b64decode(sealed.encode(), altchars=b"-_", validate=True)
    except ValueError as error:
        raise BrokenSeal("it is not sealed") from error
    hidden, tag = content[:-_TAG_BYTES], content[-_TAG_BYTES:]
    if len(hidden) < _NONCE_BYTES or not hmac.compare_digest(tag, _tag(key, hidden)):
        raise BrokenSeal("it was sealed with another key, or changed")
    return _mixed(key, hidden[:_NONCE_BYTES], hidden[_NONCE_BYTES:]).decode()


def _tag(key: bytes, hidden: bytes) -> bytes:
    return hmac.digest(key_of(key.hex(), purpose="tag"), hidden, hashlib.sha256)


def _mixed(key: bytes, nonce: bytes, content: bytes) -> bytes:
    stream_key, stream = key_of(key.hex(), purpose="stream"), b""
    while len(stream) < len(content):
        block = (len(stream) // _TAG_BYTES).to_bytes(8, "big")
        stream += hmac.digest(stream_key, nonce + block, hashlib.sha256)
    return bytes(a ^ b for a, b in zip(content, stream, strict=False))
