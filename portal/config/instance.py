"""Public name of a portal, made from its secret key, to tell apart two portals on one host."""

from __future__ import annotations

import hashlib


def instance_of(secret_key: str) -> str:
    """Public name of the portal with this secret key, which does not reveal the key."""
    return hashlib.sha256(f"which portal is this:{secret_key}".encode()).hexdigest()[:32]
