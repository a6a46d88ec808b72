"""Cycle of the engine: reads the inboxes of DAGs and moves their nodes on, DAG by DAG in rounds.

A round settles what ended, fires timers, starts and submits nodes, grants scripts, and ends the
DAG. It is one transaction under the lock of the DAG's row: the inbox entries are deleted in the
transaction that acts on them, so each event counts exactly once, whoever is killed when. The work
is proportional to the events, not to the size of the DAG. A DAG whose round fails or takes too long
is held.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from enum import Enum
from typing import Any

import structlog
from celery.exceptions import SoftTimeLimitExceeded
from django.db import OperationalError, transaction
from django.db.models import Min

from wms.core.models import InboxEntry
from wms.dags import lifecycle, operations
from wms.dags.engine.gates import due_gates
from wms.dags.engine.inbox import MOST_ENTRIES, InboxBatch, outcomes_of_batch, take_batch
from wms.dags.engine.round import ENGINE, Round
from wms.dags.engine.settling.ending import (
    begin_ending,
    ending_now,
    ending_of_abort,
    go_on_ending,
)
from wms.dags.engine.settling.settle import may_begin, settle
from wms.dags.engine.shared_rounds import MOST_DAGS, Together, advance_together
from wms.dags.engine.submitting.ready_nodes import submit_ready
from wms.dags.engine.submitting.starting import start_waiting
from wms.dags.engine.timers import fire_timers
from wms.dags.growth.ends import FragmentsTakeLong
from wms.dags.models import Dag
from wms.dags.scripts.run_requests import grant_runs
from wms.dags.states import DAG_TERMINAL, DagCause, DagState
from wms.jobs import operations as jobs
from wms.jobs.states import JobCause

log = structlog.get_logger(__name__)
_BATCH = 1000
#: After so long a cycle begins with no other DAG: it ends before the limit of its task.
_CYCLE_S = 30.0
#: For so long a round reads fragments by which the DAG grows.
_READING_S = 5.0
_TOO_LONG = "held for its time"
_POSTPONED = "postponed"


class Advance(Enum):
    """Result of a round with a DAG."""

    DONE = "advanced"
    MORE = "goes on"
    BUSY = "busy"


#: Outcomes after which a DAG is left to another process, or to a later cycle.
_NOT_NOW = frozenset({Advance.BUSY.value, _POSTPONED, "held"})


def run_cycle(now: datetime) -> dict[str, Any]:
    """Advance the DAGs that have something in their inbox, until nothing is left to this process.

    Any number of these run side by side, each with DAGs that no other one is at: whoever leaves a
    DAG looks once more for what came meanwhile. A DAG with more to do comes again behind the
    others.
    """
    outcomes: Counter[str] = Counter()
    until_s = time.monotonic() + _CYCLE_S
    busy: set[int] = set()
    while time.monotonic() < until_s and (waiting := _with_news(busy)):
        busy = set()
        for dag_id, outcome in _advance_all(waiting, now):
            outcomes[outcome] += 1
            if outcome in _NOT_NOW:
                busy.add(dag_id)
            if outcome == _TOO_LONG or time.monotonic() > until_s:
                # The task's time is over, or soon will be.
                return {"dags": outcomes.total(), **outcomes}
    return {"dags": outcomes.total(), **outcomes}


def _with_news(left_out: Collection[int]) -> list[int]:
    """DAGs with entries in their inboxes: those come first that have been told of first."""
    # The entries of a DAG that it cannot go on with stay until that is released.
    faulty = Dag.objects.filter(state=DagState.HELD, state_cause=DagCause.ENGINE)
    keys = (
        InboxEntry.objects.filter(topic__in=lifecycle.TOPICS)
        .exclude(key__in=left_out)
        .exclude(key__in=faulty.values("pk"))
        .values("key")
        .annotate(first=Min("pk"))
        .order_by("first")
        .values_list("key", flat=True)
    )
    return list(keys[:_BATCH])


def _advance_all(dag_ids: Sequence[int], now: datetime) -> Iterator[tuple[int, str]]:
    for first in range(0, len(dag_ids), MOST_DAGS):
        yield from _advance_group(dag_ids[first : first + MOST_DAGS], now)


def _advance_group(dag_ids: Sequence[int], now: datetime) -> Iterator[tuple[int, str]]:
    """Advance these DAGs: together where they have the usual news, else one by one."""
    together = _together_safely(dag_ids, now)
    for dag_id in dag_ids:
        if dag_id in together.advanced:
            yield dag_id, Advance.DONE.value
        elif dag_id in together.left:
            yield dag_id, _advance_safely(dag_id, now)
        else:
            yield dag_id, Advance.BUSY.value


def _together_safely(dag_ids: Sequence[int], now: datetime) -> Together:
    """A shared round of these DAGs. If it fails, each has a round of its own, which tells why."""
    try:
        return advance_together(dag_ids, now=now)
    except OperationalError as error:
        log.warning("dags_advance_postponed", dags=len(dag_ids), error=str(error))
    except SoftTimeLimitExceeded:
        # The task's time is over: the next one has a round of its own for each.
        lifecycle.notify_engine(*dag_ids)
        raise
    except Exception:
        log.exception("dags_advance_failed", dags=len(dag_ids))
    return Together(left=frozenset(dag_ids))


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
        return _POSTPONED
    except Exception as error:
        log.exception("dag_advance_failed", dag=dag_id)
        _hold(dag_id, f"cannot go on with this DAG: {type(error).__name__}: {error}")
        return "held"


def _hold(dag_id: int, trouble: str) -> None:
    reason = f"the engine {trouble}"[:1000].replace("\0", "")
    lifecycle.apply_to_dags("hold", [dag_id], actor=ENGINE, reason=reason, cause=DagCause.ENGINE)


def advance(dag_id: int, *, now: datetime) -> Advance:
    """Act on the new events of one DAG; BUSY when another process is at it.

    If the fragments that nodes returned take long to read, it acts on as many events as it had the
    time for.
    """
    try:
        return _advance(dag_id, now, MOST_ENTRIES, time.monotonic() + _READING_S)
    except FragmentsTakeLong as error:
        return _advance(dag_id, now, error.read, 0.0)


def _advance(dag_id: int, now: datetime, most: int, reads_until_s: float) -> Advance:
    with transaction.atomic():
        dag = (
            Dag.objects.select_for_update(skip_locked=True, of=("self",))
            .select_related("owner", "site", "workspace", "accounting_group")
            .filter(pk=dag_id)
            .first()
        )
        if dag is None:
            return Advance.BUSY
        batch = take_batch(dag_id, most)
        if dag.is_followed:
            # Another engine runs it; what happens there is told by its log.
            return Advance.DONE
        with Round(dag, now, reads_until_s=reads_until_s) as round_:
            has_more = _act(round_, batch) or batch.has_more
        if has_more:
            lifecycle.notify_engine(dag_id)
    return Advance.MORE if has_more else Advance.DONE


def _act(round_: Round, batch: InboxBatch) -> bool:
    """The steps of a round, in their order; whether more could be done at once."""
    settle(round_, outcomes_of_batch(round_, batch))
    if round_.dag.state in DAG_TERMINAL:
        return False
    _take_back_returned(round_, batch.returned)
    if batch.is_woken:
        settle(round_, due_gates(round_))
    has_more = batch.is_woken and fire_timers(round_)
    if round_.aborted_by is None and batch.is_told and may_begin(round_):
        settle(round_, start_waiting(round_))
    if round_.aborted_by is None and may_begin(round_):
        outcomes, is_cut = submit_ready(round_)
        settle(round_, outcomes)
        # What could not be submitted may have freed others, which the next round looks at.
        has_more = has_more or is_cut or bool(outcomes)
    if round_.aborted_by is not None:
        begin_ending(round_, ending_of_abort(round_.aborted_by))
        return False
    grant_runs(round_)
    _conclude(round_)
    return has_more


def _take_back_returned(round_: Round, job_ids: list[int]) -> None:
    """Jobs that came back to their TaskQueues after the DAG left their site, or was held."""
    if not job_ids:
        return
    operations.recall_strays(round_, job_ids)
    if round_.dag.state == DagState.HELD:
        jobs.hold_jobs(
            job_ids,
            actor=round_.actor,
            reason=operations.HELD_WITH_DAG,
            cause=JobCause.DAG_HELD,
            is_announced=False,
        )


def _conclude(round_: Round) -> None:
    """End the DAG when every node has ended: everything that could run has run."""
    if round_.is_ending:
        go_on_ending(round_)
    elif (ending := ending_now(round_)) is not None:
        begin_ending(round_, ending)
