"""Resolution of logical names: from which address an attempt reads, to which it writes.

Replicas are taken in turn, attempt by attempt, by how their links did of late, of alike ones those
near the site of the request first; of a storage its endpoints in their order.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from django.db.models import Q

from wms.accounting.walls import seen_by
from wms.core.models import Role, User
from wms.core.policy import has_role
from wms.placement.addresses import scheme_of
from wms.placement.catalogue.models import LogicalFile, Replica
from wms.placement.catalogue.names import checked_name, is_logical
from wms.placement.catalogue.selectors import files_within
from wms.placement.models import PlacementRequest
from wms.placement.modules.found import found_modules
from wms.placement.states import RequestKind, RequestState
from wms.placement.storages.endpoints import url_below
from wms.placement.storages.models import Storage
from wms.placement.ways.choosing import Chooser, Offered
from wms.placement.ways.records import Way


class Address(NamedTuple):
    """An address of a logical file, and the storage in which it lies."""

    storage_id: int
    storage: str
    url: str


@dataclass(frozen=True, slots=True)
class ReplicaUrls:
    """Addresses of a logical file, in the order in which they are tried, and its checksum."""

    urls: Sequence[str]
    sha256: str


@dataclass(frozen=True, slots=True)
class Removal:
    """A replica that is to be removed, and where it is."""

    replica_id: int
    url: str


@dataclass(frozen=True, slots=True)
class Resolved:
    """Addresses of an attempt, or why there are none: then it fails at once.

    `source_storage_id` is that of the replica that is read; `choice` is why this one. `file` is
    what the name stands for already.
    """

    source_url: str
    destination_url: str
    source_storage_id: int | None = None
    file: LogicalFile | None = None
    removals: tuple[Removal, ...] = ()
    refusal: str = ""
    choice: dict[str, Any] | None = None


def resolve(request: PlacementRequest, attempt_number: int, chooser: Chooser) -> Resolved:
    """Addresses of an attempt of a request; no query where it names no logical file."""
    plain = Resolved(
        request.source_url, request.destination_url, source_storage_id=request.source_storage_id
    )
    if request.kind == RequestKind.REMOVE and is_logical(request.source_url):
        return _to_remove(request, plain, attempt_number)
    if is_logical(request.source_url):
        plain = _read_from(request, plain, attempt_number, chooser)
    if is_logical(request.destination_url) and not plain.refusal:
        plain = _written_to(request, plain, attempt_number)
    return plain


def aim(request: PlacementRequest, attempt_number: int, chooser: Chooser) -> int | None:
    """The storage from which an attempt will read, by its id: its limits hold it back."""
    if request.kind == RequestKind.REMOVE or not is_logical(request.source_url):
        return request.source_storage_id
    found = _choices(
        _replicas_of(_visible(request, request.source_url), request), found_modules().readers
    )
    if not found:
        return None
    offered = _offered(request, found, attempt_number, chooser)
    return found[chooser.choose(request, attempt_number, offered).place].storage_id


def _offered(
    request: PlacementRequest, found: Sequence[Address], number: int, chooser: Chooser
) -> list[Offered]:
    """Replicas as ways to the destination of a request, by the scheme that the attempt writes."""
    if request.kind == RequestKind.TRANSFER:
        to = chooser.ends.name_of(request.destination_url, request.destination_storage_id)
        scheme = scheme_of(_written_at(request, number) or request.destination_url)
    else:
        to = scheme = ""
    return [Offered(Way(each.storage, to, scheme_of(each.url), scheme), each.url) for each in found]


def replica_urls(
    url: str, *, owner: User, site_id: int | None, schemes: Collection[str]
) -> ReplicaUrls | None:
    """Addresses of a logical file, near the site first; None where the owner sees none."""
    file = _seen_file(url, owner)
    if file is None:
        return None
    found = _choices(_near_first(file, site_id), schemes)
    return ReplicaUrls([each.url for each in found], file.sha256)


def _read_from(
    request: PlacementRequest, plain: Resolved, number: int, chooser: Chooser
) -> Resolved:
    file = _visible(request, request.source_url)
    choices = _choices(_replicas_of(file, request), found_modules().readers)
    if not choices:
        return replace(
            plain, refusal=f"there is no replica of {request.source_url} that can be read"
        )
    # Where limits were looked at, if the replica is still there.
    aimed = [n for n, each in enumerate(choices) if each.storage_id == request.source_storage_id]
    chosen = chooser.choose(request, number, _offered(request, choices, number, chooser), aimed)
    taken = choices[chosen.place]
    return replace(
        plain, source_url=taken.url, source_storage_id=taken.storage_id, file=file,
        choice=chosen.facts,
    )  # fmt: skip


def _written_to(request: PlacementRequest, plain: Resolved, number: int) -> Resolved:
    name = checked_name(request.destination_url)
    there = LogicalFile.objects.filter(name=name).first()
    if there is not None and _visible(request, request.destination_url) is None:
        return replace(plain, refusal=f"{request.destination_url} is the name of another's file")
    if plain.file is not None and there is not None and there.sha256 != plain.file.sha256:
        told = f"{request.destination_url} stands for another content than {request.source_url}"
        return replace(plain, refusal=told)
    if _is_changed_by_others(request, request.destination_url):
        told = f"another request is just placing or removing {request.destination_url}"
        return replace(plain, refusal=told)
    url = _written_at(request, number)
    if not url:
        return replace(plain, refusal="the storage of the destination is no more, or is off")
    return replace(plain, destination_url=url, file=plain.file or there)


def _written_at(request: PlacementRequest, number: int) -> str:
    """The address to which an attempt writes a logical name; empty where there is none."""
    if not is_logical(request.destination_url):
        return ""
    name, storage = checked_name(request.destination_url), request.destination_storage
    choices = _choices([storage] if storage else [], found_modules().writers, name=name)
    return choices[(number - 1) % len(choices)].url if choices else ""


def _to_remove(request: PlacementRequest, plain: Resolved, number: int) -> Resolved:
    file = _visible(request, request.source_url)
    if file is None:
        return plain
    if file.owner_id != request.owner_id and not has_role(_asking(request), Role.SHIFTER):
        told = f"{request.source_url} belongs to another user"
        return replace(plain, refusal=f"{told}, and this needs the role {Role.SHIFTER.label}")
    if _is_changed_by_others(request, request.source_url):
        told = f"another request is just placing or removing {request.source_url}"
        return replace(plain, refusal=told)
    replicas = file.replicas.select_related("storage").order_by("pk")
    if request.source_storage_id is not None:
        replicas = replicas.filter(storage=request.source_storage_id)
    removals = []
    for each in replicas:
        choices = _choices([each.storage], found_modules().removers, name=file.name)
        if not choices:
            return replace(plain, refusal=f"storage {each.storage.name} is off")
        removals.append(Removal(each.pk, choices[(number - 1) % len(choices)].url))
    return replace(plain, file=file, removals=tuple(removals))


def _visible(request: PlacementRequest, url: str) -> LogicalFile | None:
    """The file of a logical name, if the owner of the request may see it."""
    return _seen_file(url, _asking(request))


def _asking(request: PlacementRequest) -> User:
    """The owner, limited as the token was by which the request or its DAG was submitted."""
    return request.owner.within(request.workspace.limited_to)


def _seen_file(url: str, owner: User) -> LogicalFile | None:
    files = LogicalFile.objects.filter(name=checked_name(url))
    return seen_by(owner, files, files_within).first()


def _replicas_of(
    file: LogicalFile | None, request: PlacementRequest
) -> Sequence[tuple[Storage, str]]:
    """The storages that have a file, those near the site of the request first."""
    return [] if file is None else _near_first(file, request.site_id)


def _near_first(file: LogicalFile, site_id: int | None) -> Sequence[tuple[Storage, str]]:
    replicas = Replica.objects.filter(file=file, storage__is_enabled=True)
    storages = [each.storage for each in replicas.select_related("storage")]
    near: set[int] = set()
    if site_id is not None:
        at = Storage.sites.through.objects.filter(site_id=site_id)
        near = set(at.values_list("storage_id", flat=True))
    storages.sort(key=lambda each: (each.pk not in near, each.name))
    return [(each, file.name) for each in storages]


def _choices(
    storages: Sequence[tuple[Storage, str] | Storage], schemes: Collection[str], *, name: str = ""
) -> list[Address]:
    """Addresses in the order in which they are tried."""
    pairs = [each if isinstance(each, tuple) else (each, name) for each in storages]
    return [
        Address(storage.pk, storage.name, url_below(endpoint, path))
        for storage, path in pairs
        if storage.is_enabled
        for endpoint in storage.endpoints.splitlines()
        if scheme_of(endpoint) in schemes
    ]


def _is_changed_by_others(request: PlacementRequest, url: str) -> bool:
    """Whether another attempt writes or removes what a name stands for.

    Attempts begin one after the other: of two of them the second one sees the first.
    """
    changing = Q(destination_url=url) | Q(source_url=url, kind=RequestKind.REMOVE)
    running = PlacementRequest.objects.filter(changing, state=RequestState.PROCESSING)
    return running.exclude(pk=request.pk).exists()
