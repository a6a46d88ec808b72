"""Services on shared limits: most submitted nodes of a user, at a site or of a category, over DAGs.

Read with their use, checked, stored and deleted; DAGs that may have more room then are woken.
"""

from __future__ import annotations

from functools import partial

from django.db import transaction
from django.db.models import (
    Case,
    F,
    Func,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    Value,
    When,
)
from django.db.models.functions import Coalesce
from django.db.models.lookups import IsNull

from wms.accounting.walls import Walls, seen_by
from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.database.saving import check_row, save_audited
from wms.core.models import User
from wms.dags import lifecycle
from wms.dags.models import Dag, SharedLimit
from wms.dags.states import DAG_TERMINAL, DagState
from wms.sites.policy import configurable_sites, require_configuring, sites_of

_ACTION = "configure limits shared by DAGs"
#: What is true of the DAGs that the limit of the outer query counts.
_UNDER = (
    ~Q(state__in=DAG_TERMINAL),
    *(
        Q(**{name: OuterRef(name)}) | Q(IsNull(OuterRef(name), True))
        for name in ("owner_id", "site_id")
    ),
)


def visible_shared_limits(user: User) -> QuerySet[SharedLimit]:
    """The limits that the user may see, with what is `submitted` now.

    Those of all, of people of the user's frontends, and at sites that the user configures.
    """
    limits = SharedLimit.objects.select_related("owner", "site")
    return with_submitted(seen_by(user, limits, partial(_limits_within, user)))


def _limits_within(user: User, walls: Walls) -> Q:
    seen = Q(owner__isnull=True) | walls.of_users("owner")
    return seen | Q(site__in=configurable_sites(user))


def with_submitted(limits: QuerySet[SharedLimit]) -> QuerySet[SharedLimit]:
    """Limits with how many nodes are `submitted` under each now, in the same query."""
    dags = Dag.objects.filter(*_UNDER, submitted_count__gt=0).order_by()
    of_all = dags.annotate(one=Value(1)).values("one").annotate(count=Sum("submitted_count"))
    in_category = Func(
        F("category_counts"), OuterRef("category"), template="(%(expressions)s)::integer",
        arg_joiner=" ->> ", output_field=IntegerField(),
    )  # fmt: skip
    of_category = dags.annotate(one=Value(1)).values("one").annotate(count=Sum(in_category))
    submitted = Case(
        When(category="", then=Subquery(of_all.values("count"))),
        default=Subquery(of_category.values("count")),
    )
    return limits.annotate(submitted=Coalesce(submitted, Value(0)))


def check_shared_limit(limit: SharedLimit) -> None:
    """Raise InvalidInput with the faults of a limit."""
    check_row(limit)


@transaction.atomic
def save_shared_limit(limit: SharedLimit, *, actor: Actor, reason: str = "") -> None:
    """Check and store a limit; nodes that are submitted already stay so.

    Raises NotPermitted or InvalidInput.
    """
    require_configuring(actor, _ACTION, *sites_of(limit))
    limit.category = limit.category.strip()
    check_shared_limit(limit)
    save_audited(limit, target=_target(limit), actor=actor, reason=reason)
    _tell(limit)


@transaction.atomic
def delete_shared_limit(limit: SharedLimit, *, actor: Actor, reason: str = "") -> None:
    """Delete a limit: its nodes are free then. Raises NotPermitted."""
    require_configuring(actor, _ACTION, *sites_of(limit))
    facts = {"max_jobs": [limit.max_jobs, None]}
    target = _target(limit)
    record_action("delete shared limit", target=target, actor=actor, reason=reason, facts=facts)
    _tell(limit)
    limit.delete()


def _target(limit: SharedLimit) -> str:
    return f"limit of {limit}"[:160]


def _tell(limit: SharedLimit) -> None:
    """Let the DAGs look for room again that may have more of it now."""
    dags = Dag.objects.filter(state=DagState.RUNNING, ready_count__gt=0)
    if limit.owner_id is not None:
        dags = dags.filter(owner_id=limit.owner_id)
    if limit.site_id is not None:
        dags = dags.filter(site_id=limit.site_id)
    lifecycle.notify_engine(*dags.order_by("pk").values_list("pk", flat=True))
