"""Rates of the REST API as the settings name them: requests of one token or user, in seconds."""

from __future__ import annotations

from typing import Final

from portal.config import env

_TOKEN: Final = "PILOTAGE_API_RATE_TOKEN"
#: Less than the token has: a program that reads or sends in a loop can still be steered by.
_SCOPES: Final = {
    "read": "1000/60", "submit": "600/60", "control": "600/60", "site": "300/60",
    "admin": "120/60",
}  # fmt: skip


def api_rates() -> dict[str, tuple[int, int]]:
    """Rates of one token, of one user, and of one token for each scope; what is off is missing.

    Where the rate of a token was chosen, or is off, a scope is off unless it is named, too: the
    defaults would undercut the choice.
    """
    is_chosen = env.is_set(_TOKEN)
    rates = {
        "token": env.rate(_TOKEN, "1200/60"),
        "user": env.rate("PILOTAGE_API_RATE_USER", "3000/60"),
    }
    for scope, default in _SCOPES.items():
        name = f"PILOTAGE_API_RATE_{scope.upper()}"
        rates[scope] = env.rate(name, "off" if is_chosen else default)
    return {policy: rate for policy, rate in rates.items() if rate is not None}
