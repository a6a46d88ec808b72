"""Runs elsewhere that are to be followed: their files are stored as a DAG, once for a key.

Only files that the DAG files refer to are stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import BinaryIO

from django.db import transaction

from wms.core.actors import Actor
from wms.core.errors import InvalidInput
from wms.core.idempotency import RequestKey, content_sha256, made_before, only_once
from wms.core.idempotency_models import MadeKind
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
from wms.dags.submission.submit import SubmittedDag
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


def follow_run(request: FollowRequest, *, owner: User, actor: Actor, now: datetime) -> SubmittedDag:
    """Store a DAG that is run elsewhere, and follow it from its start.

    The same `idempotency_key` and content of the same owner give the DAG that was stored first, for
    a day. Raises NotPermitted, QuotaExceeded, Conflict for another content under that key, and
    InvalidInput with every fault of the files; nothing is stored then.
    """
    require_role(actor, Role.USER, "follow DAGs")
    key = _key_of(request)
    known = made_before(owner, key)
    if known is not None:
        return SubmittedDag(Dag.objects.get(pk=known), is_new=False)
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
    with only_once(owner, key) as creation:
        if creation.found is not None:
            return SubmittedDag(Dag.objects.get(pk=creation.found), is_new=False)
        dag = _store_followed(request, checked, blobs, owner=owner, actor=actor, now=now)
        creation.made = dag.pk
    return SubmittedDag(dag, is_new=True)


def _key_of(request: FollowRequest) -> RequestKey | None:
    if request.idempotency_key is None:
        return None
    given = {
        "dags": request.dag_files,
        "log": [request.log_name, request.allow_events, request.time_zone],
        "origin": asdict(request.origin),
        "rescue": request.rescue_number,
    }
    return RequestKey(
        MadeKind.FOLLOWED_DAG, request.idempotency_key, content_sha256(given, request.files)
    )


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
