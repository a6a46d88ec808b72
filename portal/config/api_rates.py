"""Rates of the REST API, as the settings name them."""

from __future__ import annotations

import os

from portal.config import env


def api_rates() -> dict[str, tuple[int, int]]:
    """Requests and seconds of each policy: of one token, one user, one token for each scope.

    What is off is missing. Who sets the rate of tokens has those of scopes only as they are named:
    none of their defaults would allow less than what was asked for.
    """
    is_set = bool(os.environ.get("PILOTAGE_API_RATE_TOKEN", "").strip())

    def unless_set(rate: str) -> str:
        """Default of a scope: less than the token's, so that a busy program can be steered."""
        return "off" if is_set else rate

    rates = {
        "token": env.rate("PILOTAGE_API_RATE_TOKEN", "1200/60"),
        "user": env.rate("PILOTAGE_API_RATE_USER", "3000/60"),
        "read": env.rate("PILOTAGE_API_RATE_READ", unless_set("1000/60")),
        "submit": env.rate("PILOTAGE_API_RATE_SUBMIT", unless_set("600/60")),
        "control": env.rate("PILOTAGE_API_RATE_CONTROL", unless_set("600/60")),
        "site": env.rate("PILOTAGE_API_RATE_SITE", unless_set("300/60")),
        "admin": env.rate("PILOTAGE_API_RATE_ADMIN", unless_set("120/60")),
    }
    return {policy: rate for policy, rate in rates.items() if rate is not None}
