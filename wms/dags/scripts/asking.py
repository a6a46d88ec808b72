"""The engine's side of scripts: asking for runs, granting them under the DAG's limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction
from django.db.models import Count, Q, QuerySet

from wms.core.loops import wake
from wms.dags.engine.decisions import JOB_REMOVED, NO_CODE
from wms.dags.engine.node_features import Script, features_of
from wms.dags.engine.node_work import work_of
from wms.dags.engine.round import Round
from wms.dags.models import Dag, Node, ScriptRun
from wms.dags.scripts.macros import JobEnds, filled_in
from wms.dags.scripts.service import SCRIPTS_TASK
from wms.dags.states import DagState, DagStatus, ScriptKind, ScriptState
from wms.jobs.models import JobEvent

_NO_PRE = -1


@dataclass(frozen=True, slots=True)
class Wanted:
    """A script to be run for a node; `code` is what its jobs, or what stands for them, gave.

    `has_jobs`: something was submitted in this attempt of the node.
    """

    node: Node
    kind: ScriptKind
    code: int = 0
    has_jobs: bool = True


def ask(round_: Round, wanted: Sequence[Wanted]) -> None:
    """Put runs of these scripts into the queue, in this order. The nodes have such scripts."""
    runs = []
    for each in wanted:
        script = features_of(each.node.features).script(each.kind)
        if script is not None:
            runs.append(_run(round_, each, script))
    ScriptRun.objects.bulk_create(runs, batch_size=1000)


def ask_again(round_: Round, run: ScriptRun, defer_s: int) -> None:
    """Run a script again that said "not yet", after so many seconds at the earliest."""
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


def grant(round_: Round) -> int:
    """Let as many of the waiting runs begin as the DAG's limits allow, first come first served.

    A halted DAG begins no PRE, one that is held nothing. Returns how many may begin.
    """
    waiting = ScriptRun.objects.filter(dag=round_.dag, state=ScriptState.WAITING)
    kinds = _kinds_now(round_)
    if not kinds or not waiting.exists():
        return 0
    busy = Counter(
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
        free = max(limit - busy[kind], 0) if limit else None
        due = Q(due_at=None) | Q(due_at__lte=round_.now)
        queue = waiting.filter(due, kind=kind).order_by("pk").values_list("pk", flat=True)
        granted += queue[:free]
    if granted:
        ScriptRun.objects.filter(pk__in=granted).update(state=ScriptState.GRANTED)
        transaction.on_commit(partial(wake, SCRIPTS_TASK))
    return len(granted)


def _kinds_now(round_: Round) -> tuple[ScriptKind, ...]:
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


def _run(round_: Round, wanted: Wanted, script: Script) -> ScriptRun:
    node = wanted.node
    values = dag_values(round_.dag) | _node_values(node, wanted)
    return ScriptRun(
        dag_id=node.dag_id,
        node_id=node.pk,
        kind=wanted.kind,
        retry_number=node.retry_number,
        executable=script.executable,
        arguments=filled_in(script.arguments, values, lambda: _job_ends(wanted)),
        directory=node.directory,
    )


def dag_values(dag: Dag) -> dict[str, str]:
    """The macros that tell how the DAG fares."""
    return {
        "DAGID": str(dag.pk),
        "DAG_STATUS": str(status_now(dag)),
        "FAILED_COUNT": str(dag.failed_count),
        "FUTILE_COUNT": str(dag.futile_count),
        "DONE_COUNT": str(dag.done_count),
        "QUEUED_COUNT": str(dag.submitted_count),
        "NODE_COUNT": str(dag.node_count),
    }


def status_now(dag: Dag) -> int:
    """The status that a DAG shows while it goes on, or with which it is ending."""
    if dag.is_ending:
        return dag.ending_status
    return int(DagStatus.NODE_FAILED if dag.failed_count else DagStatus.OK)


def _node_values(node: Node, wanted: Wanted) -> dict[str, str]:
    values = {
        "JOB": node.name,
        "NODE": node.name,
        "RETRY": str(node.retry_number),
        "MAX_RETRIES": str(node.max_retries),
    }
    if wanted.kind is ScriptKind.PRE:
        return values
    work = work_of(node)
    cluster = node.job_id if wanted.has_jobs else None
    return values | {
        "JOBID": f"{cluster}.{work.job_count - 1}" if cluster else "-1.-1",
        "CLUSTERID": str(cluster or -1),
        "RETURN": str(wanted.code),
        "SUCCESS": str(wanted.code == 0),
        "PRE_SCRIPT_RETURN": str(_NO_PRE if work.pre_code is None else work.pre_code),
    }


def _job_ends(wanted: Wanted) -> JobEnds:
    node = wanted.node
    if node.job_id is None or not wanted.has_jobs:
        return JobEnds()
    events = (
        JobEvent.objects.filter(
            Q(job_id=node.job_id) | Q(job__cluster_id=node.job_id),
            event__in=("complete", "fail", "kill"),
        )
        .order_by("job_id")
        .values_list("event", "facts")
    )
    codes, aborted = [], 0
    for event, facts in events:
        code = code_of(event, facts)
        if code == JOB_REMOVED:
            aborted += 1
        else:
            codes.append(code)
    return JobEnds(len(codes) + aborted, aborted, tuple(codes))


def code_of(event: str, facts: dict[str, int]) -> int:
    """The code of a job's end, as `$RETURN` has it."""
    if event == "complete":
        return 0
    if event == "kill":
        return JOB_REMOVED
    if facts.get("signal"):
        return -int(facts["signal"])
    return int(facts.get("exit_code") or NO_CODE)


def defers(run: ScriptRun, node: Node) -> int | None:
    """After how many seconds this ended run is run again, if its status says "not yet"."""
    script = features_of(node.features).script(ScriptKind(run.kind))
    if script is None or script.defer_status is None or run.exit_code != script.defer_status:
        return None
    return script.defer_s


def due_dags(now: datetime) -> QuerySet[ScriptRun, int]:
    """DAGs of which a deferred script may run again."""
    may_begin = Q(dag__state=DagState.RUNNING) | ~Q(dag__ending_event="")
    goes_on = Q(dag__state__in=(DagState.HALTED, DagState.IDLE)) & ~Q(kind=ScriptKind.PRE)
    return (
        ScriptRun.objects.filter(may_begin | goes_on, state=ScriptState.WAITING, due_at__lte=now)
        .exclude(dag__state=DagState.HELD)
        .values_list("dag_id", flat=True)
        .distinct()
    )
