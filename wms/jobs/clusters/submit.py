"""Submission of a cluster: it is checked and stored as a whole, or not at all.

A small cluster has its jobs at once, a large one gets them later; quotas are kept. A repetition
under an idempotency key gives, for some time, the cluster stored first. Also the check alone, and
the warnings of an accepted cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, BinaryIO

from django.db import transaction
from django.utils import timezone

from wms.accounting.services import ensure_submitter
from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.conf import conf
from wms.core.errors import Finding, InvalidInput
from wms.core.idempotency import RequestKey, content_sha256, made_before, only_once
from wms.core.idempotency_models import MadeKind
from wms.core.loops import wake_loop
from wms.core.models import Role, User
from wms.core.policy import require_role
from wms.jobs.clusters import lifecycle
from wms.jobs.clusters.checking import CheckedCluster, check_cluster, default_name
from wms.jobs.clusters.making import store_jobs
from wms.jobs.clusters.parameters.new_tables import NewTable, index_of_lines
from wms.jobs.content.blobs import store_bytes, store_sent
from wms.jobs.content.paths import checked_path
from wms.jobs.models import Blob, Cluster, ClusterEvent, ClusterTable
from wms.jobs.operations import create_workspace
from wms.jobs.quotas import check_quota
from wms.jobs.uploads.operations import use_uploads
from wms.jobs.writing.job_writer import new_ids


@dataclass(frozen=True, slots=True)
class ClusterSubmission:
    """A submission: a description in submit language or JSON, options, and files.

    `options` are those of `wms.jobs.clusters.options`; a description in JSON may have them itself.
    `files` are open binary streams that can be rewound, by their name in the workspace.
    """

    description: str | Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, BinaryIO] = field(default_factory=dict)
    description_name: str = "job.sub"
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True)
class SubmittedCluster:
    """A cluster that was stored, or the one that was stored before under the same key."""

    cluster: Cluster
    warnings: list[Finding]
    is_new: bool


def submit_cluster(submission: ClusterSubmission, *, owner: User, actor: Actor) -> SubmittedCluster:
    """Check and store a cluster; a small one has its jobs at once, a large one gets them later.

    The same `idempotency_key` and content of the same owner give the cluster that was stored first,
    for a day. Raises NotPermitted, Conflict for another content under that key, and
    InvalidInput with every fault; then nothing was stored.
    """
    require_role(actor, Role.USER, "submit jobs")
    _check_request(submission)
    key = _key_of(submission)
    known = made_before(owner, key)
    if known is not None:
        return _submitted_before(known)
    [cluster_id] = new_ids(1)
    checked = check_cluster(
        submission.description,
        options=submission.options,
        files=submission.files,
        owner=owner,
        cluster_id=cluster_id,
        file=submission.description_name,
    )
    if checked.findings:
        raise InvalidInput(checked.findings)
    blobs = _store_files(submission)
    with only_once(owner, key) as creation:
        if creation.found is not None:
            return _submitted_before(creation.found)
        cluster = _store(cluster_id, submission, checked, blobs, owner=owner, actor=actor)
        creation.made = cluster.pk
    return SubmittedCluster(cluster, checked.warnings, is_new=True)


def check_submission(submission: ClusterSubmission, *, owner: User) -> CheckedCluster:
    """All faults and warnings of what would be submitted; nothing is stored. Quotas do not count.

    Raises InvalidInput for names of files that cannot be.
    """
    _check_request(submission)
    return check_cluster(
        submission.description,
        options=submission.options,
        files=submission.files,
        owner=owner,
        cluster_id=0,
        file=submission.description_name,
    )


def submission_warnings(cluster: Cluster) -> list[Finding]:
    """Warnings of the time when the cluster was accepted."""
    events = ClusterEvent.objects.filter(cluster=cluster, event=lifecycle.SUBMIT_EVENT)
    facts = events.values_list("facts", flat=True).first()
    return [Finding(**warning) for warning in (facts or {}).get("warnings", [])]


def _check_request(submission: ClusterSubmission) -> None:
    findings = []
    for name in submission.files:
        try:
            if checked_path(name, field="file") != name:
                message = f"the file name {name!r} is not in its plain form"
                findings.append(Finding(message, field="file"))
        except InvalidInput as error:
            findings += error.findings
    if findings:
        raise InvalidInput(findings)


def _key_of(submission: ClusterSubmission) -> RequestKey | None:
    if submission.idempotency_key is None:
        return None
    given = {"description": submission.description, "options": submission.options}
    return RequestKey(
        MadeKind.CLUSTER, submission.idempotency_key, content_sha256(given, submission.files)
    )


def _submitted_before(cluster_id: int) -> SubmittedCluster:
    known = Cluster.objects.get(pk=cluster_id)
    return SubmittedCluster(known, submission_warnings(known), is_new=False)


def _store_files(submission: ClusterSubmission) -> dict[str, Blob]:
    limit_bytes = conf().max_upload_bytes
    blobs = {}
    for name, stream in submission.files.items():
        blobs[name] = store_sent(stream, limit_bytes=limit_bytes)
    return blobs


@transaction.atomic
def _store(
    cluster_id: int,
    submission: ClusterSubmission,
    checked: CheckedCluster,
    blobs: Mapping[str, Blob],
    *,
    owner: User,
    actor: Actor,
) -> Cluster:
    options, now = checked.options, timezone.now()
    use_uploads(submission.files.values(), owner=owner, now=now)
    check_quota(
        owner=owner,
        group=options.group,
        jobs=checked.size,
        clusters=1,
        size_bytes=sum(blob.size_bytes for blob in blobs.values()),
    )
    cluster = Cluster.objects.create(
        id=cluster_id,
        name=options.name or default_name(checked.description),
        owner=owner,
        accounting_group=options.group,
        labels=list(options.labels),
        workspace=create_workspace(
            owner, blobs, owner_group=options.group.name if options.group else ""
        ),
        language=checked.language,
        description=store_bytes(checked.stored_text),
        size=checked.size,
        max_idle=options.max_idle,
        max_materialize=options.max_materialize,
        deadline=options.deadline,
        look_at=None if checked.is_eager else now,
        created_at=now,
    )
    _store_tables(cluster, checked.tables, blobs)
    warnings = [warning.stored() for warning in checked.warnings]
    lifecycle.note_submission(cluster, {"warnings": warnings} if warnings else {}, actor=actor)
    if checked.is_eager:
        store_jobs(cluster, checked.specs, range(cluster.size))
        cluster.next_process = cluster.size
        cluster.save(update_fields=["next_process"])
    ensure_submitter(owner, options.group)
    record_action(
        "submit cluster",
        target=f"cluster {cluster.pk}",
        actor=actor,
        facts={"name": cluster.name, "jobs": cluster.size},
    )
    transaction.on_commit(partial(wake_loop, lifecycle.MATERIALISE_TASK))
    return cluster


def _store_tables(cluster: Cluster, tables: Sequence[NewTable], blobs: Mapping[str, Blob]) -> None:
    ClusterTable.objects.bulk_create(
        [_row(cluster, place, new, blobs) for place, new in enumerate(tables)]
    )


def _row(cluster: Cluster, place: int, new: NewTable, blobs: Mapping[str, Blob]) -> ClusterTable:
    table, kept, content, index = new.table, new.table.items, None, new.table.index
    if new.content is not None:
        kept, content, index = None, store_bytes(new.content), index_of_lines(new.content)
    elif new.file:
        content = blobs[new.file]
    return ClusterTable(
        cluster=cluster,
        place=place,
        kind=table.kind,
        first_process=table.first_process,
        row_count=table.row_count,
        jobs_per_row=table.jobs_per_row,
        items=list(kept) if kept is not None else None,
        content=content,
        offsets=index.to_bytes() if index is not None else None,
        first_row=table.first_row,
        row_step=table.row_step,
    )
