"""Script runs as the engine requests and grants them: queue, limits of the DAG, DEFER, macros.

Also the values behind the macros (the status of a DAG, exit codes of jobs that ended), and the DAGs
whose deferred scripts are due.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction
from django.db.models import Count, Q, QuerySet

from wms.core.loops import wake
from wms.dags.engine.node_features import Script, features_of
from wms.dags.engine.node_work import work_of
from wms.dags.engine.round import Round
from wms.dags.engine.settling.decisions import JOB_REMOVED, NO_CODE
from wms.dags.joins.selectors import has_failed
from wms.dags.models import Dag, Node, ScriptRun
from wms.dags.scripts.macros import JobEnds, expand_arguments
from wms.dags.scripts.run_leases import SCRIPTS_TASK
from wms.dags.states import DagState, DagStatus, ScriptKind, ScriptState
from wms.jobs.models import Job, JobEvent
from wms.jobs.selectors import of_clusters

_NO_PRE = -1


@dataclass(frozen=True, slots=True)
class ScriptRequest:
    """A script to be run for a node; `code` is the exit code of its jobs, or of what replaces them.

    `has_jobs`: something was submitted in this attempt of the node.
    """

    node: Node
    kind: ScriptKind
    code: int = 0
    has_jobs: bool = True


def request_runs(round_: Round, requests: Sequence[ScriptRequest]) -> None:
    """Put runs of these scripts into the queue, in this order. The nodes have such scripts."""
    runs = []
    for request in requests:
        script = features_of(request.node.features).script(request.kind)
        if script is not None:
            runs.append(_run(round_, request, script))
    ScriptRun.objects.bulk_create(runs, batch_size=1000)


def request_deferred_run(round_: Round, run: ScriptRun, defer_s: int) -> None:
    """Queue another run of a script that said "not yet", after at least this many seconds."""
    ScriptRun.objects.create(
        dag_id=run.dag_id,
        node_id=run.node_id,
        kind=run.kind,
        retry_number=run.retry_number,
        run_number=run.run_number + 1,
        executable=run.executable,
        arguments=run.arguments,
        directory=run.directory,
        due_at=round_.now + timedelta(seconds=defer_s),
    )


def grant_runs(round_: Round) -> int:
    """Grant as many of the waiting runs as the DAG's limits allow, first come first served.

    A halted DAG begins no PRE, a held one nothing. Returns the number of granted runs.
    """
    waiting = ScriptRun.objects.filter(dag=round_.dag, state=ScriptState.WAITING)
    kinds = _grantable_kinds(round_)
    if not kinds or not waiting.exists():
        return 0
    active_by_kind = Counter(
        dict(
            ScriptRun.objects.filter(
                dag=round_.dag, state__in=(ScriptState.GRANTED, ScriptState.RUNNING)
            )
            .values_list("kind")
            .annotate(Count("pk"))
            .order_by()
        )
    )
    granted: list[int] = []
    for kind in kinds:
        limit = _limit(round_, kind)
        free = max(limit - active_by_kind[kind], 0) if limit else None
        due = Q(due_at=None) | Q(due_at__lte=round_.now)
        queue = waiting.filter(due, kind=kind).order_by("pk").values_list("pk", flat=True)
        granted += queue[:free]
    if granted:
        ScriptRun.objects.filter(pk__in=granted).update(state=ScriptState.GRANTED)
        transaction.on_commit(partial(wake, SCRIPTS_TASK))
    return len(granted)


def _grantable_kinds(round_: Round) -> tuple[ScriptKind, ...]:
    if round_.dag.state == DagState.HELD:
        return ()
    if round_.dag.state == DagState.RUNNING or round_.is_ending:
        return (ScriptKind.PRE, ScriptKind.POST, ScriptKind.HOLD)
    return (ScriptKind.POST, ScriptKind.HOLD)


def _limit(round_: Round, kind: ScriptKind) -> int:
    options = round_.options
    return {
        ScriptKind.PRE: options.max_pre,
        ScriptKind.POST: options.max_post,
        ScriptKind.HOLD: options.max_hold_scripts,
    }[kind]


def _run(round_: Round, request: ScriptRequest, script: Script) -> ScriptRun:
    node = request.node
    values = dag_values(round_.dag) | _node_values(node, request)
    return ScriptRun(
        dag_id=node.dag_id,
        node_id=node.pk,
        kind=request.kind,
        retry_number=node.retry_number,
        executable=script.executable,
        arguments=expand_arguments(script.arguments, values, lambda: _job_ends(request)),
        directory=node.directory,
    )


def dag_values(dag: Dag) -> dict[str, str]:
    """Values of the macros about the DAG as a whole."""
    return {
        "DAGID": str(dag.pk),
        "DAG_STATUS": str(current_status(dag)),
        "FAILED_COUNT": str(dag.failed_count),
        "FUTILE_COUNT": str(dag.futile_count),
        "DONE_COUNT": str(dag.done_count),
        "QUEUED_COUNT": str(dag.submitted_count),
        "NODE_COUNT": str(dag.node_count),
    }


def current_status(dag: Dag) -> int:
    """DAG_STATUS of an active DAG, or the status with which it is ending."""
    if dag.is_ending:
        return dag.ending_status
    return int(DagStatus.NODE_FAILED if has_failed(dag) else DagStatus.OK)


def _node_values(node: Node, request: ScriptRequest) -> dict[str, str]:
    values = {
        "JOB": node.name,
        "NODE": node.name,
        "RETRY": str(node.retry_number),
        "MAX_RETRIES": str(node.max_retries),
    }
    if request.kind is ScriptKind.PRE:
        return values
    work = work_of(node)
    cluster = node.job_id if request.has_jobs else None
    return values | {
        "JOBID": f"{cluster}.{work.job_count - 1}" if cluster else "-1.-1",
        "CLUSTERID": str(cluster or -1),
        "RETURN": str(request.code),
        "SUCCESS": str(request.code == 0),
        "PRE_SCRIPT_RETURN": str(_NO_PRE if work.pre_code is None else work.pre_code),
    }


def _job_ends(request: ScriptRequest) -> JobEnds:
    node = request.node
    if node.job_id is None or not request.has_jobs:
        return JobEnds()
    events = (
        JobEvent.objects.filter(
            job__in=Job.objects.filter(of_clusters([node.job_id])).values("pk"),
            event__in=("complete", "fail", "kill"),
        )
        .order_by("job_id")
        .values_list("event", "facts")
    )
    codes, aborted = [], 0
    for event, facts in events:
        code = job_end_code(event, facts)
        if code == JOB_REMOVED:
            aborted += 1
        else:
            codes.append(code)
    return JobEnds(len(codes) + aborted, aborted, tuple(codes))


def job_end_code(event: str, facts: dict[str, int]) -> int:
    """Exit code of a job's end, as `$RETURN` has it."""
    if event == "complete":
        return 0
    if event == "kill":
        return JOB_REMOVED
    if facts.get("signal"):
        return -int(facts["signal"])
    return int(facts.get("exit_code") or NO_CODE)


def defer_delay_s(run: ScriptRun, node: Node) -> int | None:
    """Seconds until the run is repeated, if its exit code means "not yet"; else None."""
    script = features_of(node.features).script(ScriptKind(run.kind))
    if script is None or script.defer_status is None or run.exit_code != script.defer_status:
        return None
    return script.defer_s


def dags_with_due_scripts(now: datetime) -> QuerySet[ScriptRun, int]:
    """Ids of DAGs with a deferred script that may run again."""
    may_begin = Q(dag__state=DagState.RUNNING) | ~Q(dag__ending_event="")
    goes_on = Q(dag__state__in=(DagState.HALTED, DagState.IDLE)) & ~Q(kind=ScriptKind.PRE)
    return (
        ScriptRun.objects.filter(may_begin | goes_on, state=ScriptState.WAITING, due_at__lte=now)
        .exclude(dag__state=DagState.HELD)
        .values_list("dag_id", flat=True)
        .distinct()
    )
