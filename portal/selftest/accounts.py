"""Self-test: whether some account can configure the portal."""

from __future__ import annotations

from collections.abc import Iterator

from portal.selftest.findings import Code, Finding, error, ok, warning

_TODO = "Run `manage.py accounts add NAME --role admin` on this host; it prints a password."


def administrators(admins: int, operators: int) -> Iterator[Finding]:
    """Finding for these numbers of active administrators and of operators or above."""
    if admins:
        yield ok(Code.ADMINISTRATOR, f"Accounts of administrators: {admins}.")
    elif operators:
        yield warning(
            Code.NO_ADMINISTRATOR,
            "No active account is an administrator.",
            "Operators configure sites, but nobody makes accounts, names roles, or adds checks of "
            "nodes.",
            _TODO,
        )
    else:
        yield error(
            Code.NO_ADMINISTRATOR,
            "No active account is an administrator or operator.",
            "Nobody can make accounts or sites.",
            _TODO,
        )
