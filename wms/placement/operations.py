"""Operations on placement requests: start and end attempts, leases, remove.

Files that an attempt brought appear in the workspace at its end. Attempts whose leases have expired
are ended, failed ones tried again after a pause. Time is always an argument, so that a simulation
can drive all of it by a clock of its own.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Final

from django.db import connection, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from wms.core.actors import Actor
from wms.core.database.locks import wait_for_locks
from wms.core.database.permanent_errors import storable
from wms.core.statemachine import DatabaseTime, Increment
from wms.core.transitions import Applied
from wms.jobs.models import WorkspaceFile
from wms.placement import lifecycle
from wms.placement.beginnings import Started, attempt_row, begun_attempt, facts_of
from wms.placement.catalogue.names import is_logical
from wms.placement.catalogue.operations import Content, register, take_out
from wms.placement.catalogue.resolving import aim
from wms.placement.conf import placement_conf
from wms.placement.models import PlacementAttempt, PlacementRequest
from wms.placement.sql import FIND_FURTHER, FIND_NEXT
from wms.placement.states import (
    MAX_ATTEMPTS,
    TERMINAL,
    TRANSITIONS,
    WAITING,
    RequestKind,
    RequestState,
)
from wms.placement.ways.choosing import Chooser
from wms.placement.ways.ends import Ends

#: So long a service that is not heard of keeps its attempts.
LEASE: Final = timedelta(seconds=60)
#: From a failed attempt to the next: doubled each time, up to a bound.
FIRST_PAUSE: Final = timedelta(seconds=5)
LONGEST_PAUSE: Final = timedelta(minutes=5)

LOST_CODE: Final = -1003
REMOVED_CODE: Final = -1002

NO_CONTENTS: Final[Mapping[str, str]] = {}

_ACTOR = Actor.system("placement")
_BATCH = 1000
#: Whoever grants an attempt counts those that are under way before.
_GRANTING: Final = "placement-granting"
#: The first requests of so many lanes are looked at; one that somebody changes is passed over.
_CANDIDATES: Final = 10
#: Files that are known to be larger are not granted with others.
SMALL_BYTES: Final = 2**20
#: Among so many services what a limit leaves is shared.
_SHARES: Final = 8


def _due(now: datetime) -> QuerySet[PlacementRequest]:
    return PlacementRequest.objects.filter(
        Q(due_at=None) | Q(due_at__lte=now), state__in=WAITING
    ).order_by("pk")


def due_requests(now: datetime) -> list[int]:
    """The requests whose next attempt may begin, first in first out."""
    return list(_due(now).values_list("pk", flat=True)[:_BATCH])


@transaction.atomic
def take_requests(now: datetime, *, most: int) -> list[Started]:
    """Begin the next attempt that is due and that no limit is against, and further ones like it.

    Further ones, `most` with the first, are of its lane: the same owner's, between the same
    storages. They are files that nobody knows to be large, and no logical names, whose attempts
    look at each other. Of what a limit leaves they are a small part, so that other services have
    theirs. One caller after the other, so that limits hold; requests that others are just changing
    are passed over.
    """
    wait_for_locks([_GRANTING])
    with connection.cursor() as cursor:
        limits = {"most_of_owner": placement_conf().per_user}
        cursor.execute(FIND_NEXT, {"now": now, "most": _CANDIDATES, **limits})
        rooms = dict(cursor.fetchall())
    free = {each.pk: each for each in _free_of(rooms)}
    found = next((free[pk] for pk in rooms if pk in free), None)
    if found is None:
        return []
    room = rooms[found.pk]
    if room is not None:
        most = min(most, max(1, room // _SHARES))
    return _start([found, *_further(found, most - 1, now)], now)


def take_request(now: datetime) -> Started | None:
    """Begin the next attempt that is due and that no limit is against."""
    return next(iter(take_requests(now, most=1)), None)


def _free_of(ids: Collection[int]) -> QuerySet[PlacementRequest]:
    """Those of these requests that wait and that nobody is just changing, locked."""
    rows = PlacementRequest.objects.filter(pk__in=ids, state__in=WAITING).defer("attributes")
    return (
        rows.select_related("workspace")
        .order_by("pk")
        .select_for_update(skip_locked=True, of=("self",))
    )


def _further(first: PlacementRequest, most: int, now: datetime) -> list[PlacementRequest]:
    """The next requests of a lane, up to one whose attempt is to be begun alone."""
    if most < 1 or not _is_small_file(first):
        return []
    lane = {
        "owner": first.owner_id,
        "source": first.source_storage_id or 0,
        "destination": first.destination_storage_id or 0,
    }
    with connection.cursor() as cursor:
        cursor.execute(FIND_FURTHER, {"now": now, "most": most, "first": first.pk, **lane})
        ids = [pk for (pk,) in cursor.fetchall()]
    return list(takewhile(_is_small_file, _free_of(ids)))


def _is_small_file(request: PlacementRequest) -> bool:
    """Whether a request is about a file by its address, one that nobody knows to be large."""
    if request.kind in (RequestKind.ALLOCATE, RequestKind.RELEASE):
        return False
    if is_logical(request.source_url) or is_logical(request.destination_url):
        return False
    return (request.expected_bytes or 0) <= SMALL_BYTES


@transaction.atomic
def start_attempt(request_id: int, now: datetime) -> Started | None:
    """Begin the next attempt of this request; None when it does not wait for one."""
    request = (
        PlacementRequest.objects.filter(pk=request_id, state__in=WAITING)
        .select_related("workspace")
        .select_for_update(of=("self",))
        .first()
    )
    return None if request is None else _start([request], now)[0]


def _start(requests: Sequence[PlacementRequest], now: datetime) -> list[Started]:
    """Begin attempts of requests, several only of one lane, under one lease."""
    lease = secrets.token_hex(16)
    storages = {each.source_storage_id for each in requests} | {
        each.destination_storage_id for each in requests
    }
    chooser = Chooser(now, Ends(storages))
    begun = [begun_attempt(each, lease, chooser) for each in requests]
    lifecycle.apply(
        "start",
        [each.request_id for each in begun],
        actor=_ACTOR,
        facts={each.request_id: facts_of(each) for each in begun},
        attempt_number=Increment(),
        due_at=None,
        source_storage_id=begun[0].resolved.source_storage_id,
    )
    PlacementAttempt.objects.bulk_create(
        attempt_row(each, now, lease_until=now + LEASE) for each in begun
    )
    return begun


def renew_lease(started: Started, *, now: datetime) -> bool:
    """Renew the lease; False when the attempt was ended by others and has to stop."""
    return bool(renew_leases([started], now=now))


def renew_leases(granted: Collection[Started], *, now: datetime) -> set[int]:
    """Renew the lease of attempts that were granted together; requests whose attempts live."""
    ids = [each.request_id for each in granted]
    lease = next(each.lease for each in granted)
    mine = PlacementAttempt.objects.filter(request_id__in=ids, exit_code=None, lease=lease)
    if mine.update(lease_until=now + LEASE) == len(ids):
        return set(ids)
    return set(mine.values_list("request_id", flat=True))


def _open_attempt(request_id: int, lease: str | None) -> QuerySet[PlacementAttempt]:
    attempts = PlacementAttempt.objects.filter(request_id=request_id, exit_code=None)
    return attempts if lease is None else attempts.filter(lease=lease)


@transaction.atomic
def end_attempt(
    request_id: int,
    *,
    exit_code: int,
    message: str = "",
    now: datetime,
    lease: str | None = None,
    size_bytes: int | None = None,
    note: str = "",
    contents: Mapping[str, str] = NO_CONTENTS,
    removed: Collection[str] = (),
    content: Content | None = None,
    taken_out: Collection[int] = (),
) -> bool:
    """The open attempt has ended: the request is completed, waits for the next one, or has failed.

    `contents`, stored contents by path, appear in the workspace with it, and files `removed` are
    gone from it. The `content` of a logical name is registered, replicas `taken_out` are forgotten.
    Raises Conflict where the name stands for another content. False when there is no open attempt,
    or it is another's whose lease is given; nothing changes then.
    """
    message, note = storable(message), storable(note)
    request = _locked_with_leader(request_id)
    if request is None or request.state != RequestState.PROCESSING:
        return False
    closed = _open_attempt(request_id, lease).update(
        exit_code=exit_code, message=message, ended_at=now, size_bytes=size_bytes, note=note
    )
    if not closed:
        return False
    publish(((request.workspace_id, *each) for each in contents.items()), now)
    if removed:
        WorkspaceFile.objects.filter(
            workspace_id=request.workspace_id, path__in=list(removed)
        ).delete()
    if content is not None and is_logical(request.destination_url):
        register(request, content)
    take_out(taken_out)
    _try_again_or_fail(request, exit_code, message, now)
    return True


def _locked_with_leader(request_id: int) -> PlacementRequest | None:
    """The request, locked, and the leader of its batch before it."""
    leaders = PlacementRequest.objects.filter(pk=request_id).values_list("leader_id", flat=True)
    return lock_with_leaders([request_id], leaders).get(request_id)


def lock_with_leaders(
    request_ids: Collection[int], leader_ids: Iterable[int | None]
) -> dict[int, PlacementRequest]:
    """The requests, locked, and the leaders of their batches with them.

    The ends of a batch come one after the other, so that the last one knows that it is the last.
    """
    # By two lists of ids: a condition on either the one or the other reads the whole table.
    ids = {*request_ids, *(each for each in leader_ids if each is not None)}
    rows = PlacementRequest.objects.filter(pk__in=ids).defer("attributes")
    return {each.pk: each for each in rows.order_by("pk").select_for_update(of=("self",))}


def publish(files: Iterable[tuple[int, str, str]], now: datetime) -> None:
    """Put contents, given by workspace and path, into workspaces; the last one of a path stays."""
    rows = {(workspace_id, path): sha256 for workspace_id, path, sha256 in files}
    WorkspaceFile.objects.bulk_create(
        [
            WorkspaceFile(workspace_id=workspace_id, path=path, blob_id=sha256, modified_at=now)
            for (workspace_id, path), sha256 in sorted(rows.items())
        ],
        update_conflicts=True,
        unique_fields=["workspace", "path"],
        update_fields=["blob", "attempt", "modified_at"],
    )


def _try_again_or_fail(
    request: PlacementRequest, exit_code: int, message: str, now: datetime
) -> None:
    facts = {request.pk: {"attempt": request.attempt_number, "exit_code": exit_code}}
    if exit_code == 0:
        lifecycle.apply("complete", [request.pk], actor=_ACTOR, facts=facts, ended_at=now)
        return
    reason = message or f"the module ended with exit code {exit_code}"
    if request.attempt_number >= request.max_attempts:
        last = f"attempt {request.attempt_number} was the last: {reason}"
        lifecycle.apply("fail", [request.pk], actor=_ACTOR, reason=last, facts=facts, ended_at=now)
        return
    due_at = now + pause_after(request.attempt_number)
    lifecycle.apply(
        "reschedule", [request.pk], actor=_ACTOR, reason=reason, facts=facts, due_at=due_at,
        source_storage_id=aim(request, request.attempt_number + 1, Chooser(now)),
    )  # fmt: skip


def pause_after(attempt_number: int) -> timedelta:
    """Backoff of a request after this many failed attempts."""
    return min(FIRST_PAUSE * (1 << min(attempt_number - 1, 20)), LONGEST_PAUSE)


@transaction.atomic
def remove_requests(
    request_ids: Collection[int], *, actor: Actor, reason: str, now: datetime | None = None
) -> Applied:
    """End requests for good; a transfer that runs is stopped within seconds."""
    named = PlacementRequest.objects.filter(pk__in=request_ids)
    leaders = named.values_list("leader_id", flat=True).distinct().order_by()
    locked = lock_with_leaders(request_ids, list(leaders))
    living = {pk for pk, each in locked.items() if each.state not in TERMINAL}
    changed = sorted(living.intersection(request_ids))
    lifecycle.apply("remove", changed, actor=actor, reason=reason, ended_at=now or DatabaseTime())
    PlacementAttempt.objects.filter(request_id__in=changed, exit_code=None).update(
        exit_code=REMOVED_CODE, message=reason, ended_at=now or Now()
    )
    return Applied(changed=changed, skipped=sorted(set(request_ids) - set(changed)))


@transaction.atomic
def retry_requests(request_ids: Collection[int], *, actor: Actor, reason: str) -> Applied:
    """Try requests again that have failed or were removed, as often as at first.

    Those of a DAG are skipped: it has heard of their end, and has retries of its own.
    """
    named = PlacementRequest.objects.filter(pk__in=request_ids, topic="")
    rows = named.filter(state__in=TRANSITIONS["retry"].sources).order_by("pk")
    changed = list(rows.select_for_update(of=("self",)).values_list("pk", flat=True))
    PlacementRequest.objects.filter(pk__in=changed).update(
        max_attempts=F("attempt_number") + MAX_ATTEMPTS
    )
    lifecycle.apply("retry", changed, actor=actor, reason=reason, ended_at=None, due_at=None)
    return Applied(changed=changed, skipped=sorted(set(request_ids) - set(changed)))


def remove_batches(leader_ids: Collection[int], *, actor: Actor, reason: str) -> Applied:
    """End requests for good, and all of their batches."""
    batches = PlacementRequest.objects.filter(
        Q(pk__in=leader_ids) | Q(leader__in=leader_ids)
    ).exclude(state__in=TERMINAL)
    ids = list(batches.values_list("pk", flat=True))
    return remove_requests(ids, actor=actor, reason=reason)


def end_lost_attempts(now: datetime) -> list[int]:
    """End attempts whose leases have expired; the ids of their requests.

    A copy appears under its name only when it is whole, so that another attempt does no harm.
    """
    lost = PlacementAttempt.objects.filter(exit_code=None, lease_until__lt=now).order_by("pk")
    return [
        attempt.request_id
        for attempt in lost[:_BATCH]
        if end_attempt(
            attempt.request_id,
            lease=attempt.lease,
            exit_code=LOST_CODE,
            message="the service that ran the attempt was lost",
            now=now,
        )
    ]
