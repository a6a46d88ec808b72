"""Selectors of pilot pressure on queues: requests for pilots, back-off, history, pilots alive.

Also the owners of private pilots at a queue with what they need, and requests for sites without any
pilot.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import (
    Count,
    Exists,
    F,
    FilteredRelation,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
)

from wms.accounting.frontends import DEFAULT_FRONTEND
from wms.accounting.models import AccountingGroup
from wms.accounting.walls import OPEN, Walls, seen_by, walls_of
from wms.core.errors import NotFound
from wms.core.models import User
from wms.pilots.connection_models import ConnectionTest
from wms.pilots.models import Pilot
from wms.pilots.pressure.backoff import backing_off
from wms.pilots.pressure.identities import stored_needs
from wms.pilots.pressure.snapshot import Owner
from wms.pilots.pressure_models import ElementContact, PressureRecord, PressureRequest
from wms.pilots.states import ALIVE, PENDING, PilotState
from wms.sites.models import Queue, Site
from wms.sites.selectors import find_visible_site, queues_of

#: Time for which the reasons of a turn hold, if there has been no other.
_TURN_TOLD_FOR = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Pressure:
    """Pressure on one queue: its latest requests, if there was a cycle since it was made.

    Each frontend that has pilots there has one, the default frontend's comes first: `requests` are
    those that the user may see, `request` is that of all frontends together. `troubles` are the
    kinds of questions that its batch system does not answer as it should, `connection` is the last
    test of that by hand.
    """

    queue: Queue
    requests: Sequence[PressureRequest]
    request: PressureRequest | None
    troubles: Sequence[ElementContact]
    connection: ConnectionTest | None = None

    @property
    def has_frontends(self) -> bool:
        """Whether others than the default frontend have pilots there."""
        return any(each.frontend_id is not None for each in self.requests)

    @property
    def reasons(self) -> list[str]:
        """Reasons that cut the numbers down now, from wanted to submitted, each once.

        Those of a turn of some time ago are over: no turn has been due since.
        """
        return reasons_of(self.request)


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """Queue with its request, its failing contacts, and its living pilots by their states."""

    queue: Queue
    request: PressureRequest | None
    queued: int
    running: int
    stalled: int
    troubles: Sequence[ElementContact]

    @property
    def reasons(self) -> list[str]:
        """Reasons as those of `Pressure`."""
        return reasons_of(self.request)


def whole_request(
    requests: Sequence[PressureRequest], walls: Walls = OPEN
) -> PressureRequest | None:
    """Sum of the requests for a queue, which is not stored; the only one where there is one.

    Reasons then begin with the frontend's name. Amounts are of all frontends, since the queue is
    shared; reasons and owners only of those that walls let one see.
    """
    told = [each for each in requests if walls.lets_in(each.frontend_id)]
    if len(requests) < 2 and requests == told:
        return requests[0] if requests else None
    latest = max(requests, key=lambda each: each.updated_at)
    served = [each.served_at for each in requests if each.served_at]
    amounts = {
        name: sum(getattr(each, name) for each in requests)
        for name in ("wanted", "granted", "ceiling", "waiting_jobs", "submitted")
    }
    return PressureRequest(
        queue_id=latest.queue_id,
        **amounts,
        reasons=[f"{whose(each)}: {text}" for each in told for text in each.reasons],
        turn_reasons=[f"{whose(each)}: {text}" for each in told for text in each.turn_reasons],
        owners=[owner for each in told for owner in each.owners],
        updated_at=latest.updated_at,
        lease_until=latest.lease_until,
        served_at=max(served, default=None),
    )


def whose(request: PressureRequest) -> str:
    """Name of the frontend that a request is of."""
    return request.frontend.name if request.frontend else DEFAULT_FRONTEND


def _requests_of(queues: Collection[Queue]) -> dict[int, list[PressureRequest]]:
    """Requests for these queues by queue, the default frontend's first. One query."""
    found: dict[int, list[PressureRequest]] = defaultdict(list)
    rows = PressureRequest.objects.filter(queue__in=queues).select_related("frontend")
    for row in rows.order_by(F("frontend__name").asc(nulls_first=True)):
        found[row.queue_id].append(row)
    return found


def reasons_of(request: PressureRequest | None) -> list[str]:
    """Reasons that cut a request down now, as those of `Pressure`; none without a request."""
    if request is None:
        return []
    served_at = request.served_at
    is_of_now = served_at is not None and request.updated_at - served_at < _TURN_TOLD_FOR
    turn_reasons = request.turn_reasons if is_of_now else []
    return list(dict.fromkeys([*request.reasons, *turn_reasons]))


def queue_statuses(user: User, site: Site) -> list[QueueStatus]:
    """Queues of a site by name, as the user may see them. Three queries."""
    alive = FilteredRelation("pilots", condition=Q(pilots__state__in=ALIVE))

    def count(*states: PilotState) -> Count:
        return Count("alive", filter=Q(alive__state__in=states))

    rows: QuerySet[Any] = (
        queues_of(site)
        .annotate(
            alive=alive,
            queued=count(PilotState.SUBMITTED, PilotState.QUEUED),
            running=count(PilotState.RUNNING),
            stalled=count(PilotState.STALLED),
        )
        .order_by("name")
    )
    requests, walls = _requests_of(list(rows)), walls_of(user)
    troubles = _troubles_of(user, list(rows))
    return [
        QueueStatus(
            row,
            whole_request(requests.get(row.pk, []), walls),
            row.queued,
            row.running,
            row.stalled,
            troubles[row.pk],
        )
        for row in rows
    ]


def pressure_at(user: User, site: Site) -> dict[int, Pressure]:
    """Pressure on each queue of a site as the user may see it, by the queue's id. Three queries."""
    queues = list(queues_of(site))
    requests = _requests_of(queues)
    troubles, walls = _troubles_of(user, queues), walls_of(user)
    return {
        queue.pk: _pressure(queue, requests.get(queue.pk, []), troubles[queue.pk], walls)
        for queue in queues
    }


def _troubles_of(user: User, queues: Collection[Queue]) -> dict[int, list[ElementContact]]:
    """Failing contacts of these queues that the user may see, by queue. One query."""
    found: dict[int, list[ElementContact]] = defaultdict(list)
    failing = _contacts_of(user, ElementContact.objects.filter(queue__in=queues, failures__gt=0))
    failing = failing.select_related("credential").defer("credential__sealed")
    for contact in failing.order_by("kind", "credential"):
        found[contact.queue_id].append(contact)
    return found


def _pressure(
    queue: Queue,
    requests: Sequence[PressureRequest],
    troubles: Sequence[ElementContact],
    walls: Walls,
) -> Pressure:
    seen = [each for each in requests if walls.lets_in(each.frontend_id)]
    return Pressure(queue, seen, whole_request(requests, walls), troubles)


def find_pressure(user: User, site_name: str, queue_name: str) -> Pressure:
    """Pressure on one queue of a site that the user may see, and its last test. Raises NotFound."""
    site = find_visible_site(user, site_name)
    pressures = (each for each in pressure_at(user, site).values() if each.queue.name == queue_name)
    pressure = next(pressures, None)
    if pressure is None:
        raise NotFound(f"The site {site_name} has no queue {queue_name}.")
    test = ConnectionTest.objects.filter(queue=pressure.queue).first()
    return replace(pressure, connection=test)


@dataclass(frozen=True, slots=True)
class OwnerLine:
    """Owner of private pilots at a queue whose pilots have several: what is needed, and there.

    `draws` is the owner's part in the draws, in per cent. `group` is empty for none; `is_shared`
    when the pilots take the jobs of all its members.
    """

    owner: str
    group: str
    is_shared: bool
    needed: int
    draws: float
    queued: int
    running: int


def owner_lines(user: User, pressure: Pressure) -> list[OwnerLine]:
    """Owners of private pilots at a queue, who need most first. Three queries, if there are any.

    Those that the user may see: before walls, owners in the name of groups of the user's frontends.
    """
    queue, needs = pressure.queue, stored_needs(pressure.request)
    if not queue.has_owners:
        return []
    alive = Pilot.objects.filter(queue=queue, state__in=ALIVE, owner__isnull=False).order_by()
    is_queued = Q(state__in=PENDING)
    pilots: dict[Owner, tuple[int, int]] = {
        (owner, group): (queued, running)
        for owner, group, queued, running in alive.values_list("owner_id", "owner_group_id")
        .annotate(queued=Count("pk", filter=is_queued), running=Count("pk", filter=~is_queued))
        .values_list("owner_id", "owner_group_id", "queued", "running")
    }
    known = {(row.owner, row.group): row for row in needs}
    walls = walls_of(user)
    owners = {each for each in {*known, *pilots} if walls.lets_in_group(each[1], each[0])}
    names = dict(User.objects.filter(pk__in={o for o, _ in owners}).values_list("pk", "username"))
    groups = AccountingGroup.objects.in_bulk([group for _, group in owners if group is not None])
    whole = sum(row.weight for row in needs) or 1.0
    lines = [
        OwnerLine(
            names.get(owner, ""),
            str(groups[group]) if group in groups else "",
            group in groups and groups[group].has_job_sharing,
            row.pilots if (row := known.get((owner, group))) else 0,
            100 * row.weight / whole if row else 0.0,
            *pilots.get((owner, group), (0, 0)),
        )
        for owner, group in owners
    ]
    return sorted(lines, key=lambda line: (-line.needed, line.owner, line.group))


def contacts_backing_off(user: User, now: datetime) -> QuerySet[ElementContact]:
    """Contacts that back off now after failures, longest first, as far as the user may see them."""
    return _contacts_of(user, backing_off(now))


def unanswered_sites(now: datetime) -> set[int]:
    """Ids of the sites of which no queue that is switched on answers now. One query."""
    silent = Exists(backing_off(now).filter(queue=OuterRef("pk")))
    queues = Queue.objects.filter(is_enabled=True).order_by().values("site")
    counted = queues.annotate(every=Count("pk"), failing=Count("pk", filter=silent))
    return set(counted.filter(every=F("failing")).values_list("site", flat=True))


def _contacts_of(user: User, contacts: QuerySet[ElementContact]) -> QuerySet[ElementContact]:
    """Those by the queues' own logins, and by credentials of the user's frontends."""

    def within(walls: Walls) -> Q:
        return Q(credential__isnull=True) | walls.by_frontend("credential__frontend")

    return seen_by(user, contacts, within)


def requests_without_pilots(user: User, now: datetime) -> QuerySet[PressureRequest]:
    """Requests of the user's frontends for queues with waiting jobs at sites without a live pilot.

    One for each queue, those of the most jobs first; `all_jobs` are those of all these frontends.
    """
    valid = PressureRequest.objects.filter(lease_until__gt=now)
    seen = seen_by(user, valid, Walls.by_frontend)
    at_site = Pilot.objects.filter(queue__site=OuterRef("queue__site"), state__in=ALIVE)
    # Of several frontends at one queue, the request of the most jobs stands for all.
    larger = Q(waiting_jobs__gt=OuterRef("waiting_jobs")) | Q(
        waiting_jobs=OuterRef("waiting_jobs"), pk__lt=OuterRef("pk")
    )
    at_queue = seen.filter(queue=OuterRef("queue"))
    starving = seen.filter(
        ~Exists(at_site), ~Exists(at_queue.filter(larger)), waiting_jobs__gt=0,
        queue__is_enabled=True,
    )  # fmt: skip
    by_queue = at_queue.order_by().values("queue").annotate(jobs=Sum("waiting_jobs"))
    return starving.annotate(all_jobs=Subquery(by_queue.values("jobs"))).order_by(
        "-all_jobs", "queue"
    )


def queues_of_expired_requests(now: datetime) -> list[int]:
    """Queues with requests that were not renewed, and pilots that still wait for them."""
    waiting = Pilot.objects.filter(queue=OuterRef("queue"), state__in=PENDING)
    rows = PressureRequest.objects.filter(Exists(waiting), lease_until__lt=now).order_by()
    return list(rows.values_list("queue", flat=True).distinct())


def records_of(user: User, queue: Queue) -> QuerySet[PressureRecord]:
    """Requests of the user's frontends for a queue in the last day, latest first."""
    records = seen_by(user, PressureRecord.objects.filter(queue=queue), Walls.by_frontend)
    return records.select_related("frontend").order_by("-pk")
