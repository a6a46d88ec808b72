"""Selectors of storages: list with their use, one by its name, near sites, which offer space."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import BigIntegerField, Count, F, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from wms.accounting.walls import Walls, seen_by
from wms.core.errors import Conflict, NotFound
from wms.core.models import Role, User
from wms.core.policy import has_role
from wms.jobs.policy import in_workspaces
from wms.placement.models import PlacementAllocation, PlacementRequest
from wms.placement.states import WAITING, RequestState
from wms.placement.storages.endpoints import StorageMap, hosts_of
from wms.placement.storages.models import Storage


@dataclass(frozen=True, slots=True)
class StorageUse:
    """Load of a storage: requests under way, and those that wait for it."""

    running: int = 0
    waiting: int = 0


def may_configure(user: User) -> bool:
    """Whether the user may set up storages."""
    return has_role(user, Role.OPERATOR)


def listed_storages(now: datetime) -> QuerySet[Storage]:
    """All storages with their sites and the bytes that are `allocated`, by name. Two queries."""
    live = PlacementAllocation.objects.filter(
        storage=OuterRef("pk"), released_at=None, expires_at__gt=now
    ).order_by()
    sums = live.values("storage").annotate(all=Sum("size_bytes")).values("all")
    allocated = Coalesce(Subquery(sums), 0, output_field=BigIntegerField())
    return Storage.objects.annotate(allocated=allocated).prefetch_related("sites").order_by("name")


def find_storage(name: str, now: datetime) -> Storage:
    """One storage as it is listed. Raises NotFound."""
    found = listed_storages(now).filter(name=name).first()
    if found is None:
        raise NotFound(f"There is no storage {name[:64]}.")
    return found


def uses_of(storage_ids: Collection[int]) -> dict[int, StorageUse]:
    """Uses of storages by id, of those that are used. Two queries."""
    counts: dict[int, dict[str, int]] = defaultdict(lambda: {"running": 0, "waiting": 0})
    alive = PlacementRequest.objects.filter(state__in=[RequestState.PROCESSING, *WAITING])
    running = Count("pk", filter=Q(state=RequestState.PROCESSING))
    ends = ("destination_storage", "source_storage")
    for end, other in (ends, ends[::-1]):
        # A copy within a storage counts once.
        rows = alive.filter(**{f"{end}__in": storage_ids}).order_by()
        if end == "source_storage":
            rows = rows.exclude(**{other: F(end)})
        for row in rows.values(end).annotate(running=running, all=Count("pk")):
            counts[row[end]]["running"] += row["running"]
            counts[row[end]]["waiting"] += row["all"] - row["running"]
    return {pk: StorageUse(**each) for pk, each in counts.items()}


def allocations_at(user: User, storage: Storage, now: datetime) -> QuerySet[PlacementAllocation]:
    """Live allocations of a storage that the user may see, those that end first before others."""
    return visible_allocations(user).filter(
        storage=storage, released_at=None, expires_at__gt=now
    ).select_related("owner").order_by("expires_at", "pk")  # fmt: skip


def visible_allocations(user: User) -> QuerySet[PlacementAllocation]:
    """Allocations that the user may read: one's own, and those of the user's frontends' DAGs."""
    return seen_by(user, PlacementAllocation.objects.all(), allocations_within(user))


def allocations_within(user: User | None) -> Callable[[Walls], Q]:
    """Condition for the allocations that a user reaches within walls."""
    own = Q(owner=user)
    return lambda walls: walls.of_oneself(own) | in_workspaces(walls)


def storages_near() -> dict[int, list[str]]:
    """Names of the storages near each site, by the site's id, in order. One query."""
    found: dict[int, list[str]] = defaultdict(list)
    rows = Storage.sites.through.objects.filter(storage__is_enabled=True).order_by("storage__name")
    for site_id, name in rows.values_list("site_id", "storage__name"):
        found[site_id].append(name)
    return found


def storage_map() -> StorageMap:
    """All storages by their addresses, those that are off included. One query."""
    return StorageMap(Storage.objects.order_by("pk").values_list("pk", "endpoints"))


def names_of_storages() -> set[str]:
    """Names of all storages. One query."""
    return set(Storage.objects.values_list("name", flat=True))


def words_for_space() -> set[str]:
    """Names that space can be allocated at: storages, and hosts that lead to one. A query."""
    offers = _offering()
    return {each.name.lower() for each in offers} | {
        host for host, found in _by_host(offers).items() if len(found) == 1
    }


def storage_for_space(word: str) -> Storage:
    """The storage whose space a name, or the host of an endpoint, stands for.

    Raises NotFound, and Conflict for a host of several storages.
    """
    offers = _offering()
    named = next((each for each in offers if each.name.lower() == word.lower()), None)
    if named is not None:
        return named
    found = _by_host(offers).get(word.lower(), [])
    if not found:
        raise NotFound(f"no storage offers space of {word}")
    if len(found) > 1:
        names = ", ".join(each.name for each in found)
        raise Conflict(f"{word} is of several storages: name one of {names}")
    return found[0]


def _offering() -> Sequence[Storage]:
    return list(Storage.objects.filter(is_enabled=True, space_bytes__gt=0).order_by("name"))


def _by_host(storages: Sequence[Storage]) -> Mapping[str, list[Storage]]:
    found: dict[str, list[Storage]] = defaultdict(list)
    for storage in storages:
        for host in hosts_of(storage.endpoints):
            found[host].append(storage)
    return found
