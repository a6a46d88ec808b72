"""The engine: reads what happened to a DAG and moves its nodes on.

One transaction per DAG and round, under the lock of the DAG's row: the inbox entries are deleted
in the transaction that acts on them, so each event counts exactly once, whoever is killed when.
The work is proportional to the events, not to the size of the DAG.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from datetime import datetime
from enum import Enum
from typing import Any

import structlog
from celery.exceptions import SoftTimeLimitExceeded
from django.db import OperationalError, transaction
from django.db.models import Min

from wms.core.models import InboxEntry
from wms.dags import lifecycle, steering
from wms.dags.ending import (
    begin_ending,
    ending_now,
    ending_of_abort,
    go_on_ending,
)
from wms.dags.inner import go_on_at_site
from wms.dags.models import Dag, Node
from wms.dags.news import (
    News,
    read_job_events,
    take_news,
    verdicts_of_inner,
    verdicts_of_jobs,
    verdicts_of_requests,
    verdicts_of_scripts,
)
from wms.dags.ready import ready_nodes
from wms.dags.rounds import ENGINE, Round
from wms.dags.scripts.asking import grant
from wms.dags.settling import Verdict, begin, settle, settle_plain
from wms.dags.starting import start_waiting, submit_beside
from wms.dags.states import DAG_TERMINAL, DagCause, DagState, NodeKind, NodeState
from wms.dags.submitting import submit, submit_ready
from wms.dags.timers import fire_timers
from wms.jobs import services as jobs
from wms.jobs.states import JobCause

log = structlog.get_logger(__name__)
_BATCH = 1000
#: After so long a cycle begins with no other DAG: it ends before the limit of its task.
_CYCLE_S = 30.0
_TOO_LONG = "held for its time"


class Advance(Enum):
    """How a round with a DAG went."""

    DONE = "advanced"
    MORE = "goes on"
    BUSY = "busy"


def run_cycle(now: datetime) -> dict[str, Any]:
    """Advance the DAGs that have something in their inbox; what is left is for the next cycle.

    A DAG with more to do comes again behind the others.
    """
    # A DAG that goes on in its next round comes behind those that have been told of before.
    # The entries of a DAG that it cannot go on with stay until that is released.
    faulty = Dag.objects.filter(state=DagState.HELD, state_cause=DagCause.ENGINE)
    keys = (
        InboxEntry.objects.filter(topic__in=lifecycle.TOPICS)
        .exclude(key__in=list(faulty.values_list("pk", flat=True)))
        .values("key")
        .annotate(first=Min("pk"))
        .order_by("first")
        .values_list("key", flat=True)
    )
    queue = deque(keys[:_BATCH])
    outcomes: Counter[str] = Counter()
    until_s = time.monotonic() + _CYCLE_S
    while queue and time.monotonic() < until_s:
        dag_id = queue.popleft()
        outcome = _advance_safely(dag_id, now)
        outcomes[outcome] += 1
        if outcome == Advance.MORE.value:
            queue.append(dag_id)
        elif outcome == _TOO_LONG:
            # The task's time is over.
            break
    return {"dags": outcomes.total(), **outcomes}


def _advance_safely(dag_id: int, now: datetime) -> str:
    """Advance one DAG; what goes wrong with it is its own affair and stops no other one."""
    try:
        return advance(dag_id, now=now).value
    except SoftTimeLimitExceeded:
        # Its round took as long as many should: left as it is, it would come first in each cycle.
        log.warning("dag_advance_too_long", dag=dag_id)
        _hold(dag_id, "takes too long with this DAG: a round of it did not end in time")
        return _TOO_LONG
    except OperationalError as error:
        # The database is away, or this was a deadlock: the events stay where they are.
        log.warning("dag_advance_postponed", dag=dag_id, error=str(error))
        return "postponed"
    except Exception as error:
        log.exception("dag_advance_failed", dag=dag_id)
        _hold(dag_id, f"cannot go on with this DAG: {type(error).__name__}: {error}")
        return "held"


def _hold(dag_id: int, trouble: str) -> None:
    reason = f"the engine {trouble}"[:1000].replace("\0", "")
    lifecycle.apply_to_dags("hold", [dag_id], actor=ENGINE, reason=reason, cause=DagCause.ENGINE)


def advance(dag_id: int, *, now: datetime) -> Advance:
    """Act on the new events of one DAG; BUSY when another process is at it."""
    with transaction.atomic():
        dag = (
            Dag.objects.select_for_update(skip_locked=True, of=("self",))
            .select_related("owner", "site", "workspace", "accounting_group")
            .filter(pk=dag_id)
            .first()
        )
        if dag is None:
            return Advance.BUSY
        news = take_news(dag_id)
        if dag.is_followed:
            # Another engine runs it; what happens there is told by its log.
            return Advance.DONE
        round_ = Round(dag, now)
        has_more = _act(round_, news) or news.has_more
        round_.close()
        if has_more:
            lifecycle.tell_engine(dag_id)
    return Advance.MORE if has_more else Advance.DONE


def _act(round_: Round, news: News) -> bool:
    """Move the DAG on by its news; whether more could be done at once."""
    abort = _take_in(round_, news)
    dag = round_.dag
    if dag.state in DAG_TERMINAL:
        return False
    has_more = news.is_woken and fire_timers(round_)
    if abort is not None and not round_.is_aside:
        begin_ending(round_, ending_of_abort(abort))
        return False
    if round_.is_aside:
        has_more = _run_final(round_) or has_more
    elif dag.state == DagState.RUNNING:
        goes_on, abort = _go_on(round_, news)
        has_more = has_more or goes_on
    if abort is not None:
        begin_ending(round_, ending_of_abort(abort))
        return False
    grant(round_)
    _conclude(round_)
    return has_more


def _conclude(round_: Round) -> None:
    """End the DAG when every node has ended: everything that could run has run."""
    if round_.is_aside:
        go_on_ending(round_)
    elif (ending := ending_now(round_)) is not None:
        begin_ending(round_, ending)


def _take_in(round_: Round, news: News) -> Verdict | None:
    """Settle what ended; the verdict that aborts the DAG, if one does."""
    plain, events = read_job_events(round_, news.job_events)
    _take_back_returned(round_, [event.job_id for event in events if event.event == "reschedule"])
    special = settle_plain(round_, plain)
    verdicts = verdicts_of_jobs(round_, events)
    verdicts += verdicts_of_scripts(round_, news.script_runs)
    verdicts += verdicts_of_inner(round_, news.inner_dags)
    verdicts += verdicts_of_requests(round_, news.requests)
    verdicts += begin(round_, special)
    settled = settle(round_, verdicts)
    if settled.left:
        lifecycle.tell_to_begin(round_.dag.pk)
    return settled.abort


def _take_back_returned(round_: Round, job_ids: list[int]) -> None:
    """Jobs that came back to their TaskQueues after the DAG left their site, or was held."""
    dag = round_.dag
    if not job_ids or dag.state in DAG_TERMINAL:
        return
    steering.recall_strays(round_, job_ids)
    if dag.state == DagState.HELD:
        jobs.hold_jobs(
            job_ids,
            actor=round_.actor,
            reason=steering.HELD_WITH_DAG,
            cause=JobCause.DAG_HELD,
            is_announced=False,
        )


def _go_on(round_: Round, news: News) -> tuple[bool, Verdict | None]:
    """Begin and submit what may be; whether more could be, and the verdict that aborts the DAG."""
    if news.is_told:
        go_on_at_site(round_)
        settled = settle(round_, start_waiting(round_))
        if settled.abort is not None:
            return False, settled.abort
    if news.script_runs:
        submit_beside(round_)
    verdicts, has_more = submit_ready(round_)
    settled = settle(round_, verdicts)
    # What could not be submitted may have freed others, which the next round looks at.
    return has_more or bool(verdicts), settled.abort


def _run_final(round_: Round) -> bool:
    """Run the FINAL node of a DAG that is ending."""
    final = round_.beside().get(NodeKind.FINAL, [])
    ready = [node for node in final if node.state == NodeState.READY]
    if not ready or round_.dag.state not in (DagState.RUNNING, DagState.HALTED):
        return False
    settled = settle(round_, begin(round_, [node.pk for node in ready]))
    left = Node.objects.filter(pk__in=[node.pk for node in ready], state=NodeState.READY)
    verdicts, _ = submit(round_, ready_nodes(left))
    settle(round_, verdicts)
    return bool(settled.left)
