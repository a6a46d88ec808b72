"""Submission of a DAG: checked and stored with its files as a whole, or not at all.

The same idempotency key and content give the DAG that was stored first; quotas are kept. Also the
check alone, and the warnings of an accepted DAG.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, BinaryIO

from django.db import transaction
from django.utils import timezone

from matching.negotiation.deadline import Deadline
from wms.accounting.services import ensure_submitter
from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.conf import conf
from wms.core.errors import Finding, InvalidInput
from wms.core.idempotency import RequestKey, content_sha256, made_before, only_once
from wms.core.idempotency_models import MadeKind
from wms.core.labels import checked_labels
from wms.core.models import Role, User
from wms.core.policy import require_role
from wms.dags.language.origin import TOP, Origin
from wms.dags.models import Dag, DagEvent
from wms.dags.priorities import checked_priority
from wms.dags.rescue.names import rescue_stem
from wms.dags.rescue.rescue_files import BY_DEFAULT, Resumption
from wms.dags.states import Binding
from wms.dags.submission.checking import CheckedDag, FaultyDag, check_dag
from wms.dags.submission.expected_sites import site_warnings
from wms.dags.submission.quota_usage import jobs_to_come
from wms.dags.submission.runs import (
    SUBMIT_EVENT,
    RunRequest,
    all_labels,
    check_options,
    store_run,
)
from wms.jobs.content.blobs import store_bytes, store_sent
from wms.jobs.content.paths import checked_path
from wms.jobs.models import Blob
from wms.jobs.operations import create_workspace
from wms.jobs.quotas import check_quota
from wms.jobs.uploads.operations import use_uploads


@dataclass(frozen=True, slots=True)
class MadeFrom:
    """The DAG of which a submission is an edited copy, why, and what differs, for events."""

    dag: Dag
    reason: str
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DagSubmission:
    """A submission: the DAG file, the DAG's submit description, and all other files.

    `files` are open binary streams that can be rewound, by their name in the workspace. Bytes of
    the DAG file that are no text are surrogates in `dag_text`.
    """

    dag_name: str
    dag_text: str
    files: Mapping[str, BinaryIO] = field(default_factory=dict)
    description_text: str = ""
    description_name: str = ""
    idempotency_key: str | None = None
    #: Further DAG files, among `files`, that run together with the first as one DAG.
    more_dags: tuple[str, ...] = ()
    origin: Origin = TOP
    options: Mapping[str, Any] = field(default_factory=dict)
    resumption: Resumption = BY_DEFAULT
    #: `site` or `job`; where it is given, it wins over the description.
    binding: str = ""
    #: Deadline of the check; None for the limit of the settings.
    deadline: Deadline | None = None
    #: Labels, more than those of the description.
    labels: tuple[str, ...] = ()
    #: From 0 to 10; where it is given, it wins over the description.
    priority: int | None = None
    made_from: MadeFrom | None = None

    @property
    def dag_content(self) -> bytes:
        """Bytes of the DAG file as it was sent."""
        return self.dag_text.encode(errors="surrogateescape")

    @property
    def all_files(self) -> dict[str, BinaryIO]:
        """All files by their names, the first DAG file included."""
        return {**self.files, self.dag_name: io.BytesIO(self.dag_content)}

    @property
    def dag_files(self) -> list[str]:
        """Names of all DAG files, the first one first."""
        return [self.dag_name, *self.more_dags]


@dataclass(frozen=True, slots=True)
class SubmittedDag:
    """A DAG that was stored, or the one that was stored before under the same key."""

    dag: Dag
    is_new: bool


def submit_dag(submission: DagSubmission, *, owner: User, actor: Actor) -> Dag:
    """The DAG that `submit_dag_once` stored, now or before."""
    return submit_dag_once(submission, owner=owner, actor=actor).dag


def submit_dag_once(submission: DagSubmission, *, owner: User, actor: Actor) -> SubmittedDag:
    """Check and store a DAG, which is idle then and waits for the next negotiation.

    The same `idempotency_key` and content of the same owner give the DAG that was stored first, for
    a day. Raises NotPermitted, QuotaExceeded, Conflict for another content under that key, and
    InvalidInput with every fault; then nothing was stored.
    """
    require_role(actor, Role.USER, "submit DAGs")
    key = _key_of(submission)
    known = made_before(owner, key)
    if known is not None:
        return SubmittedDag(Dag.objects.get(pk=known), is_new=False)
    checked = check_submission(submission, owner=owner)
    if checked.findings:
        raise FaultyDag(checked)
    blobs = store_files(submission)
    with only_once(owner, key) as creation:
        if creation.found is not None:
            return SubmittedDag(Dag.objects.get(pk=creation.found), is_new=False)
        dag = _store(submission, checked, blobs, owner=owner, actor=actor)
        creation.made = dag.pk
    return SubmittedDag(dag, is_new=True)


def _key_of(submission: DagSubmission) -> RequestKey | None:
    if submission.idempotency_key is None:
        return None
    given = {
        "dags": submission.dag_files,
        "description": [submission.description_name, submission.description_text],
        "origin": asdict(submission.origin),
        "options": submission.options,
        "resumption": asdict(submission.resumption),
        "binding": submission.binding,
        "labels": submission.labels,
        "priority": submission.priority,
    }
    if submission.made_from is not None:
        given["made_from"] = submission.made_from.dag.pk
    return RequestKey(
        MadeKind.DAG, submission.idempotency_key, content_sha256(given, submission.all_files)
    )


def submission_warnings(dag: Dag) -> list[Finding]:
    """Warnings of the time when the DAG was accepted."""
    facts = (
        DagEvent.objects.filter(dag=dag, event=SUBMIT_EVENT).values_list("facts", flat=True).first()
    )
    return [Finding(**warning) for warning in (facts or {}).get("warnings", [])]


def check_submission(submission: DagSubmission, *, owner: User) -> CheckedDag:
    """All findings about a DAG; nothing is stored. One warning is that no site takes it now.

    Raises InvalidInput for faults of the request itself: names, options.
    """
    findings = []
    described = [submission.description_name] if submission.description_text else []
    for name in [submission.dag_name, *described, *submission.files]:
        try:
            if checked_path(name, field="file") != name:
                findings.append(
                    Finding(f"the file name {name!r} is not in its plain form", field="file")
                )
        except InvalidInput as error:
            findings += error.findings
    if "\0" in submission.description_text:
        findings.append(Finding("the text contains a zero byte", file=submission.description_name))
    if submission.binding not in {"", *Binding.values}:
        known = " or ".join(Binding.values)
        findings.append(Finding(f"must be {known}", field="binding"))
    findings += _faults_of_values(submission)
    if findings:
        raise InvalidInput(findings)
    check_options(submission.options)
    checked = check_dag(
        submission.dag_files,
        files=submission.all_files,
        owner=owner,
        origin=submission.origin,
        description_text=submission.description_text,
        description_name=submission.description_name,
        binding=Binding(submission.binding) if submission.binding else None,
        deadline=submission.deadline,
    )
    checked.findings += checked.allocations.faults(
        owner, timezone.now(), dag=checked.dag, files=submission.all_files.keys()
    )
    all_labels(submission.labels, checked.description)
    if not checked.findings:
        checked.warnings += site_warnings(
            checked,
            name=rescue_stem(submission.dag_files).removesuffix(".dag"),
            owner=owner,
            file=submission.description_name or submission.dag_name,
            now=timezone.now(),
        )
    return checked


def _faults_of_values(submission: DagSubmission) -> list[Finding]:
    faults = []
    try:
        checked_labels(submission.labels)
    except ValueError as error:
        faults.append(Finding(str(error), field="labels"))
    try:
        if submission.priority is not None:
            checked_priority(submission.priority)
    except ValueError as error:
        faults.append(Finding(str(error), field="priority"))
    return faults


def store_files(submission: DagSubmission) -> dict[str, Blob]:
    """Store the contents of all files, each once, and return them by the files' names."""
    limit_bytes = conf().max_upload_bytes
    blobs = {}
    for name, stream in submission.files.items():
        blobs[name] = store_sent(stream, limit_bytes=limit_bytes)
    blobs[submission.dag_name] = store_bytes(submission.dag_content)
    if submission.description_text:
        blobs.setdefault(
            submission.description_name, store_bytes(submission.description_text.encode())
        )
    return blobs


@transaction.atomic
def _store(
    submission: DagSubmission,
    checked: CheckedDag,
    blobs: Mapping[str, Blob],
    *,
    owner: User,
    actor: Actor,
) -> Dag:
    group, source = checked.description.group, submission.made_from
    use_uploads(submission.files.values(), owner=owner, now=timezone.now())
    check_quota(
        owner=owner,
        group=group,
        jobs=jobs_to_come(checked.dag),
        clusters=1,
        size_bytes=sum(blob.size_bytes for blob in blobs.values()),
    )
    dag = store_run(
        RunRequest(
            workspace=create_workspace(owner, blobs, owner_group=group.name if group else ""),
            owner=owner,
            dag_files=submission.dag_files,
            origin=submission.origin,
            options=submission.options,
            resumption=submission.resumption,
            labels=submission.labels,
            priority=submission.priority,
            description_file=submission.description_name if submission.description_text else "",
            made_from=source.dag if source is not None else None,
            reason=source.reason if source is not None else "",
            facts=source.facts if source is not None else {},
        ),
        checked,
        actor=actor,
    )
    ensure_submitter(owner, group)
    _audit(dag, source, actor)
    return dag


def _audit(dag: Dag, source: MadeFrom | None, actor: Actor) -> None:
    if source is None:
        record_action("submit DAG", target=f"DAG {dag.pk}", actor=actor, facts={"name": dag.name})
        return
    record_action(
        "edit and resubmit DAG",
        target=f"DAG {source.dag.pk}",
        actor=actor,
        reason=source.reason,
        facts={"new_dag": dag.pk, **source.facts},
    )
