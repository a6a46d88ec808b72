"""Submission of placement requests: the requests of a text are stored as a whole, or not at all.

Also the checks of what a request needs here: modules, folders, spaces, allocations, leases.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import PurePosixPath
from typing import Final

from django.db import transaction
from django.utils import timezone

from wms.core.actors import Actor
from wms.core.errors import Finding, InvalidInput
from wms.core.loops import wake
from wms.core.models import User
from wms.core.public_addresses import is_refused
from wms.jobs.models import Workspace
from wms.placement.addresses import file_location, host_of, scheme_of, with_scheme
from wms.placement.allocations import has_allocation, is_promised
from wms.placement.catalogue.names import is_logical
from wms.placement.catalogue.resolving import aim
from wms.placement.conf import placement_conf
from wms.placement.models import PlacementRequest
from wms.placement.modules import Abilities
from wms.placement.modules.found import found_modules
from wms.placement.modules.sftp import SSH_SCHEMES
from wms.placement.policy import require_steering
from wms.placement.request_ad import RequestSpec, line_of, parse_requests
from wms.placement.states import MAX_ATTEMPTS, RequestKind
from wms.placement.storages.choosing import Offer, choose, offers
from wms.placement.storages.models import Storage
from wms.placement.storages.selectors import storage_map
from wms.placement.ways.choosing import Chooser

#: The task that carries out what is due.
PLACEMENT_TASK: Final = "wms.placement.run"

_BATCH = 1000


@dataclass(frozen=True, slots=True)
class Findings:
    """Findings about requests that cannot be carried out here, or in fewer ways than they name."""

    faults: Sequence[Finding] = ()
    warnings: Sequence[Finding] = ()


@transaction.atomic
def submit_requests(
    text: str,
    *,
    workspace: Workspace,
    directory: str,
    owner: User,
    topic: str,
    topic_key: int,
    max_attempts: int = MAX_ATTEMPTS,
    site_id: int | None = None,
    actor: Actor,
) -> list[int]:
    """Store the requests of a text and have them carried out; their ids, the leader's first.

    Relative names begin in this directory of the workspace. The end of all is announced to the
    inbox of `topic` under `topic_key`, by the id of the leader. Replicas near the site are read
    first. Raises InvalidInput with every fault.
    """
    specs = parse_requests(text, directory=directory)
    requests = [
        _row(
            spec,
            owner=owner,
            workspace=workspace,
            directory=directory,
            max_attempts=max_attempts,
            topic=topic,
            topic_key=topic_key,
            site_id=site_id,
        )
        for spec in specs
    ]
    require_steering(actor, requests[:1])
    faults = list(_faults_of_space(specs, requests, timezone.now()))
    faults += _place(specs, requests)
    if faults:
        raise InvalidInput(faults)
    leader, *followers = requests
    leader.save()
    for request in followers:
        request.leader = leader
    PlacementRequest.objects.bulk_create(followers, batch_size=_BATCH)
    transaction.on_commit(partial(wake, PLACEMENT_TASK))
    return [request.pk for request in requests]


def _row(
    spec: RequestSpec,
    *,
    owner: User,
    workspace: Workspace,
    directory: str,
    max_attempts: int,
    topic: str,
    topic_key: int,
    site_id: int | None,
) -> PlacementRequest:
    return PlacementRequest(
        kind=spec.kind,
        owner=owner,
        workspace=workspace,
        directory=directory,
        source_url=spec.source_url,
        destination_url=spec.destination_url,
        host=spec.host,
        allocation_name=spec.allocation,
        duration_s=spec.duration_s,
        arguments=spec.arguments,
        alternatives=["-".join(pair) for pair in spec.alternatives],
        expected_sha256=spec.checksums.sha256,
        expected_md5=spec.checksums.md5,
        expected_adler32=spec.checksums.adler32,
        expected_bytes=spec.size_bytes,
        attributes=dict(spec.attributes),
        max_attempts=max_attempts,
        topic=topic,
        topic_key=topic_key,
        site_id=site_id,
    )


def _place(specs: Sequence[RequestSpec], requests: Sequence[PlacementRequest]) -> list[Finding]:
    """Note in which storages the files of new requests lie; those that name an unknown one.

    A query, another one for storages by name, and some for each logical name that is read.
    """
    where, faults = storage_map(), []
    chooser = Chooser(timezone.now())
    named = {name for each in specs for name in (each.source_storage, each.destination_storage)}
    ids = dict(Storage.objects.filter(name__in=named - {""}).values_list("name", "pk"))
    for spec, request in zip(specs, requests, strict=True):
        request.source_storage_id = where.storage_of(request.source_url)
        request.destination_storage_id = where.storage_of(request.destination_url)
        for name, column in (
            ("src_storage", "source_storage"), ("dest_storage", "destination_storage"),
        ):  # fmt: skip
            word = getattr(spec, column)
            if word and word not in ids:
                faults.append(_finding(spec, name, f"{name}: there is no storage {word}"))
            elif word:
                setattr(request, f"{column}_id", ids[word])
        request.source_storage_id = aim(request, 1, chooser)
    faults += _choose(specs, requests)
    return faults


def _choose(specs: Sequence[RequestSpec], requests: Sequence[PlacementRequest]) -> list[Finding]:
    """Choose storages for the requests that leave them open; faults where none meets them."""
    faults: list[Finding] = []
    found: Sequence[Offer] | None = None
    for spec, request in zip(specs, requests, strict=True):
        if not spec.is_choosing:
            continue
        if found is None:
            schemes = found_modules().writers.keys()
            found = offers(site_id=request.site_id, schemes=schemes, now=timezone.now())
        facts = {"Owner": request.owner.username, "SizeBytes": request.expected_bytes}
        choice = choose(spec.attributes, found, facts)
        request.destination_storage_id, request.choice = choice.storage_id, choice.why
        if choice.storage_id is None:
            faults.append(_finding(spec, "Requirements", choice.why))
    return faults


def _faults_of_space(
    specs: Sequence[RequestSpec], requests: Sequence[PlacementRequest], now: datetime
) -> Iterable[Finding]:
    """Faults of leases that are too long, and of allocations that are not the owner's."""
    made = {spec.allocation for spec in specs if spec.kind is RequestKind.ALLOCATE}
    known: dict[str, bool] = dict.fromkeys(made, True)
    yield from _long_leases(specs, longest_s=placement_conf().longest_lease_s)
    for spec, request in zip(specs, requests, strict=True):
        if not spec.allocation or spec.kind is RequestKind.ALLOCATE:
            continue
        if spec.allocation not in known:
            known[spec.allocation] = has_allocation(request, now) or is_promised(request)
        if not known[spec.allocation]:
            yield no_allocation(spec)


def no_allocation(spec: RequestSpec, *, file: str = "") -> Finding:
    """The finding that nobody makes the allocation that a request names."""
    message = f"you have no allocation {spec.allocation}, and no request makes it"
    return _finding(spec, "allocation_id", message, file=file)


def _long_leases(specs: Iterable[RequestSpec], *, longest_s: int) -> Iterable[Finding]:
    for spec in specs:
        if spec.duration_s is not None and spec.duration_s > longest_s:
            message = f"duration: space may be allocated for {longest_s / 86400:g} days at most"
            yield _finding(spec, "duration", message)


def _finding(spec: RequestSpec, name: str, message: str, *, file: str = "") -> Finding:
    """A finding about an attribute of a request, with the line of the text at which it is given."""
    given = next((each for each in spec.attributes if each.lower() == name), name)
    line = (line_of(spec.text, given) or 1) + spec.line - 1
    return Finding(message, file, line, field=given)


def check_requests(
    specs: Sequence[RequestSpec], abilities: Abilities, *, file: str = ""
) -> Findings:
    """Findings about requests that these modules, folders and spaces do not serve.

    A request that can never be carried out is at fault; one that has another pair of schemes loses
    attempts, and is warned of. Values that only the site tells are not looked at.
    """
    faults: list[Finding] = []
    warnings: list[Finding] = []
    for spec in specs:
        found = _CHECKS[spec.kind](spec, abilities)
        for name, message in found[0].items():
            faults.append(_finding(spec, name, message, file=file))
        for name, message in found[1].items():
            warnings.append(_finding(spec, name, message, file=file))
    longest_s = abilities.longest_lease_s
    faults += [replace(each, file=file) for each in _long_leases(specs, longest_s=longest_s)]
    return Findings(faults, warnings)


#: Faults and warnings by attribute.
_Found = tuple[dict[str, str], dict[str, str]]


def _check_transfer(spec: RequestSpec, abilities: Abilities) -> _Found:
    if is_logical(spec.source_url) or is_logical(spec.destination_url):
        return _check_logical(spec, abilities)
    return _check_pairs(spec, abilities)


def _check_pairs(spec: RequestSpec, abilities: Abilities) -> _Found:
    faults: dict[str, str] = {}
    warnings: dict[str, str] = {}
    if not spec.unknown & {"src_url", "dest_url", "alt_protocols"}:
        unknown = [pair for pair in spec.pairs if pair not in abilities.pairs]
        there_is = ", ".join(sorted("-".join(each) for each in abilities.pairs))
        told = faults if len(unknown) == len(spec.pairs) else warnings
        for pair in unknown:
            name = "src_url" if pair == spec.pairs[0] else "alt_protocols"
            names = (
                f"stork.transfer.{a}-{b}" for a, b in (pair, (pair[0], "file"), ("file", pair[1]))
            )
            why = _unusable(abilities, *names, *pair)
            message = f"no module transfers from {pair[0]} to {pair[1]}{why}; there is: {there_is}"
            told.setdefault(name, message)
    if not faults:
        schemes = [set(each) for each in zip(*spec.pairs, strict=True)]
        for name, url, used in (
            ("src_url", spec.source_url, schemes[0]),
            ("dest_url", spec.destination_url, schemes[1]),
        ):
            if name in spec.unknown:
                continue
            if used == {"file"}:
                _check_file(faults, name, url, abilities)
            elif used:
                _check_host(faults, name, url, abilities)
    return faults, warnings


def _unusable(abilities: Abilities, *names: str) -> str:
    """Why modules of these names are not used, and others that nobody knows the schemes of."""
    told = [
        why
        for name, why in abilities.unusable.items()
        if name in names or not name or name.startswith("/")
    ]
    return "".join(f" ({why})" for why in told)


def _check_logical(spec: RequestSpec, abilities: Abilities) -> _Found:
    """Faults of the end that is no logical name, and of a storage that there is not."""
    faults: dict[str, str] = {}
    for place, (name, url) in enumerate(
        (("src_url", spec.source_url), ("dest_url", spec.destination_url))
    ):
        if name in spec.unknown or is_logical(url):
            continue
        schemes = sorted({pair[place] for pair in abilities.pairs})
        if scheme_of(url) not in schemes:
            there_is = ", ".join(schemes)
            why = _unusable(abilities, scheme_of(url))
            faults[name] = f"no module serves {scheme_of(url)}{why}; there is: {there_is}"
        elif scheme_of(url) == "file":
            _check_file(faults, name, url, abilities)
        else:
            _check_host(faults, name, url, abilities)
    _check_storage(faults, "dest_storage", spec.destination_storage, abilities)
    return faults, {}


def _check_storage(faults: dict[str, str], name: str, word: str, abilities: Abilities) -> None:
    if word and abilities.storages is not None and word not in abilities.storages:
        there_is = ", ".join(sorted(abilities.storages)) or "none"
        faults[name] = f"{name}: there is no storage {word}; there is: {there_is}"


def _check_host(faults: dict[str, str], name: str, url: str, abilities: Abilities) -> None:
    """Note an address that is not public; what names lead to is looked at by each connection."""
    host = host_of(url)
    if abilities.allowed is not None and is_refused(host, allowed=abilities.allowed):
        faults[name] = (
            f"{name}: {host} is no public address; an administrator may allow it "
            "(PILOTAGE_PLACEMENT_ALLOWED)"
        )
    if scheme_of(url) in SSH_SCHEMES and not abilities.knows_hosts:
        faults[name] = (
            f"{name}: no keys of hosts are known here; an administrator may name a file of them "
            "(PILOTAGE_PLACEMENT_KNOWN_HOSTS)"
        )


def _check_file(faults: dict[str, str], name: str, url: str, abilities: Abilities) -> None:
    """Note a file outside of the folders; what is relative is in the workspace of a DAG."""
    place = file_location(with_scheme(url, "file"), directory="")
    if not place.is_absolute:
        if not abilities.has_workspace:
            faults[name] = f"{name}: {url} is a file of a DAG, and this request is of none"
        return
    path = PurePosixPath(place.path)
    if abilities.roots is None:
        return
    if not any(path.is_relative_to(root) for root in abilities.roots):
        listed = ", ".join(map(str, abilities.roots)) or "none"
        faults[name] = (
            f"{name}: {place.path} is outside of the folders that are listed for placements "
            f"(PILOTAGE_PLACEMENT_ROOTS: {listed})"
        )


def _check_file_work(spec: RequestSpec, abilities: Abilities) -> _Found:
    faults: dict[str, str] = {}
    if "src_url" in spec.unknown:
        return faults, {}
    scheme, known = scheme_of(spec.source_url), abilities.works[spec.kind]
    if is_logical(spec.source_url):
        _check_storage(faults, "src_storage", spec.source_storage, abilities)
    elif scheme not in known:
        there_is = ", ".join(sorted(known))
        why = _unusable(abilities, f"stork.{spec.kind}.{scheme}", scheme)
        faults["src_url"] = f"no module does {spec.kind} for {scheme}{why}; there is: {there_is}"
    elif scheme == "file":
        _check_file(faults, "src_url", spec.source_url, abilities)
    else:
        _check_host(faults, "src_url", spec.source_url, abilities)
    return faults, {}


def _check_space(spec: RequestSpec, abilities: Abilities) -> _Found:
    spaces = abilities.spaces
    if spaces is None or "dest_host" in spec.unknown or spec.host in spaces:
        return {}, {}
    if spec.kind is RequestKind.RELEASE:
        # What has an allocation may have been switched off since.
        return {}, {}
    listed = ", ".join(sorted(spaces)) or "none"
    message = f"dest_host: no storage offers space of {spec.host}; there is: {listed}"
    return {"dest_host": message}, {}


_CHECKS: Final = {
    RequestKind.TRANSFER: _check_transfer,
    RequestKind.ALLOCATE: _check_space,
    RequestKind.RELEASE: _check_space,
    RequestKind.STAGE: _check_file_work,
    RequestKind.REMOVE: _check_file_work,
}
