"""Services that submit and remove placement requests, permitted and audited."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import Final

from django.db import transaction

from wms.accounting.services import group_for
from wms.accounting.walls import within_reach
from wms.core.actors import Actor
from wms.core.audit import record_action, record_actions
from wms.core.errors import InvalidInput, NotFound, ReasonRequired
from wms.core.idempotency import RequestKey, content_sha256, made_before, only_once
from wms.core.idempotency_models import MadeKind
from wms.core.loops import wake
from wms.core.models import Role, User
from wms.core.policy import require_role
from wms.core.transitions import Applied
from wms.jobs.operations import create_workspace
from wms.jobs.policy import in_workspaces
from wms.placement import operations, submission
from wms.placement.models import PlacementRequest
from wms.placement.modules import abilities
from wms.placement.policy import require_steering
from wms.placement.request_ad import RequestSpec, parse_requests
from wms.placement.storages.selectors import names_of_storages, words_for_space

#: A text of requests is no larger.
MAX_TEXT_BYTES: Final = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SubmittedRequests:
    """Requests that were stored, the first one's id first, or were before under the same key."""

    ids: list[int]
    is_new: bool


def check_requests(text: str, *, file: str = "") -> list[RequestSpec]:
    """The requests of a text that belong to no DAG. Raises InvalidInput with every fault.

    Nothing is stored, and the allocations that they name are not looked for.
    """
    if len(text.encode(errors="replace")) > MAX_TEXT_BYTES:
        raise InvalidInput.of(f"the text is larger than {MAX_TEXT_BYTES} bytes", file=file)
    specs = parse_requests(text, file=file)
    able = abilities(has_workspace=False, spaces=words_for_space(), storages=names_of_storages())
    found = submission.check_requests(specs, able, file=file)
    if found.faults:
        raise InvalidInput(list(found.faults))
    return specs


def submit_requests(
    text: str, *, actor: Actor, owner: User, group: str = "", idempotency_key: str | None = None
) -> SubmittedRequests:
    """Store the requests of a text, all or none, and have them carried out.

    They belong to the owner and, if told, to one of the owner's groups. The same `idempotency_key`
    and text give the requests that were stored first, for a day. Raises NotPermitted,
    Conflict for another text under that key, and InvalidInput with every fault.
    """
    require_role(actor, Role.USER, "submit placement requests")
    key = _key_of(text, group, idempotency_key)
    known = made_before(owner, key)
    if known is not None:
        return _submitted_before(known)
    check_requests(text)
    with only_once(owner, key) as creation:
        if creation.found is not None:
            return _submitted_before(creation.found)
        ids = _store(text, actor, owner, group)
        creation.made = ids[0]
    return SubmittedRequests(ids, is_new=True)


def _key_of(text: str, group: str, key: str | None) -> RequestKey | None:
    if key is None:
        return None
    return RequestKey(MadeKind.PLACEMENT, key, content_sha256({"text": text, "group": group}, {}))


def _submitted_before(leader_id: int) -> SubmittedRequests:
    followers = PlacementRequest.objects.filter(leader=leader_id).order_by("pk")
    return SubmittedRequests([leader_id, *followers.values_list("pk", flat=True)], is_new=False)


@transaction.atomic
def _store(text: str, actor: Actor, owner: User, group: str) -> list[int]:
    owner_group = group_for(owner, group).name if group else ""
    ids = submission.submit_requests(
        text,
        workspace=create_workspace(owner, {}, owner_group=owner_group),
        directory="",
        owner=owner,
        topic="",
        topic_key=0,
        actor=actor,
    )
    record_action(
        "submit placement requests",
        target=f"placement request {ids[0]}",
        actor=actor,
        facts={"requests": len(ids)},
    )
    return ids


@transaction.atomic
def remove_requests(request_ids: Collection[int], *, actor: Actor, reason: str) -> Applied:
    """End requests for good; a transfer that runs is stopped within seconds.

    Those that have ended are skipped. Raises NotFound, NotPermitted and ReasonRequired, in this
    order; then nothing is removed.
    """
    _require_steering_all(request_ids, actor)
    applied = operations.remove_requests(request_ids, actor=actor, reason=reason)
    _record("remove placement request", applied, actor, reason)
    return applied


@transaction.atomic
def retry_requests(request_ids: Collection[int], *, actor: Actor, reason: str) -> Applied:
    """Try requests again that have failed or were removed.

    Others are skipped, and those of DAGs. Raises NotFound, NotPermitted and ReasonRequired, in this
    order; then nothing is changed.
    """
    _require_steering_all(request_ids, actor)
    if not reason.strip():
        raise ReasonRequired(event="retry")
    applied = operations.retry_requests(request_ids, actor=actor, reason=reason)
    _record("retry placement request", applied, actor, reason)
    transaction.on_commit(partial(wake, submission.PLACEMENT_TASK))
    return applied


def _require_steering_all(request_ids: Collection[int], actor: Actor) -> None:
    named = within_reach(actor, PlacementRequest.objects.filter(pk__in=request_ids), in_workspaces)
    requests = list(named.order_by("pk"))
    missing = sorted(set(request_ids) - {request.pk for request in requests})
    if missing:
        raise NotFound(f"There is no placement request {', '.join(map(str, missing))}.")
    require_steering(actor, requests)


def _record(action: str, applied: Applied, actor: Actor, reason: str) -> None:
    targets = [f"placement request {request_id}" for request_id in applied.changed]
    record_actions(action, targets=targets, actor=actor, reason=reason)
