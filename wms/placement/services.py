"""Services that submit and remove placement requests, permitted and audited."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.db import IntegrityError, transaction
from django.utils import timezone

from wms.accounting.services import group_for
from wms.accounting.walls import within_reach
from wms.core.actors import Actor
from wms.core.audit import record_action, record_actions
from wms.core.errors import Conflict, Finding, InvalidInput, NotFound
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

#: A text of requests is no larger.
MAX_TEXT_BYTES: Final = 8 * 1024 * 1024
#: So long the same key gives the same requests.
KEY_LIFETIME: Final = timedelta(hours=24)
_MOST_KEY_CHARACTERS = 128


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
    found = submission.check_requests(specs, abilities(has_workspace=False), file=file)
    if found.faults:
        raise InvalidInput(list(found.faults))
    return specs


def submit_requests(
    text: str, *, actor: Actor, owner: User, group: str = "", idempotency_key: str | None = None
) -> SubmittedRequests:
    """Store the requests of a text, all or none, and have them carried out.

    They belong to the owner and, if told, to one of the owner's groups. The same `idempotency_key`
    and text give the requests that were stored first, for `KEY_LIFETIME`. Raises NotPermitted,
    Conflict for another text under that key, and InvalidInput with every fault.
    """
    require_role(actor, Role.USER, "submit placement requests")
    if idempotency_key is not None and not 0 < len(idempotency_key) <= _MOST_KEY_CHARACTERS:
        message = f"must have from 1 to {_MOST_KEY_CHARACTERS} characters"
        raise InvalidInput([Finding(message, field="idempotency_key")])
    body_sha256 = hashlib.sha256(f"{group}\0{text}".encode(errors="replace")).hexdigest()
    known = _submitted_before(idempotency_key, owner, body_sha256)
    if known is not None:
        return known
    check_requests(text)
    try:
        ids = _store(text, actor, owner, group, idempotency_key, body_sha256)
    except IntegrityError:
        # The same request, sent twice at once: the other one was first.
        known = _submitted_before(idempotency_key, owner, body_sha256)
        if known is None:
            raise
        return known
    return SubmittedRequests(ids, is_new=True)


@transaction.atomic
def _store(
    text: str, actor: Actor, owner: User, group: str, key: str | None, body_sha256: str
) -> list[int]:
    if key is not None:
        old = PlacementRequest.objects.filter(owner=owner, idempotency_key=key)
        old.filter(created_at__lte=timezone.now() - KEY_LIFETIME).update(idempotency_key=None)
    owner_group = group_for(owner, group).name if group else ""
    ids = submission.submit_requests(
        text,
        workspace=create_workspace(owner, {}, owner_group=owner_group),
        directory="",
        owner=owner,
        topic="",
        topic_key=0,
        actor=actor,
        idempotency_key=key,
        body_sha256=body_sha256,
    )
    record_action(
        "submit placement requests",
        target=f"placement request {ids[0]}",
        actor=actor,
        facts={"requests": len(ids)},
    )
    return ids


def _submitted_before(key: str | None, owner: User, body_sha256: str) -> SubmittedRequests | None:
    if key is None:
        return None
    leader = PlacementRequest.objects.filter(
        owner=owner, idempotency_key=key, created_at__gt=timezone.now() - KEY_LIFETIME
    ).first()
    if leader is None:
        return None
    if leader.body_sha256 != body_sha256:
        raise Conflict(
            f"The idempotency key was used for placement request {leader.pk}, which was submitted "
            "with another content."
        )
    followers = leader.followers.order_by("pk").values_list("pk", flat=True)
    return SubmittedRequests([leader.pk, *followers], is_new=False)


@transaction.atomic
def remove_requests(request_ids: Collection[int], *, actor: Actor, reason: str) -> Applied:
    """End requests for good; a transfer that runs is stopped within seconds.

    Those that have ended are skipped. Raises NotFound, NotPermitted and ReasonRequired, in this
    order; then nothing is removed.
    """
    named = within_reach(actor, PlacementRequest.objects.filter(pk__in=request_ids), in_workspaces)
    requests = list(named.order_by("pk"))
    missing = sorted(set(request_ids) - {request.pk for request in requests})
    if missing:
        raise NotFound(f"There is no placement request {', '.join(map(str, missing))}.")
    require_steering(actor, requests)
    applied = operations.remove_requests(request_ids, actor=actor, reason=reason)
    targets = [f"placement request {request_id}" for request_id in applied.changed]
    record_actions("remove placement request", targets=targets, actor=actor, reason=reason)
    return applied
