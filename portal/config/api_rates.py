"""Rates of the REST API, as the settings name them."""

from __future__ import annotations

import os

from portal.config import env

#: Requests in seconds of one token, and of one user.
_OF_CALLERS = {"token": "1200/60", "user": "3000/60"}
#: Of one token for each scope. Less than the token has: a program that reads or sends in a loop can
#: still be steered by.
_OF_SCOPES = {
    "read": "1000/60", "submit": "600/60", "control": "600/60", "site": "300/60", "admin": "120/60",
}  # fmt: skip


def api_rates() -> dict[str, tuple[int, int]]:
    """Requests and seconds of each policy; what is off is missing.

    Who sets the rate of tokens has those of scopes only as they are named: none of their defaults
    would allow less than what was asked for.
    """
    is_set = bool(os.environ.get("PILOTAGE_API_RATE_TOKEN", "").strip())
    defaults = {**_OF_CALLERS, **({name: "off" for name in _OF_SCOPES} if is_set else _OF_SCOPES)}
    rates = {
        policy: env.rate(f"PILOTAGE_API_RATE_{policy.upper()}", default)
        for policy, default in defaults.items()
    }
    return {policy: rate for policy, rate in rates.items() if rate is not None}
