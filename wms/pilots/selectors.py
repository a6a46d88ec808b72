"""Selectors of pilots: lists, details, events, ends of logs, fences, counts by queue and state.

A log that the pilot has not sent is asked of its batch system. Also the name of a pilot's worker
node, whether it is the only one known at its site, and queues on whose nodes a fence works.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from uuid import UUID

from django.db.models import Case, Count, OuterRef, Q, QuerySet, Subquery, TextField, Value, When
from django.db.models.functions import Coalesce, Now
from django.db.models.lookups import IsNull

from wms.accounting.walls import seen_by
from wms.core.database.locks import advisory_lock
from wms.core.errors import NotFound
from wms.core.models import User
from wms.elements.protocol import ElementError
from wms.jobs.output.streams import tail_of
from wms.pilots.credentials.choice import element_with
from wms.pilots.models import Pilot, PilotEvent, PilotLog
from wms.pilots.policy import pilots_within
from wms.pilots.pressure.backoff import described
from wms.pilots.pressure_models import ElementContact
from wms.pilots.protocol.logs import log_text
from wms.pilots.states import ALIVE, PENDING, PilotState


@dataclass(frozen=True, slots=True)
class LogTail:
    """End of a pilot's log, or the reason why there is none."""

    text: str = ""
    error: str = ""
    stored_bytes: int = 0


@dataclass(frozen=True, slots=True)
class PilotOfAttempt:
    """Pilot that has run an attempt: its name, and its fence if it reported one."""

    uuid: UUID
    fence: str

    @property
    def has_no_fence(self) -> bool:
        """True when its payloads can see the pilot, each other's files and the node."""
        return self.fence == "none"


def visible_pilots(user: User) -> QuerySet[Pilot]:
    """Pilots that the user may read: of the user's frontends, and at sites that are the user's."""
    return seen_by(user, Pilot.objects.all(), partial(pilots_within, user))


def listed_pilots(user: User) -> QuerySet[Pilot]:
    """Visible pilots with their queues and sites and what keeps them waiting, latest first."""
    columns = (
        "uuid", "state", "state_since", "state_reason", "native_id", "node", "created_at",
        "registered_at", "heartbeat_at", "ended_at", "queue__name", "queue__site__name",
        "batch_node", "batch_exit_code",
    )  # fmt: skip
    rows = visible_pilots(user).select_related("queue__site").only(*columns)
    return rows.annotate(unanswered=_unanswered()).order_by("-pk")


def _unanswered() -> Coalesce:
    """Reason why the batch system of a pilot does not answer; empty once the pilot has called in.

    By the questions that are asked as whom the pilot is submitted. One row of a unique index.
    """
    as_whom = Q(credential=OuterRef("credential")) | Q(
        IsNull(OuterRef("credential"), True), credential=None
    )
    failing = ElementContact.objects.filter(as_whom, queue=OuterRef("queue"), failures__gt=0)
    reason = Subquery(failing.order_by("failing_since").values("reason")[:1])
    return Coalesce(
        Case(When(state__in=PENDING, registered_at=None, then=reason)), Value(""),
        output_field=TextField(),
    )  # fmt: skip


def pilots_gone_wrong(user: User, frontend_id: int | None, since: datetime) -> QuerySet[Pilot]:
    """Visible pilots of a frontend that have failed since then, the latest first; None: default."""
    failed = listed_pilots(user).filter(
        state__in=[PilotState.FAILED, PilotState.ABORTED], ended_at__gt=since
    )
    return failed.filter(frontend=frontend_id, owner=None).order_by("-ended_at", "-pk")


def detailed_pilots(user: User) -> QuerySet[Pilot]:
    """Visible pilots with what a pilot's page shows."""
    related = ("queue__site", "owner", "owner_group", "frontend", "credential")
    rows = visible_pilots(user).select_related(*related).defer("credential__sealed")
    return rows.annotate(unanswered=_unanswered())


#: All frontends, the default one too, whose id is None.
_OF_ALL = -1


def live_pilots_by_queue(
    queue_ids: Collection[int] | None = None, *, of_frontend: int | None = _OF_ALL
) -> dict[int, dict[str, int]]:
    """Number of living pilots of each queue in each state; of one frontend only, if one is given.

    Of some queues only it is much cheaper where there are tens of thousands of pilots. Private
    pilots are of no frontend, and count always.
    """
    alive = Pilot.objects.filter(state__in=ALIVE)
    if of_frontend != _OF_ALL:
        alive = alive.filter(Q(frontend=of_frontend) | Q(owner__isnull=False))
    rows = (
        (alive if queue_ids is None else alive.filter(queue__in=queue_ids))
        .order_by()
        .values_list("queue_id", "state")
        .annotate(count=Count("pk"))
    )
    counts: dict[int, dict[str, int]] = defaultdict(dict)
    for queue_id, state, count in rows:
        counts[queue_id][state] = count
    return dict(counts)


def host_of(pilot: Pilot) -> str:
    """Name of the worker node that the pilot is on, if it reported one."""
    return str(pilot.node.get("hostname", ""))


def is_alone(pilot: Pilot) -> bool:
    """Whether no other worker node of the site is known."""
    here = Pilot.objects.filter(queue__site_id=pilot.queue.site_id, state=PilotState.RUNNING)
    return not here.exclude(node__hostname=host_of(pilot)).exists()


def events_of_pilot(pilot: Pilot) -> QuerySet[PilotEvent]:
    """The events of a pilot, latest first."""
    return pilot.events.order_by("-pk")


def log_tail(pilot: Pilot, *, limit_bytes: int) -> LogTail:
    """End of a pilot's log: what it sent, or else what its batch system has now."""
    stored = stored_log(pilot)
    if stored is None:
        return asked_log(pilot, limit_bytes=limit_bytes)
    text = tail_of(log_text(stored), limit_bytes=limit_bytes)
    return LogTail(text=text, stored_bytes=stored.size_bytes)


def stored_log(pilot: Pilot) -> PilotLog | None:
    """Log that the pilot has sent, if it has sent any."""
    return PilotLog.objects.filter(pk=pilot.pk, size_bytes__gt=0).first()


def asked_log(pilot: Pilot, *, limit_bytes: int) -> LogTail:
    """End of a pilot's log at the batch system now, or the reason why there is none."""
    if not pilot.native_id:
        return LogTail(error="The batch system has not taken the pilot yet.")
    if pilot.is_forgotten:
        return LogTail(error="The log was cleaned up some time after the pilot's end.")
    silent = ElementContact.objects.filter(
        queue=pilot.queue_id,
        credential=pilot.credential_id,
        kind=ElementContact.Kind.POLL,
        failures__gt=0,
        next_at__gt=Now(),
    ).first()
    if silent is not None:
        return LogTail(error=f"The batch system is left alone now: {described(silent)}")
    return _asked_log(pilot, limit_bytes)


def _asked_log(pilot: Pilot, limit_bytes: int) -> LogTail:
    """Log of a pilot at the batch system now.

    One reader waits for a batch system at a time: many could wait for one that hangs.
    """
    with advisory_lock(f"log:{pilot.queue_id}") as is_held:
        if not is_held:
            return LogTail(error="The batch system is asked for another log now: try again later.")
        try:
            return LogTail(text=_log_of(pilot, limit_bytes))
        except ElementError as error:
            return LogTail(error=f"The batch system gave no log: {error}")


def _log_of(pilot: Pilot, limit_bytes: int) -> str:
    element = element_with(pilot.queue, pilot.credential_id)
    return element.log(pilot.native_id, limit_bytes)


def find_stored_log(pilot: Pilot) -> PilotLog:
    """Log that the pilot has sent. Raises NotFound."""
    stored = stored_log(pilot)
    if stored is None:
        raise NotFound(f"Pilot {pilot.uuid} has sent no log, or it was cleaned up.")
    return stored


def find_pilot(user: User, uuid: UUID) -> Pilot:
    """One visible pilot. Raises NotFound."""
    pilot = detailed_pilots(user).filter(uuid=uuid).first()
    if pilot is None:
        raise NotFound(f"There is no pilot {uuid}, or you may not see it.")
    return pilot


def find_pilot_by_number(user: User, pilot_id: int) -> Pilot:
    """One visible pilot. Raises NotFound."""
    pilot = detailed_pilots(user).filter(pk=pilot_id).first()
    if pilot is None:
        raise NotFound(f"There is no pilot {pilot_id}, or you may not see it.")
    return pilot


def pilots_of_attempts(pilot_ids: Iterable[int]) -> dict[int, PilotOfAttempt]:
    """Names and fences of these pilots. One query."""
    rows = Pilot.objects.filter(pk__in=set(pilot_ids)).values_list("pk", "uuid", "node__fence")
    return {pk: PilotOfAttempt(uuid, fence or "") for pk, uuid, fence in rows}


def queues_where_found(queue_ids: Collection[int], fence: str) -> set[int]:
    """Queues, of those given, with a living pilot on whose node this fence works."""
    living = Pilot.objects.filter(queue__in=queue_ids, state__in=ALIVE, node__fence_found=fence)
    return set(living.values_list("queue_id", flat=True))
