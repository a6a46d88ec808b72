"""What follows when a place failed a job: how long it pauses, and which places it avoids."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from enum import StrEnum

from matching.needs import Needs

_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
#: Requirements with many hosts in them cost the claim more than they save.
_MOST_HOSTS = 5


class Avoids(StrEnum):
    """What a rescheduled job keeps away from."""

    NOTHING = "nothing"
    HOST = "host"
    SITE = "site"


def pause_after_s(attempts: int, pauses_s: Sequence[float]) -> float:
    """How long a job waits after so many attempts: the last pause counts for all later ones."""
    if not pauses_s:
        return 0.0
    return pauses_s[min(max(attempts, 1), len(pauses_s)) - 1]


def without_site(needs: Needs, site: str, others: Collection[str]) -> Needs:
    """The needs without this site, if one of the `others` is left; else as they are."""
    allowed = set(needs.sites or others) - set(needs.banned_sites) - {site}
    if not allowed & set(others):
        return needs
    if needs.sites:
        return replace(needs, sites=tuple(sorted(set(needs.sites) - {site})))
    return replace(needs, banned_sites=tuple(sorted({*needs.banned_sites, site})))


def without_host(needs: Needs, host: str) -> Needs:
    """The needs without this host, unless so many are left out already."""
    refusal = f'Machine =!= "{host}"'
    known = needs.requirements.count("Machine =!= ")
    if not _HOST.fullmatch(host) or refusal in needs.requirements or known >= _MOST_HOSTS:
        return needs
    before = f"({needs.requirements}) && " if needs.requirements else ""
    return replace(needs, requirements=f"{before}{refusal}")
