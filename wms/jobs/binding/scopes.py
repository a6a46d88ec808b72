"""Scopes: the sites at which jobs may run that are bound to a single site only by their claim.

The needs of such a job name no sites but those that its own description asks for; the sites of its
scope come in when it joins a TaskQueue, so that they may change without its row. Also the needs
under which it waits now, and the stored sets of sites, which scopes share.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from django.db import connection
from django.db.models.functions import Now

from matching.task_queues.needs import Needs
from wms.jobs.models import SiteScope, SiteSet
from wms.jobs.sql import LOCK_SCOPES
from wms.taskqueues.operations import Entry

#: The sites of jobs that may run at none now. No site can have this name.
NOWHERE = ("(no site)",)


def needs_within(needs: Needs, sites: Iterable[str]) -> Needs:
    """Needs of a job that may run at these sites only."""
    own, banned = set(needs.sites), set(needs.banned_sites)
    allowed = [site for site in sites if (not own or site in own) and site not in banned]
    return replace(needs, sites=tuple(sorted(allowed)) or NOWHERE, banned_sites=())


def within_scopes(entries: Sequence[tuple[Entry, Mapping[str, Any] | None]]) -> list[Entry]:
    """Entries for TaskQueues: jobs that have a scope get the sites of that.

    These sites do not change before the end of the transaction. No query where no job has a scope.
    """
    scope_ids = {late["scope"] for _, late in entries if late and "scope" in late}
    if not scope_ids:
        return [entry for entry, _ in entries]
    sites = sites_of(scope_ids, locks=True)

    @cache
    def bound(needs: Needs, scope_id: int) -> Needs:
        return needs_within(needs, sites.get(scope_id, ()))

    return [
        entry._replace(needs=bound(entry.needs, late["scope"]))
        if late and "scope" in late
        else entry
        for entry, late in entries
    ]


def sites_of(scope_ids: Collection[int], *, locks: bool = False) -> dict[int, tuple[str, ...]]:
    """Names of the sites of scopes, by their ids; with `locks` nobody changes them meanwhile."""
    if locks:
        with connection.cursor() as cursor:
            cursor.execute(LOCK_SCOPES, [sorted(scope_ids)])
            rows = dict(cursor.fetchall())
    else:
        rows = dict(SiteScope.objects.filter(pk__in=scope_ids).values_list("pk", "sites_id"))
    # Read after the lock: the set may have come while it was waited for.
    names = dict(SiteSet.objects.filter(pk__in=set(rows.values())).values_list("pk", "names"))
    return {scope_id: tuple(names[set_id]) for scope_id, set_id in rows.items()}


def needs_now(needs: Needs, late: Mapping[str, Any] | None) -> Needs:
    """Needs under which a job waits now: with the sites of its scope, if it has one."""
    if not late or "scope" not in late:
        return needs
    return needs_within(needs, sites_of([late["scope"]]).get(late["scope"], ()))


def site_set_ids(sets: Collection[frozenset[str]]) -> dict[frozenset[str], int]:
    """Ids of the sets with these names; those that are missing are stored."""
    keys = {names: _key(names) for names in set(sets)}
    known = dict(SiteSet.objects.filter(key__in=keys.values()).values_list("key", "pk"))
    missing = [SiteSet(key=key, names=sorted(n)) for n, key in keys.items() if key not in known]
    if missing:
        SiteSet.objects.bulk_create(missing, ignore_conflicts=True, batch_size=1000)
        known = dict(SiteSet.objects.filter(key__in=keys.values()).values_list("key", "pk"))
    return {names: known[key] for names, key in keys.items()}


def _key(names: Iterable[str]) -> str:
    return hashlib.sha256(json.dumps(sorted(names)).encode()).hexdigest()


def store_scopes(scopes: Sequence[SiteScope]) -> None:
    """Store scopes, in the place of those of earlier stays."""
    columns = ["sites", "environment_template", "environment", "own_ad", "changed_at"]
    SiteScope.objects.bulk_create(
        scopes, update_conflicts=True, unique_fields=["id"], update_fields=columns, batch_size=500
    )


def change_scopes(set_by_scope: Mapping[int, int]) -> list[int]:
    """Give scopes other sites; ids of those that changed.

    Those that somebody else has locked are left out. The caller moves the jobs that wait, in the
    same transaction: see `wms.jobs.operations.move_waiting`.
    """
    rows = SiteScope.objects.filter(pk__in=set_by_scope).order_by("pk")
    locked = rows.select_for_update(skip_locked=True, of=("self",)).values_list("pk", "sites_id")
    by_set: dict[int, list[int]] = defaultdict(list)
    for scope_id, old in locked:
        if old != set_by_scope[scope_id]:
            by_set[set_by_scope[scope_id]].append(scope_id)
    for set_id, ids in by_set.items():
        SiteScope.objects.filter(pk__in=ids).update(sites_id=set_id, changed_at=Now())
    return sorted(scope_id for ids in by_set.values() for scope_id in ids)


def remove_unused_sets() -> None:
    """Delete the sets that no scope has any more. One process at a time gives scopes their sets."""
    SiteSet.objects.filter(scopes=None).delete()
