"""Rescheduling of a job after its attempt was lost: pause, and hosts and sites it avoids."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from enum import StrEnum

from matching.task_queues.needs import Needs

_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
#: A job that so many hosts have failed gains nothing by yet another one.
_MOST_HOSTS = 5


class Avoids(StrEnum):
    """Scope that a job avoids after a failure: nothing, the host, or the whole site."""

    NOTHING = "nothing"
    HOST = "host"
    SITE = "site"


def pause_after_s(attempts: int, pauses_s: Sequence[float]) -> float:
    """Seconds that a job waits after this many attempts; the last pause is used for all later."""
    if not pauses_s:
        return 0.0
    return pauses_s[min(max(attempts, 1), len(pauses_s)) - 1]


def without_site(needs: Needs, site: str, others: Collection[str]) -> Needs:
    """Needs without this site, if one of the `others` is left; else unchanged."""
    allowed = set(needs.sites or others) - set(needs.banned_sites) - {site}
    if not allowed & set(others):
        return needs
    if needs.sites:
        return replace(needs, sites=tuple(sorted(set(needs.sites) - {site})))
    return replace(needs, banned_sites=tuple(sorted({*needs.banned_sites, site})))


def with_host(avoided: Sequence[str], host: str) -> tuple[str, ...]:
    """Hosts that a job avoids, with the one that failed it now: the latest few of them.

    Texts that are no host name are left out.
    """
    if not _HOST.fullmatch(host):
        return tuple(avoided)
    return (*(each for each in avoided if each != host), host)[-_MOST_HOSTS:]
