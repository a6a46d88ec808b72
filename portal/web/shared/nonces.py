"""Idempotency keys of forms: a double click submits once."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from typing import BinaryIO

from portal.middleware.uploads import Upload
from wms.core.known_contents import known_sha256


def fresh_nonce() -> str:
    """Random value of one rendering of the form: a double click submits once."""
    return secrets.token_urlsafe(16)


def page_key(nonce: str, sent: Iterable[Upload], how: str) -> str | None:
    """Idempotency key: equal for a second click, different after files were corrected."""
    if not nonce or len(nonce) > 64:
        return None
    digest = hashlib.sha256(f"{nonce}\0{how}".encode())
    for upload in sent:
        content = known_sha256(upload.content) or _read_sha256(upload.content)
        digest.update(f"\0{upload.name}\0{content}".encode())
    return f"page:{digest.hexdigest()}"


def _read_sha256(content: BinaryIO) -> str:
    content.seek(0)
    found = hashlib.file_digest(content, "sha256").hexdigest()
    content.seek(0)
    return found
