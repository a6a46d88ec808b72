"""Runner of a management command that needs neither database nor Redis, nor any settings."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Sequence

import django
from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line

_FAILED = 2
#: Nothing listens there, and nothing is asked of it.
NOWHERE = {
    "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing",
    "REDIS_URL": "redis://127.0.0.1:1/0",
}


def main(_arguments: Sequence[str]) -> int:
    """Run the management command of the command line; settings that are missing do not matter."""
    for name, nowhere in NOWHERE.items():
        os.environ.setdefault(name, nowhere)
    os.environ.setdefault("PILOTAGE_SECRET_KEY", secrets.token_urlsafe(48))
    try:
        django.setup()
    except ImproperlyConfigured as error:
        sys.stderr.write(f"{error}\n")
        return _FAILED
    execute_from_command_line(sys.argv)
    return 0
