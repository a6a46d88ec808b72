"""Identities (owner, group) of private pilots at queues whose pilots have several owners.

How many pilots each owner needs, the draw of an owner when a pilot is submitted, and waiting pilots
whose owners need none. Identities of jobs and of pilots are compared by job sharing of the group.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count

from matching.plurals import pilots_are
from matching.pressure.job_division import Identity, Need
from matching.task_queues.needs import Needs
from wms.accounting.models import AccountingGroup
from wms.core.models import User
from wms.pilots.models import Pilot
from wms.pilots.pressure.snapshot import Owner, QueuePilots, scopes
from wms.pilots.pressure_models import PressureRequest
from wms.pilots.states import ALIVE, PENDING, PilotState
from wms.sites.models import Queue
from wms.sites.selectors import lapsed_identities
from wms.taskqueues.selectors import Demand

#: Nobody who needs a pilot is left out of the draw for ever.
_LEAST_WEIGHT = 1e-12


@dataclass(frozen=True, slots=True)
class OwnerNeed:
    """Pilots that one owner needs at a queue, and the weight in the draw: the sum of the priorities
    of the TaskQueues that fit. `gone_at`: since when none is needed, while some still wait.
    """

    owner: int
    group: int | None
    pilots: int = 0
    weight: float = 0.0
    gone_at: str = ""


@dataclass(slots=True)
class Identities:
    """Identities of TaskQueues and of private pilots, by which the two are compared."""

    sharing: frozenset[int] = frozenset()
    _by_needs: dict[tuple[str, str], Identity] = field(default_factory=dict)
    _owners: dict[Identity, Owner] = field(default_factory=dict)

    def of_needs(self, needs: Needs) -> Identity | None:
        """Identity of the private pilots that take these jobs.

        None where they would be given none: the owner's account is switched off, or not in the
        group any more, and nobody shares the jobs.
        """
        return self._by_needs.get((needs.owner_group, needs.owner))

    def of_pilot(self, owner: Owner) -> Identity:
        """Identity of a private pilot, by the ids of its owner and group."""
        owner_id, group_id = owner
        return group_id or 0, 0 if group_id in self.sharing else owner_id

    def owner_of(self, identity: Identity) -> Owner:
        """Owner and group of a pilot that is sent for this identity."""
        known = self._owners.get(identity)
        return known or (identity[1], identity[0] or None)

    def learn(self, key: tuple[str, str], owner: Owner) -> None:
        """Note who owns the jobs of a group and an owner, named in the key."""
        identity = self.of_pilot(owner)
        self._by_needs[key] = identity
        self._owners.setdefault(identity, owner)

    def learn_shared(self, key: tuple[str, str], group_id: int) -> None:
        """Note jobs of a group that pilots of other members take, if it has any who wait."""
        if (group_id, 0) in self._owners:
            self._by_needs[key] = group_id, 0


def read_identities(demands: Iterable[Demand]) -> Identities:
    """Identities of all that waits. Three queries."""
    keys = {(each.needs.owner_group, each.needs.owner) for each in demands}
    users = {
        user.get_username(): user
        for user in User.objects.filter(username__in={owner for _, owner in keys})
    }
    groups = {group.name: group for group in AccountingGroup.objects.all()}
    found = Identities(frozenset(group.pk for group in groups.values() if group.has_job_sharing))
    pairs = {
        key: (users[key[1]], groups.get(key[0]))
        for key in sorted(keys)
        if key[1] in users and (not key[0] or key[0] in groups)
    }
    lapsed = lapsed_identities(set(pairs.values()))
    for key, (user, group) in pairs.items():
        if (user, group) not in lapsed:
            found.learn(key, (user.pk, group.pk if group else None))
    for key, (_, group) in pairs.items():
        if group is not None:
            found.learn_shared(key, group.pk)
    return found


def owner_needs(
    need: Need,
    pilots: QueuePilots,
    identities: Identities,
    old: PressureRequest | None,
    now: datetime,
) -> list[dict[str, Any]]:
    """The needs of each owner at a queue, as its request keeps them."""
    gone = {(row.owner, row.group): row.gone_at for row in stored_needs(old) if row.gone_at}
    rows = [
        OwnerNeed(*identities.owner_of(identity), own.pilots, own.share)
        for identity, own in need.by_identity.items()
    ]
    known = {identities.of_pilot((row.owner, row.group)) for row in rows if row.pilots}
    rows += [
        OwnerNeed(*owner, gone_at=gone.get(owner) or now.isoformat())
        for owner in pilots.queued_of
        if identities.of_pilot(owner) not in known
    ]
    return [asdict(row) for row in rows if row.pilots or row.gone_at]


def stored_needs(request: PressureRequest | None) -> list[OwnerNeed]:
    """The needs of owners that a request has."""
    return [OwnerNeed(**each) for each in request.owners] if request is not None else []


def waiting_of(queue: Queue) -> Counter[Owner]:
    """Pilots of a queue that have not called in, by owner and group."""
    waiting = Pilot.objects.filter(queue=queue, state__in=PENDING, owner__isnull=False)
    rows = waiting.order_by().values_list("owner_id", "owner_group_id")
    return Counter({(owner, group): n for owner, group, n in rows.annotate(n=Count("pk"))})


def stranded(need: Need, waiting: Mapping[Owner, int], identities: Identities) -> int:
    """Pilots that wait for somebody who needs fewer: they fill nobody else's level."""
    theirs: Counter[Identity] = Counter()
    for owner, count in waiting.items():
        theirs[identities.of_pilot(owner)] += count
    needed = {identity: own.pilots for identity, own in need.by_identity.items()}
    return sum(max(0, count - needed.get(each, 0)) for each, count in theirs.items())


def _left(
    needs: Iterable[OwnerNeed], waiting: Mapping[Owner, int], identities: Identities
) -> Counter[Identity]:
    """Pilots that each identity still needs beside those that wait; negative where too many do."""
    left: Counter[Identity] = Counter()
    for row in needs:
        left[identities.of_pilot((row.owner, row.group))] += row.pilots
    for owner, count in waiting.items():
        left[identities.of_pilot(owner)] -= count
    return left


def known_identities() -> Identities:
    """Identities of pilots, by the groups whose members share their jobs."""
    groups = AccountingGroup.objects.filter(has_job_sharing=True)
    return Identities(frozenset(groups.values_list("pk", flat=True)))


def draw_owners(request: PressureRequest, count: int) -> tuple[list[Owner], list[str]]:
    """Owners of so many new pilots, fewer where nobody needs more, and the limits that were met.

    Each is drawn by the priorities of the TaskQueues among those who still need one.
    """
    needs, identities = stored_needs(request), known_identities()
    left = _left(needs, waiting_of(request.queue), identities)
    rows = {identities.of_pilot((row.owner, row.group)): row for row in needs if row.pilots}
    rooms, limits = _group_rooms(row.group for row in rows.values())
    drawn: list[Owner] = []
    while len(drawn) < count:
        needy = [
            identity
            for identity, row in rows.items()
            if left[identity] > 0 and rooms.get(row.group, 1) > 0
        ]
        if not needy:
            break
        weights = [max(rows[identity].weight, _LEAST_WEIGHT) for identity in needy]
        [identity] = random.choices(needy, weights)
        row = rows[identity]
        left[identity] -= 1
        if row.group in rooms:
            rooms[row.group] -= 1
        drawn.append((row.owner, row.group))
    short = {row.group for identity, row in rows.items() if left[identity] > 0}
    return drawn, [limits[group] for group in short if rooms.get(group) == 0]


def _group_rooms(
    groups: Iterable[int | None],
) -> tuple[dict[int | None, int], dict[int | None, str]]:
    """Pilots that the limits of groups leave, by group, and these limits in words."""
    asked = {group for group in groups if group is not None}
    named = dict(AccountingGroup.objects.filter(pk__in=asked).values_list("name", "pk"))
    bounds = {name: each for name, each in scopes().groups.items() if name in named}
    alive = Pilot.objects.filter(state__in=ALIVE, owner_group__in=named.values()).order_by()
    counts = dict(alive.values_list("owner_group_id").annotate(Count("pk")))
    rooms: dict[int | None, int] = {}
    limits: dict[int | None, str] = {}
    for name, each in bounds.items():
        there = counts.get(named[name], 0)
        rooms[named[name]] = max(0, each.max_pilots - there)
        limits[named[name]] = f"{each.name} {each.max_pilots}: {pilots_are(there, 'there')}"
    return rooms, limits


def unneeded_pilots(request: PressureRequest, now: datetime) -> list[int]:
    """Pilots that wait for owners who have long needed none, the youngest first.

    As many as the queue lets one turn take back.
    """
    queue = request.queue
    gone = [row for row in stored_needs(request) if is_long_gone(row, queue, now)]
    owners = [(row.owner, row.group) for row in gone]
    if not owners:
        return []
    waiting = Pilot.objects.filter(
        queue=queue, state=PilotState.QUEUED, owner__in={owner for owner, _ in owners}
    )
    rows = waiting.order_by("-pk").values_list("pk", "owner_id", "owner_group_id")
    theirs = [pk for pk, owner, group in rows if (owner, group) in owners]
    return theirs[: queue.max_removals]


def is_long_gone(row: OwnerNeed, queue: Queue, now: datetime) -> bool:
    """Whether an owner has needed none of the waiting pilots for as long as the queue says."""
    if not row.gone_at:
        return False
    return now - datetime.fromisoformat(row.gone_at) > timedelta(seconds=queue.removal_wait_s)
