"""Which portal answers: two on one host may have been given the same port at the same moment."""

from __future__ import annotations

import hashlib


def instance_of(secret_key: str) -> str:
    """A public name of the portal with this secret key, from which the key cannot be found."""
    return hashlib.sha256(f"which portal is this:{secret_key}".encode()).hexdigest()[:32]
