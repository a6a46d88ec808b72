"""Services on storages: configured and deleted, permitted and audited.

Requests that wait are told anew in which storages their files lie, and jobs and DAGs that want
input data are told what these are near.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial

from django.db import transaction

from matching.ads.ad_cost import check_cost
from matching.ads.classads import AdError, build_ad, evaluate, parse_expression
from matching.ads.expressions import references
from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.database.saving import (
    check_row,
    check_same_name,
    kinds_that_forbid_deletion,
    save_audited,
)
from wms.core.errors import Conflict, Finding, InvalidInput, NotFound
from wms.core.loops import wake
from wms.core.models import Role
from wms.core.policy import require_role
from wms.jobs.input_data.changes import note_storages
from wms.placement.catalogue.names import SCHEME
from wms.placement.models import PlacementRequest
from wms.placement.modules.found import found_modules
from wms.placement.states import WAITING
from wms.placement.storages.endpoints import checked_endpoints
from wms.placement.storages.models import Storage
from wms.placement.storages.selectors import storage_map
from wms.placement.submission import PLACEMENT_TASK
from wms.sites.models import Site

_BATCH = 1000
_REQUIREMENTS = "transfer_requirements"


@dataclass(frozen=True, slots=True)
class StorageSpec:
    """A storage to be configured; what the fields mean is told in `models.Storage`."""

    name: str
    endpoints: Sequence[str]
    sites: Sequence[str] = ()
    space_bytes: int | None = None
    max_transfers: int | None = None
    max_link_transfers: int | None = None
    transfer_requirements: str = ""
    is_enabled: bool = True
    note: str = ""


def require_configuring(actor: Actor) -> None:
    """Raise NotPermitted unless the actor may set up storages."""
    require_role(actor, Role.OPERATOR, "configure storages")


def check_storage(storage: Storage) -> None:
    """Raise InvalidInput with the faults of a storage."""
    # Browsers send text fields with the line ends of Windows.
    storage.note = "\n".join(storage.note.splitlines())
    text = storage.transfer_requirements
    storage.transfer_requirements = "\n".join(text.split("\r\n")).strip()
    check_row(storage)
    check_same_name(storage)
    _check_requirements(storage.transfer_requirements)
    modules = found_modules()
    lines = checked_endpoints(storage.endpoints, modules.readers.keys() & modules.writers.keys())
    others = Storage.objects.exclude(pk=storage.pk)
    if others.filter(name__iexact=storage.name).exists():
        raise InvalidInput.of("there is a storage of this name in another case", field="name")
    taken = {
        line: name
        for name, text in others.values_list("name", "endpoints")
        for line in text.splitlines()
    }
    for line in lines:
        if line in taken:
            message = f"{line} is an endpoint of {taken[line]}"
            raise InvalidInput.of(message, field="endpoints")
    storage.endpoints = "\n".join(lines)


def _check_requirements(text: str) -> None:
    """Raise InvalidInput, with the place, for a text that cannot say yes or no to a request."""
    if not text:
        return
    try:
        expression = parse_expression(text)
        check_cost({"Requirements": text})
    except AdError as error:
        message = error.message.removeprefix("Requirements: ")
        line, column = error.line_in_text, error.column
        raise InvalidInput(
            [Finding(message, field=_REQUIREMENTS, line=line, column=column)]
        ) from None
    if not references(text) and not isinstance(evaluate(expression, build_ad({})), bool):
        raise InvalidInput.of("is neither true nor false for any request", field=_REQUIREMENTS)


@transaction.atomic
def save_storage(
    storage: Storage,
    *,
    actor: Actor,
    reason: str = "",
    sites: Collection[Site] | None = None,
) -> None:
    """Check and store a storage, and the sites that it is near where these are given.

    Raises NotPermitted or InvalidInput.
    """
    require_configuring(actor)
    check_storage(storage)
    near = {} if sites is None else _change_of_sites(storage, sites)
    save_audited(
        storage, target=target_of(storage), actor=actor, reason=reason, fields=_FIELDS, facts=near
    )
    if sites is not None:
        storage.sites.set(sites)
    place_waiting_requests()
    note_storages()
    transaction.on_commit(partial(wake, PLACEMENT_TASK))


_FIELDS = (
    "name", "endpoints", "space_bytes", "max_transfers", "max_link_transfers", _REQUIREMENTS,
    "is_enabled", "note",
)  # fmt: skip


def _change_of_sites(storage: Storage, sites: Collection[Site]) -> dict[str, list[list[str]]]:
    old = sorted(storage.sites.values_list("name", flat=True)) if storage.pk else []
    new = sorted(site.name for site in sites)
    return {"sites": [old, new]} if old != new else {}


def create_storage(spec: StorageSpec, *, actor: Actor, reason: str = "") -> None:
    """Create a storage. Raises NotPermitted, and InvalidInput with what is wrong."""
    _configure(Storage(), spec, actor, reason)


@transaction.atomic
def change_storage(name: str, spec: StorageSpec, *, actor: Actor, reason: str = "") -> None:
    """Bring a storage to this state, all of it. Raises NotPermitted, NotFound or InvalidInput."""
    require_configuring(actor)
    _configure(_locked(name), spec, actor, reason)


@transaction.atomic
def _configure(storage: Storage, spec: StorageSpec, actor: Actor, reason: str) -> None:
    require_configuring(actor)
    sites = list(Site.objects.filter(name__in=spec.sites))
    unknown = sorted(set(spec.sites) - {site.name for site in sites})
    if unknown:
        raise InvalidInput([Finding(f"there is no site {name}", field="sites") for name in unknown])
    storage.name, storage.endpoints = spec.name, "\n".join(spec.endpoints)
    storage.space_bytes, storage.note = spec.space_bytes, spec.note
    storage.max_transfers = spec.max_transfers
    storage.max_link_transfers = spec.max_link_transfers
    storage.transfer_requirements = spec.transfer_requirements
    storage.is_enabled = spec.is_enabled
    save_storage(storage, actor=actor, reason=reason, sites=sites)


def _locked(name: str) -> Storage:
    storage = Storage.objects.select_for_update().filter(name=name).first()
    if storage is None:
        raise NotFound(f"There is no storage {name[:64]}.")
    return storage


def check_deletion(storage: Storage) -> None:
    """Raise Conflict when something is kept at the storage."""
    kinds = kinds_that_forbid_deletion(storage)
    if kinds:
        raise Conflict(f"Storage {storage.name} has {kinds}. Switch it off instead.")


@transaction.atomic
def delete_storage(name: str, *, actor: Actor, reason: str = "") -> None:
    """Delete a storage of which nothing is known to be there; no file is touched.

    Raises NotPermitted, NotFound and Conflict.
    """
    require_configuring(actor)
    storage = _locked(name)
    check_deletion(storage)
    record_action("delete storage", target=target_of(storage), actor=actor, reason=reason)
    storage.delete()


def target_of(storage: Storage) -> str:
    """Name of a storage in the audit trail."""
    return f"storage {storage.name}"


def place_waiting_requests() -> int:
    """Renew in which storages the files of waiting requests lie; returns how many changed.

    The caller has opened a transaction. Its cost is that of all that wait: storages change rarely.
    """
    where, changed = storage_map(), 0
    for name in ("source", "destination"):
        moved: dict[int | None, list[int]] = defaultdict(list)
        rows = PlacementRequest.objects.filter(state__in=WAITING).order_by("pk")
        # Where a logical name leads to, its request and the catalogue tell.
        rows = rows.exclude(**{f"{name}_url__startswith": f"{SCHEME}:"})
        for pk, url, old in rows.values_list(
            "pk", f"{name}_url", f"{name}_storage_id"
        ).iterator(chunk_size=_BATCH):  # fmt: skip
            new = where.storage_of(url)
            if new != old:
                moved[new].append(pk)
        for storage_id, ids in moved.items():
            changed += rows.filter(pk__in=ids).update(**{f"{name}_storage_id": storage_id})
    return changed
