"""Rematch by policy, a control loop: DAGs whose expression is true lose their site, or are held.

A DAG is held after `max_rematches` of its policy, and when its expression is too slow. Also the
forecast for one DAG.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import structlog
from celery.exceptions import SoftTimeLimitExceeded
from django.db import transaction
from django.db.models import QuerySet

from matching.negotiation.rematch import Action, Decision, Figures, decide
from wms.core.actors import Actor
from wms.core.statemachine import Increment
from wms.dags import operations
from wms.dags.models import Dag, MatchmakingPolicy, MatchRecord
from wms.dags.negotiation.stay_figures import Stay, stays_of
from wms.dags.services.policies import matchmaking_policy
from wms.dags.states import Binding, DagCause, DagState

log = structlog.get_logger(__name__)
_ACTOR = Actor.system("rematcher")
#: Time limit to evaluate a DAG's own expression; a slower DAG is held.
SLOW_S = 0.5
#: Number of DAGs changed in one transaction, so that their rows are locked for a short time.
_BATCH = 100
#: Number of expressions without a truth value that are listed in the cycle's report.
_UNCLEAR_LISTED = 5
_COLUMNS = ("rematch_expression", "ad_attributes", "match_attributes", "policy_rematch_count")

#: DAG whose expression is true, and the stay that was evaluated.
_Fired = tuple[int, Stay]


@dataclass(frozen=True, slots=True)
class RematchForecast:
    """Rematch decision for a running DAG now, with its expression and figures."""

    expression: str
    figures: Figures
    decision: Decision


def rematch_forecast(
    dag: Dag, policy: MatchmakingPolicy, *, now: datetime
) -> RematchForecast | None:
    """Rematch decision for a DAG now; None without a site or an expression."""
    expression = dag.rematch_expression or policy.rematch_expression
    if dag.state != DagState.RUNNING or not expression or dag.binds_jobs:
        return None
    stay = stays_of(Dag.objects.filter(pk=dag.pk), now=now).get(dag.pk)
    if stay is None:
        return None
    decision = _decide_safely(dag, expression, stay.figures, policy)
    return RematchForecast(expression, stay.figures, decision)


def run_cycle(now: datetime) -> dict[str, Any]:
    """Rematch or hold the running DAGs whose expression, their own or the policy's, is true."""
    policy = matchmaking_policy()
    dags = _dags_with_expression(policy)
    stays = stays_of(dags, now=now)
    fired: dict[tuple[Action, str], list[_Fired]] = defaultdict(list)
    unclear: list[str] = []
    slow: list[int] = []
    for dag in dags.filter(pk__in=stays).only(*_COLUMNS).iterator(chunk_size=1000):
        expression = dag.rematch_expression or policy.rematch_expression
        began_s = time.monotonic()
        decision = _decide_safely(dag, expression, stays[dag.pk].figures, policy)
        if dag.rematch_expression and time.monotonic() - began_s > SLOW_S:
            slow.append(dag.pk)
        elif decision.action is Action.UNCLEAR:
            unclear.append(f"DAG {dag.pk}: {decision.fault}")
        elif decision.action is not Action.STAY:
            fired[decision.action, expression].append((dag.pk, stays[dag.pk]))
    changed = _apply_actions(fired, policy)
    _hold_slow(slow)
    return {
        "dags": len(stays),
        "rematched": changed[Action.REMATCH],
        "held": changed[Action.HOLD] + len(slow),
        "unclear": len(unclear),
        **({"first_unclear": unclear[:_UNCLEAR_LISTED]} if unclear else {}),
    }


@transaction.atomic
def _hold_slow(dag_ids: Sequence[int]) -> None:
    """Hold DAGs whose own expressions are slow, so that they do not delay the others."""
    running = Dag.objects.filter(pk__in=dag_ids, state=DagState.RUNNING).order_by("pk")
    operations.hold(
        [dag.pk for dag in running.select_for_update(of=("self",))],
        actor=_ACTOR,
        reason=f"its periodic_rematch takes longer than {SLOW_S:g} s to evaluate",
        cause=DagCause.POLICY,
    )


def _dags_with_expression(policy: MatchmakingPolicy) -> QuerySet[Dag]:
    # One whose jobs are bound at the claim has no site that it could leave.
    running = Dag.objects.filter(
        state=DagState.RUNNING, parent_node=None, ending_event="", binding=Binding.SITE
    )
    if not policy.rematch_expression:
        running = running.exclude(rematch_expression="")
    return running.order_by("pk")


def _decide_safely(
    dag: Dag, expression: str, figures: Figures, policy: MatchmakingPolicy
) -> Decision:
    """Decision for one DAG; an exception is an unclear decision and does not stop the cycle."""
    try:
        return decide(
            expression,
            figures,
            own=dag.ad_attributes,
            target=dag.match_attributes,
            past_rematches=dag.policy_rematch_count,
            max_rematches=policy.max_rematches,
        )
    except SoftTimeLimitExceeded:
        raise
    except Exception as error:
        log.exception("dag_rematch_undecided", dag=dag.pk)
        return Decision(Action.UNCLEAR, f"{type(error).__name__}: {error}"[:200])


def _apply_actions(
    fired: dict[tuple[Action, str], list[_Fired]], policy: MatchmakingPolicy
) -> Counter[Action]:
    changed: Counter[Action] = Counter()
    for (action, expression), group in fired.items():
        apply = _take_back if action is Action.REMATCH else _hold
        for start in range(0, len(group), _BATCH):
            batch = group[start : start + _BATCH]
            changed[action] += _apply_safely(partial(apply, expression, policy), batch)
    return changed


def _apply_safely(apply: Callable[[Sequence[_Fired]], int], batch: Sequence[_Fired]) -> int:
    """Apply an action to a batch at once or, after an exception, to each DAG by itself."""
    try:
        return apply(batch)
    except SoftTimeLimitExceeded:
        raise
    except Exception:
        if len(batch) == 1:
            log.exception("dag_rematch_failed", dag=batch[0][0])
            return 0
    return sum(_apply_safely(apply, [one]) for one in batch)


@transaction.atomic
def _take_back(expression: str, policy: MatchmakingPolicy, batch: Sequence[_Fired]) -> int:
    applied = operations.take_back(
        _locked(batch),
        end=MatchRecord.End.POLICY,
        actor=_ACTOR,
        reason=f"the policy for rematches is true: {expression}",
        avoid_s=policy.avoid_s,
        facts=_facts(expression, batch),
        policy_rematch_count=Increment(),
    )
    return len(applied.changed)


@transaction.atomic
def _hold(expression: str, policy: MatchmakingPolicy, batch: Sequence[_Fired]) -> int:
    rematches = "1 rematch" if policy.max_rematches == 1 else f"{policy.max_rematches} rematches"
    applied = operations.hold(
        [dag.pk for dag in _locked(batch)],
        actor=_ACTOR,
        reason=f"the policy for rematches is true, but {rematches} by policy is the most that a "
        f"DAG gets: {expression}",
        cause=DagCause.POLICY,
        facts=_facts(expression, batch),
    )
    return len(applied.changed)


def _locked(batch: Sequence[_Fired]) -> list[Dag]:
    """Locked DAGs that are still in the evaluated stay; DAGs locked by others are left out."""
    stays = dict(batch)
    rows = (
        Dag.objects.filter(pk__in=stays, state=DagState.RUNNING)
        .select_related("site")
        .order_by("pk")
        .select_for_update(skip_locked=True, of=("self",))
    )
    return [dag for dag in rows if dag.matched_at == stays[dag.pk].matched_at]


def _facts(expression: str, batch: Sequence[_Fired]) -> dict[int, dict[str, Any]]:
    return {
        dag_id: {"expression": expression, "figures": stay.figures.attributes()}
        for dag_id, stay in batch
    }
