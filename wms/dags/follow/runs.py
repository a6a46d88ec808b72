"""Runs elsewhere that are to be followed: their files are stored as a DAG, once for a key.

Only files that the DAG files refer to are stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO

from django.db import IntegrityError, transaction

from wms.core.actors import Actor
from wms.core.errors import InvalidInput, QuotaExceeded
from wms.core.models import Role, User
from wms.core.policy import require_role
from wms.dags.follow.bad_events import DEFAULT
from wms.dags.follow.referenced_files import ReferencedFiles
from wms.dags.follow.services import follow_log
from wms.dags.language.origin import TOP, Origin
from wms.dags.models import Dag
from wms.dags.rescue.names import rescue_path
from wms.dags.rescue.rescue_files import Resumption
from wms.dags.submission.checking import CheckedDag, check_dag
from wms.dags.submission.runs import RunRequest, store_run
from wms.jobs.content.blobs import store_bytes
from wms.jobs.models import Blob
from wms.jobs.operations import create_workspace
from wms.jobs.quotas import check_quota


@dataclass(frozen=True, slots=True)
class FollowRequest:
    """Request to follow a run: its DAG files, files that they refer to, and the name of the log.

    Only those of `files` are stored that the DAG files refer to; submit files may be missing. The
    rescue file of `rescue_number`, one of `files`, has the nodes done before.
    """

    dag_files: tuple[str, ...]
    files: Mapping[str, BinaryIO]
    log_name: str
    origin: Origin = TOP
    rescue_number: int | None = None
    allow_events: int = DEFAULT
    time_zone: str = "UTC"
    idempotency_key: str | None = None


def follow_run(request: FollowRequest, *, owner: User, actor: Actor, now: datetime) -> Dag:
    """Store a DAG that is run elsewhere, and follow it from its start.

    The same `idempotency_key` of the same owner gives the DAG that was stored first. Raises
    NotPermitted, QuotaExceeded, and InvalidInput with every fault of the files; nothing is stored
    then.
    """
    require_role(actor, Role.USER, "follow DAGs")
    known = _followed_before(request, owner)
    if known is not None:
        return known
    if len(request.idempotency_key or "") > 128:
        raise InvalidInput.of("at most 128 characters", field="idempotency_key")
    referenced = ReferencedFiles(request.files)
    checked = check_dag(
        request.dag_files,
        files=referenced,
        owner=owner,
        origin=request.origin,
        allow_missing_files=True,
    )
    findings = [*checked.findings, *checked.dag.additions]
    if findings:
        raise InvalidInput(findings)
    if request.rescue_number is not None:
        referenced.keep(rescue_path(request.dag_files, request.rescue_number))
    blobs = {path: store_bytes(content) for path, content in referenced.contents.items()}
    try:
        return _store_followed(request, checked, blobs, owner=owner, actor=actor, now=now)
    except (IntegrityError, QuotaExceeded):
        # The same request, sent twice at once: the other one was first.
        known = _followed_before(request, owner)
        if known is None:
            raise
        return known


def _followed_before(request: FollowRequest, owner: User) -> Dag | None:
    if request.idempotency_key is None:
        return None
    sent_before = Dag.objects.filter(
        owner=owner, idempotency_key=request.idempotency_key, is_followed=True
    )
    return sent_before.first()


def _store_followed(
    request: FollowRequest,
    checked: CheckedDag,
    blobs: Mapping[str, Blob],
    *,
    owner: User,
    actor: Actor,
    now: datetime,
) -> Dag:
    with transaction.atomic():
        # It makes no jobs here.
        size_bytes = sum(blob.size_bytes for blob in blobs.values())
        check_quota(owner=owner, group=None, size_bytes=size_bytes)
        dag = store_run(
            RunRequest(
                workspace=create_workspace(owner, blobs),
                owner=owner,
                dag_files=list(request.dag_files),
                origin=request.origin,
                resumption=Resumption(takes_newest=False, rescue_number=request.rescue_number),
                idempotency_key=request.idempotency_key,
            ),
            checked,
            actor=actor,
        )
        follow_log(
            dag.pk,
            name=request.log_name,
            actor=actor,
            now=now,
            allow_events=request.allow_events,
            time_zone=request.time_zone,
        )
    dag.refresh_from_db()
    return dag
