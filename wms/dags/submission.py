"""Taking in a DAG: all of it, or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import BinaryIO

from django.db import IntegrityError, transaction

from wms.accounting.services import ensure_submitter
from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.conf import conf
from wms.core.errors import Finding, InvalidInput
from wms.core.loops import wake
from wms.core.models import Role, User
from wms.core.policy import require_role
from wms.dags.checking import CheckedDag, check_dag
from wms.dags.lifecycle import NEGOTIATE_TASK
from wms.dags.models import Dag, DagEvent, Edge, Node, SubmitDescription
from wms.dags.states import DagState
from wms.jobs.blobs import store_bytes, store_stream
from wms.jobs.models import Blob
from wms.jobs.paths import checked_path
from wms.jobs.services import create_workspace

_BATCH = 1000
_SUBMIT = "submit"


@dataclass(frozen=True, slots=True)
class DagSubmission:
    """What a user sends: the DAG file, the DAG-level submit description, and all other files.

    `files` are open binary streams that can be rewound, by their name in the workspace.
    """

    dag_name: str
    dag_text: str
    files: Mapping[str, BinaryIO] = field(default_factory=dict)
    description_text: str = ""
    description_name: str = ""
    idempotency_key: str | None = None


def submit_dag(submission: DagSubmission, *, owner: User, actor: Actor) -> Dag:
    """Check and store a DAG; it is idle then and waits for the next negotiation.

    The same `idempotency_key` of the same owner gives the DAG that was stored first. Raises
    NotPermitted, and InvalidInput with every fault; then nothing was stored.
    """
    require_role(actor, Role.USER, "submit DAGs")
    known = _submitted_before(submission, owner)
    if known is not None:
        return known
    checked = _checked(submission, owner)
    blobs = _store_files(submission)
    try:
        return _store(submission, checked, blobs, owner=owner, actor=actor)
    except IntegrityError:
        # The same request, sent twice at once: the other one was first.
        known = _submitted_before(submission, owner)
        if known is None:
            raise
        return known


def submission_warnings(dag: Dag) -> list[Finding]:
    """What was told when the DAG was accepted: faults are none, but may not be meant either."""
    told = DagEvent.objects.filter(dag=dag, event=_SUBMIT).values_list("facts", flat=True).first()
    return [Finding(**warning) for warning in (told or {}).get("warnings", [])]


def _submitted_before(submission: DagSubmission, owner: User) -> Dag | None:
    if submission.idempotency_key is None:
        return None
    return Dag.objects.filter(owner=owner, idempotency_key=submission.idempotency_key).first()


def _checked(submission: DagSubmission, owner: User) -> CheckedDag:
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
    if "\0" in submission.dag_text + submission.description_text:
        findings.append(Finding("the text contains a zero byte", file=submission.dag_name))
    if len(submission.idempotency_key or "") > 128:
        findings.append(Finding("at most 128 characters", field="idempotency_key"))
    if findings:
        raise InvalidInput(findings)
    checked = check_dag(
        submission.dag_text,
        dag_name=submission.dag_name,
        files=submission.files,
        owner=owner,
        description_text=submission.description_text,
        description_name=submission.description_name,
    )
    if checked.findings:
        raise InvalidInput(checked.findings)
    return checked


def _store_files(submission: DagSubmission) -> dict[str, Blob]:
    limit_bytes = conf().max_upload_bytes
    blobs = {}
    for name, stream in submission.files.items():
        stream.seek(0)
        blobs[name] = store_stream(stream, limit_bytes=limit_bytes)
    blobs[submission.dag_name] = store_bytes(submission.dag_text.encode())
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
    description = checked.description
    dag = Dag.objects.create(
        name=submission.dag_name.removesuffix(".dag"),
        owner=owner,
        workspace=create_workspace(owner, blobs),
        idempotency_key=submission.idempotency_key,
        ad_attributes=description.attributes,
        accounting_group=description.group,
        concurrency_limits=description.limits,
        rematch_expression=description.rematch_expression,
        node_count=len(checked.dag.nodes),
        **(
            {"environment_template": description.environment}
            if description.environment is not None
            else {}
        ),
    )
    _store_nodes(dag, checked)
    ensure_submitter(owner, description.group)
    DagEvent.objects.create(
        dag=dag,
        event=_SUBMIT,
        to_state=DagState.IDLE,
        actor=actor.name,
        facts={"warnings": [asdict(warning) for warning in checked.warnings]}
        if checked.warnings
        else {},
    )
    record_action("submit DAG", target=f"DAG {dag.pk}", actor=actor, facts={"name": dag.name})
    transaction.on_commit(partial(wake, NEGOTIATE_TASK))
    return dag


def _store_nodes(dag: Dag, checked: CheckedDag) -> None:
    descriptions = SubmitDescription.objects.bulk_create(
        [
            SubmitDescription(dag=dag, name=name, content=submit_file.as_dict())
            for name, submit_file in checked.submit_files.items()
        ]
    )
    by_name = {description.name: description for description in descriptions}
    parents: dict[str, int] = dict.fromkeys(checked.dag.nodes, 0)
    for _, child in checked.dag.edges:
        parents[child] += 1
    nodes = Node.objects.bulk_create(
        [
            Node(
                dag=dag,
                name=spec.name,
                ordinal=ordinal,
                submit_description=by_name[spec.submit_file],
                variables=spec.variables,
                unfinished_parents=parents[spec.name],
                max_retries=spec.max_retries,
            )
            for ordinal, spec in enumerate(checked.dag.nodes.values(), start=1)
        ],
        batch_size=_BATCH,
    )
    ids = {node.name: node.pk for node in nodes}
    Edge.objects.bulk_create(
        [
            Edge(dag=dag, parent_id=ids[parent], child_id=ids[child])
            for parent, child in checked.dag.edges
        ],
        batch_size=_BATCH,
    )
