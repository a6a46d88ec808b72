"""Operations on TaskQueues: enqueue, move and withdraw jobs, claim one, remove empty queues.

The claim draws TaskQueues until the pilot's ad meets the requirements and no limit refuses. Jobs
that begin to wait are announced to held claims; whoever changes waiting jobs withdraws them first.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache, partial
from operator import attrgetter
from typing import Any, NamedTuple

from django.db import connection, transaction

from matching.task_queues.needs import Needs
from matching.task_queues.published import Published
from matching.task_queues.requirements import requirements_value
from matching.task_queues.resources import JobKind, Resource, pilot_ad
from matching.task_queues.start_expressions import NEEDS_FIELDS, StartRule
from wms.core.database.statements import whole_numbers
from wms.core.models import User
from wms.taskqueues import arrivals, waiting
from wms.taskqueues.draws.draw import Draw
from wms.taskqueues.priorities import issue_tickets, note_removal
from wms.taskqueues.sql import (
    FIND_EMPTY,
    LOCK_EMPTY,
    LOCK_TASK_QUEUES,
    MAKE_TASK_QUEUES,
    MOVE_WAITING,
    REMOVE_EMPTY,
    REMOVE_STRAY_COUNTS,
)

#: After so many different requirements that fail, a claim leaves out the owner's other jobs that
#: have any, and then everybody's: nobody can keep pilots busy with what nothing fulfils.
_MOST_FAILED_OF_OWNER = 20
_MOST_FAILED = 500
#: After so many kinds of jobs that the start expression of its frontend refuses, a claim ends.
_MOST_UNSTARTED = 200
#: An expression that may see whose job it is, or what it needs. Found too often is no harm.
_SEES_NEEDS = re.compile(r"\bmy\b|owner|accountinggroup|request|cputime\b|jobtype", re.IGNORECASE)


class Entry(NamedTuple):
    """A job to be enqueued; its needs name the sites that its set of inputs gives by now."""

    job_id: int
    needs: Needs
    priority: int = 1
    avoided_hosts: tuple[str, ...] = ()
    input_set: int | None = None
    input_version: int = 0


@dataclass(frozen=True, slots=True)
class Claimed:
    """A job that was drawn and taken out of its TaskQueue."""

    job_id: int
    needs: Needs


@transaction.atomic
def enqueue(entries: Collection[Entry]) -> None:
    """Put each job into the TaskQueue whose needs equal its own, making TaskQueues where missing.

    Jobs that wait already stay where they are. So many statements whatever the number of jobs. Call
    it once in a transaction: two calls could lock TaskQueues in another order than somebody else.
    """
    if not entries:
        return
    ordered = sorted(entries, key=attrgetter("job_id"))
    keys, needs_by_key = _keys(ordered)
    ids, made = _task_queues(needs_by_key)
    waiting.join(
        [entry.job_id for entry in ordered],
        [ids[key] for key in keys],
        [entry.priority for entry in ordered],
        [_rest(entry) for entry in ordered],
    )
    if made:
        issue_tickets(made)
    transaction.on_commit(partial(arrivals.publish, len(entries)), robust=True)


@transaction.atomic
def move(entries: Collection[Entry]) -> None:
    """Move waiting jobs to the TaskQueues of these needs, in the order in which they came.

    Jobs that do not wait are left out, and those that are being claimed, held or killed at this
    moment. Once in a transaction, as `enqueue`.
    """
    if not entries:
        return
    keys, needs_by_key = _keys(entries)
    ids, made = _task_queues(needs_by_key)
    columns = (
        [entry.job_id for entry in entries],
        [ids[key] for key in keys],
        [entry.input_version for entry in entries],
    )
    with connection.cursor() as cursor:
        cursor.execute(MOVE_WAITING, list(map(whole_numbers, columns)))
        changed = {row[0] for row in cursor.fetchall()}
    if made:
        issue_tickets(made)
    transaction.on_commit(partial(arrivals.publish, len(entries)), robust=True)
    transaction.on_commit(partial(remove_empty, changed.union(made)), robust=True)


def _rest(entry: Entry) -> waiting.Rest | None:
    """What few jobs have besides their TaskQueue and priority."""
    if not entry.avoided_hosts and entry.input_set is None:
        return None
    return waiting.Rest(entry.avoided_hosts, entry.input_set, entry.input_version)


def _keys(entries: Collection[Entry]) -> tuple[list[str], dict[str, Needs]]:
    """The key of each entry's needs, and the needs of each key.

    Most jobs of a submission have one object for their needs: only different objects are compared.
    """
    objects = {id(entry.needs): entry.needs for entry in entries}
    keys = {needs: needs.key() for needs in objects.values()}
    key_of_object = {identity: keys[needs] for identity, needs in objects.items()}
    by_key = {key: needs for needs, key in keys.items()}
    return [key_of_object[id(entry.needs)] for entry in entries], by_key


def _task_queues(needs_by_key: Mapping[str, Needs]) -> tuple[dict[str, int], list[int]]:
    """The locked TaskQueues' ids by key, and the ids of those that were made for it."""
    names = {needs.owner for needs in needs_by_key.values()}
    owners = dict(User.objects.filter(username__in=names).values_list("username", "pk"))
    rows = {
        key: {"key": key, "owner_id": owners[needs.owner], **needs.as_dict()}
        for key, needs in needs_by_key.items()
    }
    made: list[int] = []
    ids: dict[str, int] = {}
    with connection.cursor() as cursor:
        # More than one round only when a TaskQueue that was there is removed at this moment.
        while len(ids) < len(rows):
            missing = [row for key, row in rows.items() if key not in ids]
            cursor.execute(LOCK_TASK_QUEUES, [[row["key"] for row in missing]])
            ids |= dict(cursor.fetchall())
            missing = [row for row in missing if row["key"] not in ids]
            if missing:
                cursor.execute(MAKE_TASK_QUEUES, [json.dumps(missing)])
                made += [row[0] for row in cursor.fetchall()]
    return ids, made


@transaction.atomic
def withdraw(job_ids: Collection[int], *, are_locked: bool = False) -> None:
    """Take jobs out of their TaskQueues, so that no claim finds them.

    Whoever changes waiting jobs calls this first and changes the jobs' rows after it: the claim
    takes its locks in the same order, so the two cannot wait for each other. With `are_locked` the
    jobs' rows have been locked before: those that are being claimed at this moment are left to
    their claims, which find that they wait no longer.
    """
    left = waiting.leave(job_ids, skips_claimed=are_locked)
    if left:
        transaction.on_commit(partial(remove_empty, left), robust=True)


def claim(
    resource: Resource,
    *,
    facts: Mapping[str, Any] | None = None,
    published: Published | None = None,
    refuses: Callable[[Needs], JobKind | None] | None = None,
    refuses_any: bool = True,
    start: StartRule | None = None,
    taker: waiting.ClaimingHost = waiting.ANYONE,
) -> Claimed | None:
    """Draw a waiting job that this resource can run, and take it out; None when there is none.

    Jobs that the `taker` leaves to others are passed over.

    TaskQueues are drawn until one passes: `facts` of the pilot's node, and what checks have
    `published` of it, are what its requirements may refer to; `refuses` may name a kind of job that
    is left out then; unless it `refuses_any`, only jobs with concurrency limits are asked about.
    Jobs that the frontend's `start` expressions refuse are left out with all that are equal to them
    in what the expression looks at; after many such the pilot has to ask again.
    The caller is in a transaction and binds the job in it.
    """
    at_once = start is None and (refuses is None or not refuses_any)
    draw = Draw(resource, taker, takes_at_once=at_once)
    judge = _Requirements(resource, facts or {}, published or {})
    unstarted = 0
    while (drawn := draw.next()) is not None and unstarted < _MOST_UNSTARTED:
        part = start.refusing_part(drawn.needs) if start is not None else None
        if part is not None:
            draw.exclude_alike(drawn.needs, [NEEDS_FIELDS[name] for name in part.of_jobs])
            unstarted += 1
            continue
        if not judge.accepts(drawn.needs):
            _leave_out(draw, drawn.needs, judge)
            continue
        kind = refuses(drawn.needs) if refuses is not None and drawn.taken is None else None
        if kind is not None:
            draw.exclude(kind)
            continue
        taken = drawn.taken or waiting.take(drawn.task_queue_id, draw.law, taker)
        if taken is None or taken.is_last:
            transaction.on_commit(partial(remove_empty, {drawn.task_queue_id}), robust=True)
        if taken is not None:
            return Claimed(taken.job_id, drawn.needs)
    return None


def _leave_out(draw: Draw, needs: Needs, judge: _Requirements) -> None:
    """Exclude TaskQueues from the draw, after the requirements of these needs have failed."""
    if not _SEES_NEEDS.search(needs.requirements):
        draw.exclude_requirements(text=needs.requirements)
    if judge.failed[needs.owner] == _MOST_FAILED_OF_OWNER:
        draw.exclude_requirements(owner=needs.owner)
    if judge.failed.total() == _MOST_FAILED:
        draw.exclude_requirements()


class _Requirements:
    """Evaluates requirements against one pilot's ad, and counts by owner how many fail."""

    def __init__(self, resource: Resource, facts: Mapping[str, Any], published: Published) -> None:
        self.failed: Counter[str] = Counter()
        self._ad = cache(partial(pilot_ad, resource, facts, published))

    def accepts(self, needs: Needs) -> bool:
        if not needs.requirements:
            return True
        is_true = requirements_value(needs, self._ad()) is True
        self.failed[needs.owner] += not is_true
        return is_true


@transaction.atomic
def remove_empty(task_queue_ids: Collection[int] | None = None) -> int:
    """Delete those of the TaskQueues, or of all, that no job waits in; return how many.

    A TaskQueue that is being joined or recomputed at this moment is locked and passed over. The
    second look is under the lock: a job that joined just before it keeps its TaskQueue.
    """
    with connection.cursor() as cursor:
        if task_queue_ids is None:
            cursor.execute(REMOVE_STRAY_COUNTS)
            cursor.execute(FIND_EMPTY)
            task_queue_ids = [row[0] for row in cursor.fetchall()]
        cursor.execute(LOCK_EMPTY, [list(task_queue_ids)])
        locked = [row[0] for row in cursor.fetchall()]
        if not locked:
            return 0
        cursor.execute(REMOVE_EMPTY, [locked])
        removed = int(cursor.rowcount)
    if removed:
        note_removal()
    return removed
