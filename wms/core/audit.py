"""Audit trail of people's actions: writes its entries, and selects those that a user may read.

Apps register which of their objects a user may see: an entry is seen by who sees its object.

An entry is written in the transaction of the action, and counts as activity for the control loops.
Also the object that an entry is about (DAG, job, site, ...), found in the words of its target, and
the id of the HTTP request that is being answered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import BigIntegerField, Case, Exists, OuterRef, Q, QuerySet, When
from django.db.models.functions import Cast
from structlog.contextvars import get_contextvars

from wms.core.actors import Actor
from wms.core.errors import NotFound
from wms.core.idling import note_activity
from wms.core.models import AuditEntry, AuditKind, Role, User
from wms.core.policy import has_role

#: How a target begins when it is of a kind that has more than a name; what follows is its key.
_KEYS = (
    (AuditKind.DAG, re.compile(r"DAG (\d+)\b")),
    (AuditKind.JOB, re.compile(r"job (\d+)\b")),
    (AuditKind.CLUSTER, re.compile(r"cluster (\d+)\b")),
    (AuditKind.PLACEMENT, re.compile(r"placement request (\d+)\b")),
    (AuditKind.PILOT, re.compile(r"pilot (\d+)\b")),
    (AuditKind.SCHEDULE, re.compile(r"schedule (\d+)\b")),
    (AuditKind.FAILURE, re.compile(r"failure group (\d+)\b")),
    (AuditKind.SITE, re.compile(r"site (\S+)")),
    (AuditKind.QUEUE, re.compile(r"queue (\S+)")),
    (AuditKind.ACCOUNT, re.compile(r"user ([^\s,]+)")),
    (AuditKind.PERSONAL, re.compile(r"(?:filter|subscription|trial|upload) (\S+)")),
    (AuditKind.OPERATION, re.compile(r"bulk operation (\d+)\b")),
)
#: What was done to these may be read by everybody who may read them.
OPEN_KINDS = (
    AuditKind.DAG, AuditKind.JOB, AuditKind.CLUSTER, AuditKind.PLACEMENT, AuditKind.PILOT,
    AuditKind.SITE, AuditKind.FAILURE, AuditKind.SCHEDULE,
)  # fmt: skip
#: What a user may see of a kind, None for all; apps register theirs at start.
_SIGHTS: dict[AuditKind, Callable[[User], QuerySet[Any] | None]] = {}
_LONGEST_TARGET = AuditEntry._meta.get_field("target").max_length


@dataclass(frozen=True, slots=True)
class AuditObject:
    """Object of an entry: its kind, and the key by which its page is found."""

    kind: str
    key: str


def current_request_id() -> str:
    """The id of the request that is being answered; empty in loops and on the command line."""
    return str(get_contextvars().get("request_id", ""))


def object_of(target: str) -> AuditObject:
    """Object named by a target: `DAG 12, node A` is DAG 12. Without a page it is configuration."""
    for kind, pattern in _KEYS:
        if found := pattern.match(target):
            return AuditObject(kind, found[1])
    return AuditObject(AuditKind.CONFIGURATION, target)


def cut_target(target: str) -> str:
    """Target cut to the column's length: names of limits are made of several others."""
    return target[:_LONGEST_TARGET]


def record_action(
    action: str,
    *,
    target: str,
    actor: Actor,
    reason: str = "",
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Write one audit entry, inside the caller's transaction."""
    record_actions(action, targets=[target], actor=actor, reason=reason, facts=facts)


def record_actions(
    action: str,
    *,
    targets: Iterable[str],
    actor: Actor,
    reason: str = "",
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Write one audit entry for each target, inside the caller's transaction.

    A bulk operation has one entry of its own: what is done by it gets no others.
    """
    if actor.operation is not None:
        return
    told, request_id = dict(facts or {}), current_request_id()
    entries = []
    for target in map(cut_target, targets):
        about = object_of(target)
        entries.append(
            AuditEntry(
                actor=actor.name, action=action, target=target, reason=reason, facts=told,
                request_id=request_id, object_kind=about.kind, object_key=about.key,
            )
        )  # fmt: skip
    AuditEntry.objects.bulk_create(entries, batch_size=1000)
    transaction.on_commit(note_activity)


def visible_entries(user: User) -> QuerySet[AuditEntry]:
    """The entries that the user may read.

    Operators and admins read all. Others read what they did themselves, what was done to their own
    account, and what was done to objects of open kinds that they may see.
    """
    if not user.is_active:
        return AuditEntry.objects.none()
    if has_role(user, Role.OPERATOR):
        return AuditEntry.objects.all()
    name = user.get_username()
    own = Q(object_kind=AuditKind.ACCOUNT, object_key=name)
    sights = {kind: rows for kind, sight in _SIGHTS.items() if (rows := sight(user)) is not None}
    others = Q(object_kind__in=[kind for kind in OPEN_KINDS if kind not in sights])
    found, entries = Q(actor=name) | others | own, AuditEntry.objects.all()
    if sights:
        # Keys of other kinds are no numbers.
        number = Case(
            When(object_kind__in=list(sights), then=Cast("object_key", BigIntegerField())),
            output_field=BigIntegerField(),
        )
        entries = entries.alias(object_number=number)
    for kind, rows in sights.items():
        found |= Q(Exists(rows.filter(pk=OuterRef("object_number"))), object_kind=kind)
    return entries.filter(found)


def register_sight(kind: AuditKind, sight: Callable[[User], QuerySet[Any] | None]) -> None:
    """Register the selector of what a user may see of a kind; None from it stands for all."""
    _SIGHTS[kind] = sight


def find_entry(user: User, entry_id: int) -> AuditEntry:
    """One entry that the user may read. Raises NotFound."""
    entry = visible_entries(user).filter(pk=entry_id).first()
    if entry is None:
        raise NotFound(f"There is no audit entry {entry_id}, or you may not see it.")
    return entry


def own_actions(user: User) -> QuerySet[AuditEntry]:
    """Entries of the user's own actions, latest first."""
    return visible_entries(user).filter(actor=user.get_username()).order_by("-pk")
