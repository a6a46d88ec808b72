"""Services on trials, permitted and audited: ask for one, stop one.

A user has a few that have not ended; their files count among what quotas limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, BinaryIO, Final

from django.db import transaction

from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.database.locks import wait_for_locks
from wms.core.errors import Conflict, Finding, InvalidInput, NotPermitted, QuotaExceeded
from wms.core.loops import wake
from wms.core.models import Role, User
from wms.core.policy import require_role
from wms.core.statemachine import DatabaseTime
from wms.dags.language.origin import TOP, Origin
from wms.dags.models import Trial
from wms.dags.reading.selectors import find_dag
from wms.dags.simulation.dry_run.dry_runs import read_dry_run_settings
from wms.dags.submission.submit import DagSubmission
from wms.dags.submission.workspaces import ReadFiles
from wms.dags.trials.archives import keep_files, remove_archives
from wms.dags.trials.lifecycle import RUN_TASK, TRIALS
from wms.dags.trials.policy import may_stop
from wms.dags.trials.selectors import find_trial
from wms.dags.trials.states import ACTIVE, TrialKind, TrialState
from wms.jobs.content.paths import checked_path
from wms.jobs.quotas import check_quota

#: Trials of one user that have not ended.
MAX_ACTIVE: Final = 4
#: Names in directories are found in an archive; more of them are no submission.
MAX_FILES: Final = 10_000


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """Request for a trial: what is done with which DAG files, and from where names are looked up.

    `behaviour` is the behaviour file of a dry run. Of a check `allows_missing` makes missing
    descriptions warnings, and `is_for_dagman` makes all that plain DAGMan does not know a fault.
    """

    kind: TrialKind
    dag_files: tuple[str, ...]
    files: Mapping[str, BinaryIO]
    origin: Origin = TOP
    allows_missing: bool = False
    is_for_dagman: bool = False
    behaviour: Mapping[str, Any] = field(default_factory=dict)

    def of_submission(self, submission: DagSubmission) -> TrialRequest:
        """The same with the files of a submission."""
        return replace(
            self,
            dag_files=tuple(submission.dag_files),
            files=submission.all_files,
            origin=submission.origin,
        )


def request_trial_of_dag(dag_id: int, request: TrialRequest, *, owner: User, actor: Actor) -> Trial:
    """Ask for a trial of the files that a DAG has now; what is large and no text by its name only.

    Raises NotFound for a DAG that the owner may not see; else as `request_trial`.
    """
    dag = find_dag(owner, dag_id)
    files = ReadFiles(dag.workspace_id, whole=dag.dag_files)
    request = replace(request, dag_files=tuple(dag.dag_files), files=files, origin=dag.origin)
    return request_trial(request, owner=owner, actor=actor)


def request_trial(request: TrialRequest, *, owner: User, actor: Actor) -> Trial:
    """Store the files, to be tried by a worker soon.

    Raises NotPermitted, QuotaExceeded, and InvalidInput with every fault of names and behaviour;
    then nothing is kept.
    """
    require_role(actor, Role.USER, "try DAGs")
    _check(request)
    kept = keep_files(request.files)
    try:
        return _store(request, kept.name, kept.size_bytes, owner=owner, actor=actor)
    except BaseException:
        remove_archives([kept.name])
        raise


def _check(request: TrialRequest) -> None:
    findings: list[Finding] = []
    if len(request.files) > MAX_FILES:
        findings.append(Finding(f"more than {MAX_FILES} files", field="file"))
    for name in request.files:
        try:
            if checked_path(name, field="file") != name:
                findings.append(
                    Finding(f"the file name {name!r} is not in its plain form", field="file")
                )
        except InvalidInput as error:
            findings += error.findings
    findings += [
        Finding(f"{folder!r} is a file, and a directory of others", field="file")
        for folder in sorted(_folders(request.files) & set(request.files))
    ]
    if findings:
        raise InvalidInput(findings)
    if request.kind is TrialKind.DRY_RUN:
        read_dry_run_settings(request.behaviour)


def _folders(names: Mapping[str, BinaryIO]) -> set[str]:
    folders = set()
    for name in names:
        parts = name.split("/")[:-1]
        folders |= {"/".join(parts[:depth]) for depth in range(1, len(parts) + 1)}
    return folders


@transaction.atomic
def _store(
    request: TrialRequest, archive: str, size_bytes: int, *, owner: User, actor: Actor
) -> Trial:
    wait_for_locks([f"DAG trials of {owner.pk}"])
    active = Trial.objects.filter(owner=owner, state__in=ACTIVE).count()
    if active >= MAX_ACTIVE:
        raise QuotaExceeded(
            f"You have {active} trials that have not ended, and may have {MAX_ACTIVE}.",
            quota="trials", whose=f"user {owner}", limit=MAX_ACTIVE, used=active, asked=1,
        )  # fmt: skip
    check_quota(owner=owner, group=None, size_bytes=size_bytes)
    origin = request.origin
    trial = Trial.objects.create(
        owner=owner,
        kind=request.kind,
        request={
            "dag_files": list(request.dag_files),
            "directory": origin.directory,
            "root": origin.root,
            "uses_dag_dir": origin.uses_dag_dir,
            "allows_missing": request.allows_missing,
            "is_for_dagman": request.is_for_dagman,
            "behaviour": dict(request.behaviour),
        },
        archive=archive,
        size_bytes=size_bytes,
    )
    record_action(
        f"ask for a {request.kind.label} of a DAG",
        target=f"trial {trial.pk}",
        actor=actor,
        facts={"dag_files": list(request.dag_files)[:20], "bytes": size_bytes},
    )
    transaction.on_commit(partial(wake, RUN_TASK))
    return trial


@transaction.atomic
def stop_trial(trial_id: int, *, actor: Actor, reason: str = "") -> Trial:
    """Stop a trial; its worker leaves it within seconds. Stopping again changes nothing.

    Raises NotFound, NotPermitted, and Conflict for one that has ended otherwise.
    """
    require_role(actor, Role.USER, "stop trials")
    if actor.user is None:
        raise NotPermitted("Only a person stops trials.")
    trial = find_trial(actor.user, trial_id)
    if not may_stop(actor.user, trial):
        raise NotPermitted(f"{actor.name} may not stop trial {trial_id} of another user.")
    applied, _ = TRIALS.apply(
        "stop", [trial.pk], actor=actor, reason=reason, ended_at=DatabaseTime(), lease=""
    )
    trial = find_trial(actor.user, trial_id)
    if applied.changed:
        record_action("stop trial", target=f"trial {trial.pk}", actor=actor, reason=reason)
        transaction.on_commit(lambda: remove_archives([trial.archive]))
    elif trial.state != TrialState.STOPPED:
        raise Conflict(f"Trial {trial.pk} has ended: it is {trial.state}.")
    return trial
