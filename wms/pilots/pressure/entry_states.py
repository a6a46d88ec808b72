"""States of all entries at one moment: their pilots, what they offer to jobs, why they are closed.

The input of the director, read in some statements, however many entries there are.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from matching.pressure.capacity import ResourceVector
from matching.pressure.job_division import Identity, QueueOffer
from matching.task_queues.resources import Resource
from wms.accounting.frontends import Belongings, read_belongings
from wms.accounting.models import Frontend
from wms.jobs.limits import reached_limits
from wms.pilots.credentials.choice import Choices
from wms.pilots.factories.selectors import remote_reasons, waiting_orders
from wms.pilots.pressure.backoff import Kind, back_offs, described
from wms.pilots.pressure.identities import Identities, read_identities
from wms.pilots.pressure.snapshot import Owner, QueuePilots, pilots_by_entry, seen_disk_mb
from wms.pilots.program.published import published_here
from wms.sites.factories import factory_refusals
from wms.sites.frontends.entries import Entry, EntryKey, entry_offer, read_entries
from wms.sites.models import Queue
from wms.sites.selectors import enabled_queues, lapsed_identities
from wms.sites.standing import standings
from wms.taskqueues.selectors import Demand

_NONE = QueuePilots()


@dataclass(frozen=True, slots=True)
class EntryStates:
    """All entries at one moment.

    `closed` has the reasons of entries that are sent nothing for a time; `withdrawn` those of
    entries at which a frontend has pilots and may have no more, both by name. `offers` are those of
    all others, but those of remote frontends: `ordered` has the pilots that these want submitted,
    beyond those that wait already.
    """

    entries: Sequence[Entry]
    closed: Mapping[str, str]
    withdrawn: Mapping[str, str]
    offers: Mapping[str, Resource]
    pilots: Mapping[EntryKey, QueuePilots]
    identities: Identities
    belongings: Belongings
    ordered: Mapping[EntryKey, int]
    _at: Mapping[int, Sequence[Entry]] = field(default_factory=dict)

    def pilots_of(self, entry: Entry) -> QueuePilots:
        """The entry's pilots."""
        return self.pilots.get(entry.key) or _NONE

    def is_shared(self, entry: Entry) -> bool:
        """Whether several frontends have pilots in the entry's queue."""
        return len(self._at[entry.queue.pk]) > 1

    def places(self, entry: Entry, demanding: frozenset[int | None]) -> int:
        """Fresh pilots that the limits leave it, its share among the `demanding` frontends."""
        pilots = self.pilots_of(entry)
        own = pilots.queued + pilots.running
        if not self.is_shared(entry):
            return entry.max_pilots - own
        beside = self._at[entry.queue.pk]
        alive = sum(
            each.queued + each.running for each in (self.pilots_of(other) for other in beside)
        )
        shares = sum(other.share for other in beside if other is entry or other.key[1] in demanding)
        part = int(entry.queue.max_pilots * entry.share / shares) if shares else 0
        return min(entry.queue.max_pilots - alive, min(part, entry.max_pilots) - own)


def read_states(now: datetime, waiting: Sequence[Demand]) -> EntryStates:
    """States of all entries now; `waiting` is what the pilots are for."""
    queues = list(
        Queue.objects.select_related("site", "owner", "owner_group").order_by("site__name", "name")
    )
    times_s = sorted({demand.needs.cpu_time_s for demand in waiting})
    belongings, pilots = read_belongings(), pilots_by_entry(now, times_s=times_s)
    entries = read_entries(queues)
    gone = _gone_entries(queues, entries, pilots)
    closed = _closed(queues, [*entries, *gone], now)
    withdrawn = {str(entry): "its frontend is sent no more pilots here" for entry in gone}
    remotes, ordered = remote_reasons(now), waiting_orders()
    offers = {}
    for entry in entries:
        if entry.frontend is not None and entry.frontend.pk in remotes:
            withdrawn[str(entry)] = remotes[entry.frontend.pk]
            continue
        offer = None if str(entry) in closed else entry_offer(entry, belongings)
        if offer is not None:
            offers[str(entry)] = offer
        elif str(entry) not in closed:
            withdrawn[str(entry)] = "no group belongs to its frontend"
    has_owners = any(queue.has_owners for queue in queues)
    every = [*entries, *gone]
    at: dict[int, list[Entry]] = defaultdict(list)
    for entry in every:
        at[entry.queue.pk].append(entry)
    return EntryStates(
        every,
        closed,
        withdrawn,
        _limited(offers, entries, now),
        pilots,
        read_identities(waiting) if has_owners else Identities(),
        belongings,
        {entry.key: ordered.get(entry.key, 0) for entry in entries if _is_remote(entry, remotes)},
        at,
    )


def _is_remote(entry: Entry, remotes: Mapping[int, str]) -> bool:
    return entry.frontend is not None and entry.frontend.pk in remotes


def _gone_entries(
    queues: Sequence[Queue], entries: Sequence[Entry], pilots: Mapping[EntryKey, QueuePilots]
) -> list[Entry]:
    """Entries that are none any more, and have pilots left. One query, if there are any."""
    known = {entry.key for entry in entries}
    left = [
        key for key, each in pilots.items() if key not in known and (each.queued or each.running)
    ]
    if not left:
        return []
    by_id = {queue.pk: queue for queue in queues}
    frontends = Frontend.objects.in_bulk([pk for _, pk in left if pk is not None])
    return [
        Entry(by_id[queue_id], frontends.get(frontend_id) if frontend_id else None, 0.0, 0, 0)
        for queue_id, frontend_id in left
        if queue_id in by_id
    ]


def _limited(
    offers: Mapping[str, Resource], entries: Sequence[Entry], now: datetime
) -> dict[str, Resource]:
    """Offers without kinds of jobs at their limit, with what was seen of disks and checks."""
    limits, disk_mb = reached_limits(now), seen_disk_mb(now)
    published = published_here([entry.queue for entry in entries], now=now)
    found = {}
    for entry in entries:
        queue, offer = entry.queue, offers.get(str(entry))
        if offer is not None:
            at_limit = tuple(limit.kind for limit in limits if limit.is_at(queue.site.name))
            disk = min(offer.disk_mb, disk_mb.get(queue.pk, offer.disk_mb))
            found[str(entry)] = replace(
                offer, excluded=at_limit, disk_mb=disk, publishes=published[queue.pk]
            )
    return found


def _closed(queues: Sequence[Queue], entries: Sequence[Entry], now: datetime) -> dict[str, str]:
    """Entries that are sent nothing, whatever waits, with the reason, by name.

    A credential that is of no use, or that the batch system refuses, closes those of its frontend.
    """
    of_queues, choices = _closed_queues(queues, now), Choices(now)
    pausing = back_offs(now, [Kind.SUBMIT, Kind.START])
    closed = {}
    for entry in entries:
        queue, frontend_id = entry.queue, entry.key[1]
        chosen = choices.of(queue, frontend_id)
        contact = pausing.get((queue.pk, chosen.credential_id))
        why = of_queues.get(queue.pk) or chosen.refusal or (described(contact) if contact else "")
        if why:
            closed[str(entry)] = why
    return closed


def _closed_queues(queues: Sequence[Queue], now: datetime) -> dict[int, str]:
    """Queues that are sent nothing, whosever pilots it were, with the reason."""
    lapsed = lapsed_identities([(queue.owner, queue.owner_group) for queue in queues])
    is_open = set(enabled_queues(now).values_list("pk", flat=True))
    standing = standings(now)
    unserved = factory_refusals(queues, now)
    closed = {}
    for queue in queues:
        identity = (queue.owner, queue.owner_group)
        if not queue.is_enabled or not queue.site.is_enabled:
            closed[queue.pk] = "the queue or its site is switched off"
        elif queue.pk not in is_open:
            closed[queue.pk] = standing[queue.site_id].reason
        elif identity in lapsed:
            closed[queue.pk] = lapsed[identity]
        elif queue.pk in unserved:
            closed[queue.pk] = unserved[queue.pk]
    return closed


def queue_offers(states: EntryStates, waiting: Sequence[Demand]) -> dict[str, QueueOffer]:
    """Offers of the entries that are open to the jobs that wait, by name."""
    frontend_of = states.belongings.frontend_of
    demanding = frozenset(frontend_of.get(demand.needs.owner_group) for demand in waiting)
    demanding |= {frontend_id for (_, frontend_id), count in states.ordered.items() if count}
    found = {}
    for entry in states.entries:
        offer, pilots = states.offers.get(str(entry)), states.pilots_of(entry)
        if offer is None:
            continue
        found[str(entry)] = QueueOffer(
            ResourceVector(offer.cores, offer.memory_mb, offer.gpus, offer.cpu_time_s),
            places=states.places(entry, demanding),
            max_pilots=entry.max_pilots,
            waiting=pilots.queued,
            started=pilots.started,
            idle=pilots.free,
            has_owners=entry.queue.has_owners,
            waiting_of=_by_identity(pilots.queued_of, states.identities),
            idle_of=_rooms_by_identity(pilots.free_of, states.identities),
        )
    return found


def _by_identity(counts: Mapping[Owner, int], identities: Identities) -> Counter[Identity]:
    found: Counter[Identity] = Counter()
    for owner, count in counts.items():
        found[identities.of_pilot(owner)] += count
    return found


def _rooms_by_identity(
    rooms: Mapping[Owner, Counter[ResourceVector]], identities: Identities
) -> dict[Identity, Counter[ResourceVector]]:
    found: dict[Identity, Counter[ResourceVector]] = defaultdict(Counter)
    for owner, free in rooms.items():
        found[identities.of_pilot(owner)] += free
    return found
