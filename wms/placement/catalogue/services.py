"""Services on the catalogue: removal of a file's replicas, and forgetting those that are lost."""

from __future__ import annotations

from django.db import transaction

from matching.ads.classads import quote
from wms.accounting.walls import within_reach
from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.errors import Conflict, NotFound, NotPermitted, ReasonRequired
from wms.core.models import Role
from wms.jobs.operations import create_workspace
from wms.placement import submission
from wms.placement.catalogue.models import LogicalFile, Replica
from wms.placement.catalogue.names import url_of
from wms.placement.catalogue.operations import take_out
from wms.placement.catalogue.selectors import files_within
from wms.placement.policy import may_steer


@transaction.atomic
def remove_file(file_id: int, *, storage: str = "", actor: Actor, reason: str) -> int:
    """Have a file's replica at a storage removed, or all of them; the id of the request.

    It is the owner's request, with the owner's credentials, but by a token that is limited to a
    frontend without these. Raises NotFound, NotPermitted and ReasonRequired.
    """
    file = _steerable(file_id, actor, reason)
    _replicas_at(file, storage)
    owner = file.owner.within(actor.user.limited_to if actor.user is not None else None)
    where = f"src_storage = {quote(storage)}; " if storage else ""
    [request_id] = submission.submit_requests(
        f'[dap_type = "remove"; {where}src_url = {quote(url_of(file.name))}]',
        workspace=create_workspace(owner, {}, owner_group=file.owner_group),
        directory="",
        owner=owner,
        topic="",
        topic_key=0,
        actor=actor,
    )
    record_action(
        "remove logical file",
        target=f"placement request {request_id}",
        actor=actor,
        reason=reason,
        facts={"name": file.name, "storage": storage},
    )
    return request_id


@transaction.atomic
def forget_replica(file_id: int, *, storage: str, actor: Actor, reason: str) -> None:
    """Take a replica out of the catalogue that its storage has lost; no file is touched.

    With the last one the name is gone. Raises NotFound, NotPermitted and ReasonRequired.
    """
    file = _steerable(file_id, actor, reason)
    replicas = _replicas_at(file, storage)
    if not storage:
        raise Conflict("Name the storage that has lost the file.")
    take_out([each.pk for each in replicas])
    record_action(
        "forget replica",
        target=f"logical file {file.pk}",
        actor=actor,
        reason=reason,
        facts={"name": file.name, "storage": storage},
    )


def require_steering(actor: Actor, file: LogicalFile) -> None:
    """Raise NotPermitted unless the actor may remove the file and forget its replicas."""
    if actor.is_system or (actor.user is not None and may_steer(actor.user, file.owner_id)):
        return
    raise NotPermitted(
        f"{actor.name} may not change {file}: it belongs to another user, and this needs the "
        f"role {Role.SHIFTER.label}."
    )


def _steerable(file_id: int, actor: Actor, reason: str) -> LogicalFile:
    named = within_reach(actor, LogicalFile.objects.filter(pk=file_id), files_within)
    file = named.select_related("owner").select_for_update(of=("self",)).first()
    if file is None:
        raise NotFound(f"There is no logical file {file_id}, or you may not see it.")
    require_steering(actor, file)
    if not reason.strip():
        raise ReasonRequired(event="remove")
    return file


def _replicas_at(file: LogicalFile, storage: str) -> list[Replica]:
    replicas = file.replicas.all()
    found = list(replicas.filter(storage__name=storage) if storage else replicas)
    if not found:
        raise NotFound(f"{file} has no replica at {storage or 'any storage'}.")
    return found
