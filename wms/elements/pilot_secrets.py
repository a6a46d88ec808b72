"""Secrets of a batch's pilots: their check, and the submitted scripts that hand them over.

Every batch system has them checked; the scripts are for those that take nothing beside a script.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

#: Characters of a secret: nothing that a shell could take for something else.
_SECRET = re.compile(r"[A-Za-z0-9:_-]{1,200}")


def checked(secrets: Sequence[str], count: int) -> Sequence[str]:
    """Secrets, one for each pilot of a batch; none at all are as many empty ones."""
    if secrets and (len(secrets) != count or not all(map(_SECRET.fullmatch, secrets))):
        raise ValueError(f"{len(secrets)} secrets for {count} pilots, or one that is none")
    return secrets or [""] * count


def with_secret(script: str, secret: str) -> str:
    """Script of one pilot, which finds its secret in the shell's PILOTAGE_SECRET."""
    return f"#!/bin/sh\nPILOTAGE_SECRET={secret}\n{script}" if secret else script


def with_secrets(script: str, secrets: Sequence[str]) -> str:
    """Script of a whole batch, of which each pilot takes its own secret by its index."""
    if not any(secrets):
        return script
    cases = "".join(f"{index}) PILOTAGE_SECRET={each};;\n" for index, each in enumerate(secrets))
    return f'#!/bin/sh\ncase "$PILOTAGE_INDEX" in\n{cases}esac\n{script}'
