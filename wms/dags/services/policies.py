"""Services on the matchmaking policy, which operators set for all DAGs: read, check, store.

Also finds the fault of a rematch expression.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import QuerySet, Subquery
from django.db.models.functions import JSONObject

from matching.ads.ad_cost import check_cost
from matching.ads.classads import AdError, parse_expression
from matching.ads.syntax_faults import find_syntax_fault
from matching.task_queues.impossible_requirements import constant_fault
from wms.core.actors import Actor
from wms.core.database.saving import check_row, save_audited
from wms.core.errors import Finding, InvalidInput
from wms.core.models import Role
from wms.core.policy import require_role
from wms.dags.models import Dag, MatchmakingPolicy


def matchmaking_policy() -> MatchmakingPolicy:
    """Policy in force; unsaved defaults until an operator sets one."""
    return MatchmakingPolicy.objects.filter(pk=1).first() or MatchmakingPolicy(pk=1)


def with_policy(dags: QuerySet[Dag]) -> QuerySet[Dag]:
    """DAGs annotated with the policy in force, for `policy_with`, in the same query."""
    names = {field.attname: field.attname for field in MatchmakingPolicy._meta.concrete_fields}
    policy = MatchmakingPolicy.objects.filter(pk=1).values(whole=JSONObject(**names))
    return dags.annotate(policy=Subquery(policy))


def policy_with(dag: Any) -> MatchmakingPolicy:
    """Policy that was in force when a DAG was read by `with_policy`."""
    return MatchmakingPolicy(**(dag.policy or {"pk": 1}))


def check_policy(policy: MatchmakingPolicy) -> None:
    """Raise InvalidInput with the faults of a policy."""
    check_row(policy)
    if policy.rematch_expression.strip():
        fault = rematch_fault(policy.rematch_expression)
        if fault:
            place = find_syntax_fault(policy.rematch_expression)
            line, column = (place.line, place.column) if place else (None, None)
            raise InvalidInput(
                [Finding(fault, field="rematch_expression", line=line, column=column)]
            )


def rematch_fault(text: str) -> str:
    """Fault of a rematch expression, empty without one."""
    try:
        parse_expression(text)
        check_cost({"rematch_expression": text})
    except AdError as error:
        return error.message.removeprefix("rematch_expression: ")
    return constant_fault(text, {})


@transaction.atomic
def save_policy(policy: MatchmakingPolicy, *, actor: Actor, reason: str = "") -> None:
    """Check and store the policy. Raises NotPermitted or InvalidInput."""
    require_role(actor, Role.OPERATOR, "configure matchmaking")
    # Browsers send text fields with the line ends of Windows: that alone is no change.
    policy.rematch_expression = "\n".join(policy.rematch_expression.split("\r\n")).strip()
    check_policy(policy)
    save_audited(policy, target="matchmaking policy", actor=actor, reason=reason)
