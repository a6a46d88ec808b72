"""Sets of inputs of jobs that begin to wait: found or made, with the sites that they tie jobs to.

Like scopes (`wms.jobs.binding.scopes`), these sites come in when a job joins a TaskQueue, so that
they may change without its row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from matching.task_queues.needs import Needs
from wms.core.models import User
from wms.jobs.binding.scopes import needs_within
from wms.jobs.input_data.changes import note_sets
from wms.jobs.input_data.wanted import Located, Wanted, locate, wanted_by
from wms.jobs.models import InputSet, Workspace
from wms.jobs.sql import LOCK_INPUT_SETS
from wms.taskqueues.operations import Entry


@dataclass(frozen=True, slots=True)
class KnownSet:
    """A stored set: its version, and the sites that it ties jobs to; None: to no site."""

    pk: int
    version: int
    sites: tuple[str, ...] | None


def within_inputs(entries: Sequence[tuple[Entry, int, Mapping[str, Any] | None]]) -> list[Entry]:
    """Entries for TaskQueues, given with workspace and directives of the job: near its inputs.

    These sites do not change before the end of the transaction. No query where no job names any
    logical file.
    """
    wanted = [wanted_by(directives, entry.needs.owner) for entry, _, directives in entries]
    if not any(wanted):
        return [entry for entry, _, _ in entries]
    wanted = _within_limits(wanted, [workspace_id for _, workspace_id, _ in entries])
    known = shared_sets({each for each in wanted if each is not None})

    @cache
    def bound(needs: Needs, sites: tuple[str, ...] | None) -> Needs:
        return needs if sites is None else needs_within(needs, sites)

    def within(entry: Entry, found: KnownSet) -> Entry:
        needs = bound(entry.needs, found.sites)
        return entry._replace(needs=needs, input_set=found.pk, input_version=found.version)

    return [
        entry if each is None else within(entry, known[each])
        for (entry, _, _), each in zip(entries, wanted, strict=True)
    ]


def _within_limits(
    wanted: Sequence[Wanted | None], workspace_ids: Sequence[int]
) -> list[Wanted | None]:
    """The wants as they are in these workspaces, some of which are limited to a frontend."""
    pairs = list(zip(wanted, workspace_ids, strict=True))
    ids = {pk for each, pk in pairs if each is not None}
    rows = Workspace.objects.filter(pk__in=ids, limited_to__isnull=False)
    limits = dict(rows.values_list("pk", "limited_to"))
    return [each and replace(each, limited_to=limits.get(pk)) for each, pk in pairs]


def near_inputs(needs: Needs, found: Located | None) -> Needs:
    """Needs of a job whose input data are there."""
    return needs if found is None or found.sites is None else needs_within(needs, found.sites)


def shared_sets(wanted: Collection[Wanted]) -> dict[Wanted, KnownSet]:
    """The sets of these wants, made where they are missing; nobody changes them meanwhile."""
    by_key = {each.key(): each for each in wanted}
    found: dict[str, KnownSet] = {}
    made: set[str] = set()
    # More than one round only when sets are made, or one that was there is removed at this moment.
    while missing := sorted(by_key.keys() - found.keys()):
        found |= _locked(missing)
        if absent := [key for key in missing if key not in found]:
            _make({key: by_key[key] for key in absent})
            made.update(absent)
    note_sets([found[key].pk for key in made])
    return {each: found[key] for key, each in by_key.items()}


def _locked(keys: Sequence[str]) -> dict[str, KnownSet]:
    with connection.cursor() as cursor:
        cursor.execute(LOCK_INPUT_SETS, [list(keys)])
        return {
            key: KnownSet(pk, version, None if sites is None else tuple(sites))
            for key, pk, version, sites in cursor.fetchall()
        }


def _make(wanted: Mapping[str, Wanted]) -> None:
    """Store sets, those that somebody else stores at this moment left out; in the order of keys."""
    names = {each.owner for each in wanted.values()}
    owners = dict(User.objects.filter(username__in=names).values_list("username", "pk"))
    located = locate(list(wanted.values()))
    rows = [
        InputSet(
            key=key,
            owner_id=owners[each.owner],
            limited_to=each.limited_to,
            names=list(each.names),
            is_anywhere=each.is_anywhere,
            waits=each.waits,
            expected=[list(pair) for pair in each.expected],
            is_of_dag=each.is_of_dag,
            **columns_of(found),
        )
        for (key, each), found in zip(wanted.items(), located, strict=True)
    ]
    InputSet.objects.bulk_create(rows, ignore_conflicts=True, batch_size=500)


def columns_of(found: Located) -> dict[str, Any]:
    """Columns of a set for where its files are."""
    return {
        "sites": None if found.sites is None else list(found.sites),
        "cause": found.cause,
        "told": found.told,
        "tenths": dict(found.tenths),
    }


def wants_of(sets: QuerySet[InputSet] | Iterable[InputSet]) -> list[Wanted]:
    """What stored sets want; their owners have been read with them."""
    return [
        Wanted(
            each.owner.username,
            tuple(each.names),
            is_anywhere=each.is_anywhere,
            waits=each.waits,
            expected=tuple((name, storage) for name, storage in each.expected),
            is_of_dag=each.is_of_dag,
            limited_to=each.limited_to,
        )
        for each in sets
    ]
