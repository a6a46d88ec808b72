"""Self-test: whether some account can configure the portal."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator

from django.conf import settings

from portal.selftest.findings import Code, Finding, error, ok, warning


def administrators(admins: int, operators: int) -> Iterator[Finding]:
    """Finding for these numbers of active administrators and of operators or above."""
    command = shlex.join([sys.executable, str(settings.BASE_DIR / "manage.py"), "accounts", "add"])
    todo = f"Run `{command} NAME --role admin` on this host; it prints a password."
    if admins:
        yield ok(Code.ADMINISTRATOR, f"Accounts of administrators: {admins}.")
    elif operators:
        yield warning(
            Code.NO_ADMINISTRATOR,
            "No active account is an administrator.",
            "Operators configure sites, but nobody makes accounts, names roles, or adds checks of "
            "nodes.",
            todo,
        )
    else:
        yield error(
            Code.NO_ADMINISTRATOR,
            "No active account is an administrator or operator.",
            "Nobody can make accounts or sites.",
            todo,
        )
