"""Public identifier of a portal, to tell apart two on one host that got the same port."""

from __future__ import annotations

import hashlib


def instance_of(secret_key: str) -> str:
    """Public name of the portal with this secret key, which does not reveal the key."""
    return hashlib.sha256(f"which portal is this:{secret_key}".encode()).hexdigest()[:32]
