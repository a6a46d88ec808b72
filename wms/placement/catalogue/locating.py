"""Location of input data: the sites near replicas of logical names that jobs and DAGs want.

A file ties a job to the sites that a storage with a replica is near. One of which all replicas are
at storages near no site is equally far from everywhere, and ties to none; one without any replica
that the owner may read is waited for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from django.db.models import F

from matching.plurals import counted
from wms.accounting.walls import Walls, walls_of, with_groups
from wms.core.models import User
from wms.jobs.input_data.wanted import Located, Wanted, locate, wanted_by_job
from wms.jobs.models import Job
from wms.jobs.states import InputCause
from wms.placement.catalogue.models import LogicalFile
from wms.placement.catalogue.names import url_of
from wms.placement.storages.models import Storage

#: Files, and storages or sites of each, that a sentence names.
_FILES_TOLD: Final = 3
_PLACES_TOLD: Final = 5
_NAME_TOLD: Final = 200
_TENTHS: Final = 10


@dataclass(frozen=True, slots=True)
class _Place:
    """A storage, and the names of the sites that it is near."""

    name: str
    sites: frozenset[str]
    is_enabled: bool


@dataclass(slots=True)
class _File:
    """A logical file with the ids of the storages that have replicas."""

    owner_id: int
    group: str
    size_bytes: int
    storage_ids: list[int] = field(default_factory=list)


def locate_inputs(wanted: Sequence[Wanted]) -> list[Located]:
    """Where wanted inputs are now. Four queries, however many are asked for.

    Two more where many owners are in groups of frontends.
    """
    files = _files({name for each in wanted for name in each.names})
    places = _places()
    walls = _walls({(each.owner, each.limited_to) for each in wanted})
    by_name = {place.name: pk for pk, place in places.items()}
    return [_Search(each, files, places, by_name, walls).located() for each in wanted]


def inputs_of(job: Job) -> Located | None:
    """Where the input data of a job are now; None where it names none. For pages and answers."""
    wanted = wanted_by_job(job)
    return None if wanted is None else locate([wanted])[0]


def _files(names: Collection[str]) -> dict[str, _File]:
    found: dict[str, _File] = {}
    rows = LogicalFile.objects.filter(name__in=names).annotate(at=F("replicas__storage_id"))
    columns = ("name", "owner_id", "owner_group", "size_bytes", "at")
    for name, owner_id, group, size_bytes, storage_id in rows.order_by().values_list(*columns):
        file = found.setdefault(name, _File(owner_id, group, size_bytes))
        if storage_id is not None:
            file.storage_ids.append(storage_id)
    return found


def _places() -> dict[int, _Place]:
    """All storages: there are some hundred at most."""
    near: dict[int, set[str]] = defaultdict(set)
    pairs = Storage.sites.through.objects.values_list("storage_id", "site__name")
    for storage_id, site in pairs:
        near[storage_id].add(site)
    rows = Storage.objects.order_by().values_list("pk", "name", "is_enabled")
    return {pk: _Place(name, frozenset(near[pk]), flag) for pk, name, flag in rows}


def _walls(owners: Collection[tuple[str, int | None]]) -> dict[tuple[str, int | None], Walls]:
    """Walls before owners, by their names and the frontends that they are limited to."""
    names = {name for name, _ in owners}
    rows = with_groups(User.objects.filter(username__in=names, is_active=True))
    users = {user.username: user for user in rows}
    return {
        (name, limit): walls_of(users[name].within(limit))
        for name, limit in owners
        if name in users
    }


class _Search:
    """Where the inputs of one want are."""

    def __init__(
        self,
        wanted: Wanted,
        files: Mapping[str, _File],
        places: Mapping[int, _Place],
        ids: Mapping[str, int],
        walls: Mapping[tuple[str, int | None], Walls],
    ) -> None:
        self._wanted = wanted
        self._places = places
        self._walls = walls.get((wanted.owner, wanted.limited_to))
        self._missing: list[str] = []
        #: Files that tie it, with the storages that have them.
        self._tying: list[tuple[str, Sequence[_Place]]] = []
        self._bytes: dict[str, int] = defaultdict(int)
        self._total = 0
        self._sites: frozenset[str] | None = None
        expected: dict[str, list[int]] = defaultdict(list)
        for name, storage in wanted.expected:
            if storage in ids:
                expected[name].append(ids[storage])
        for name in wanted.names:
            self._add(name, files.get(name), expected.get(name, []))

    def located(self) -> Located:
        """The sites that all of them tie the job to, and why."""
        if self._missing and self._wanted.waits:
            told = _listed([f"there is no replica of {_told_name(each)}" for each in self._missing])
            return Located((), InputCause.MISSING, f"{told[0].upper()}{told[1:]}.")
        if self._wanted.is_anywhere:
            return Located(tenths=self._tenths())
        if self._sites is None:
            return Located()
        where = _listed([_told(name, places) for name, places in self._told_first()])
        if not self._sites:
            return Located((), InputCause.APART, f"No site is near all of its input data: {where}.")
        return Located(tuple(sorted(self._sites)), InputCause.NEAR, f"Its input data: {where}.")

    def _add(self, name: str, file: _File | None, expected: Iterable[int]) -> None:
        if file is not None and not self._is_seen(file):
            file = None
        held = file.storage_ids if file is not None else []
        at = [self._places[pk] for pk in {*held, *expected} if self._places[pk].is_enabled]
        if not at:
            self._missing.append(name)
            return
        near = frozenset[str]().union(*(place.sites for place in at))
        size_bytes = max(file.size_bytes, 1) if file is not None else 1
        self._total += size_bytes
        for site in near if self._wanted.is_anywhere else ():
            self._bytes[site] += size_bytes
        if near:
            self._tying.append((name, at))
            self._sites = near if self._sites is None else self._sites & near

    def _is_seen(self, file: _File) -> bool:
        return self._walls is not None and self._walls.lets_in_name(file.group, file.owner_id)

    def _tenths(self) -> dict[str, int]:
        """Whole tenths: so many DAGs with inputs of their own are still alike to the negotiator."""
        tenths = {site: _TENTHS * here // self._total for site, here in self._bytes.items()}
        return {site: part for site, part in sorted(tenths.items()) if part}

    def _told_first(self) -> Iterable[tuple[str, Sequence[_Place]]]:
        """Files with different places first: they tell why no site is near all."""
        seen: set[frozenset[str]] = set()
        first: list[tuple[str, Sequence[_Place]]] = []
        others: list[tuple[str, Sequence[_Place]]] = []
        for name, places in self._tying:
            key = frozenset(place.name for place in places)
            (others if key in seen else first).append((name, places))
            seen.add(key)
        return [*first, *others]


def _told_name(name: str) -> str:
    return url_of(name)[:_NAME_TOLD]


def _told(name: str, places: Sequence[_Place]) -> str:
    ordered = sorted(places, key=lambda place: place.name)
    at = ", ".join(f"{place.name} (near {_names(place.sites)})" for place in ordered[:_PLACES_TOLD])
    return f"{_told_name(name)} is at {at}"


def _names(sites: Collection[str]) -> str:
    names = sorted(sites)
    more = f" and {len(names) - _PLACES_TOLD} more" if len(names) > _PLACES_TOLD else ""
    return f"{', '.join(names[:_PLACES_TOLD])}{more}" if names else "no site"


def _listed(texts: Sequence[str]) -> str:
    rest = len(texts) - _FILES_TOLD
    more = [counted(rest, "more file", "more files")] if rest > 0 else []
    return "; ".join([*texts[:_FILES_TOLD], *more])
