"""Selectors of gates that wait: of a DAG, of a user; of their first events; and whom each asks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import BooleanField, Exists, Func, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Concat

from wms.accounting.models import AccountingGroup
from wms.core.models import Role, User
from wms.core.policy import has_role
from wms.dags.engine.gates import gate_of, time_of
from wms.dags.models import Dag, Node, NodeEvent
from wms.dags.policy import may_decide
from wms.dags.reading.selectors import visible_dags
from wms.dags.states import DAG_TERMINAL, DagState, NodeKind, NodeState

#: So many people are told of one gate.
MAX_ASKED = 200
#: Limit of waiting gates that are listed.
_LISTED = 20
_COLUMNS = ("name", "state_reason", "features", "dag", "work__waits_since")
_OPEN = sorted(set(DagState.values) - DAG_TERMINAL)


@dataclass(frozen=True, slots=True)
class WaitingGate:
    """Gate that waits, with its DAG: since when, until when, and whether the user may decide.

    `due_at` is when it opens (`opens_then`) or closes by itself; None for never.
    """

    node: Node
    waits_since: datetime
    due_at: datetime | None
    opens_then: bool
    may_decide: bool


def waiting_gates(dag: Dag, user: User) -> list[WaitingGate]:
    """Gates of a DAG that wait, up to 20; no query for a DAG without ready nodes."""
    if not dag.ready_count:
        return []
    gates = _waiting().filter(dag=dag).order_by("ordinal")[:_LISTED]
    allowed: dict[frozenset[str], bool] = {}
    found = []
    for gate in gates:
        spec, who = gate_of(gate), frozenset(gate_of(gate).who)
        if spec.opens_at is None and not dag.is_ending and who not in allowed:
            allowed[who] = may_decide(user, dag, spec.who)
        found.append(_as_told(gate, may_decide=spec.opens_at is None and allowed.get(who, False)))
    return found


def gates_to_decide(user: User, *, only_asked: bool, limit: int) -> list[WaitingGate]:
    """Gates of visible DAGs that wait for a yes which the user may give, the longest first.

    With `only_asked` those of which the user is told: what steering everybody's DAGs allows besides
    is left out. One query.
    """
    if not has_role(user, Role.USER):
        return []
    gates = (
        _to_decide(user, only_asked=only_asked)
        .select_related("dag__owner")
        .only(*_COLUMNS, "dag__name", "dag__owner__username")
        .order_by("work__waits_since", "pk")
    )
    return [_as_told(gate, may_decide=True) for gate in gates[:limit]]


def gates_by_event(user: User, announced: Collection[tuple[int, int]]) -> dict[int, WaitingGate]:
    """Gates that wait still for a yes which the user may give, by the latest of their events.

    These are given by DAG and event. Two queries, or none.
    """
    if not announced or not has_role(user, Role.USER):
        return {}
    events = NodeEvent.objects.filter(_of(announced)).order_by("pk")
    latest = {node: event for event, node in events.values_list("pk", "node_id")}
    gates = _to_decide(user, only_asked=False).filter(pk__in=list(latest))
    return {latest[gate.pk]: _as_told(gate, may_decide=True) for gate in gates}


def _to_decide(user: User, *, only_asked: bool) -> QuerySet[Node]:
    dags = visible_dags(user).filter(ready_count__gt=0, state__in=_OPEN, ending_event="")
    return _waiting().filter(
        _decided_by(user, only_asked=only_asked),
        dag__in=dags.order_by().values("pk"),
        features__gate__opens_at__isnull=True,
    )


def _waiting() -> QuerySet[Node]:
    return (
        Node.objects.filter(
            kind=NodeKind.GATE, state=NodeState.READY, work__waits_since__isnull=False
        )
        .select_related("work")
        .only(*_COLUMNS)
    )


def _as_told(gate: Node, *, may_decide: bool) -> WaitingGate:
    spec, since = gate_of(gate), gate.work.waits_since
    assert since is not None
    opens = spec.opens_then or spec.opens_at is not None
    return WaitingGate(gate, since, time_of(spec, since), opens, may_decide)


def _decided_by(user: User, *, only_asked: bool) -> Q:
    """Condition on gates, as `may_decide` has it for one of them."""
    named = Q(features__gate__who__isnull=False)
    unnamed = Q(features__gate__who__isnull=True)
    if only_asked or not has_role(user, Role.SHIFTER):
        unnamed &= Q(dag__owner=user)
    if has_role(user, Role.ADMIN) and not only_asked:
        return named | unnamed
    roles = [role for role in Role.values[1:] if has_role(user, Role(role))]
    names = [
        f"user:{user.get_username()}",
        *(f"role:{role}" for role in roles if role == user.role or not only_asked),
    ]
    group = Func(
        OuterRef("features__gate__who"),
        Concat(Value("group:"), "name"),
        function="jsonb_exists",
        output_field=BooleanField(),
    )
    groups = AccountingGroup.objects.filter(members=user).alias(is_named=group)
    return (
        unnamed
        | Q(features__gate__who__has_any_keys=names)
        | Q(Exists(groups.filter(is_named=True)))
    )


def waits_of(announced: Iterable[tuple[int, int]]) -> list[NodeEvent]:
    """Events, given by DAG and event, of gates that wait still; with their nodes and DAGs."""
    chosen = _of(announced)
    if not chosen:
        return []
    events = NodeEvent.objects.filter(chosen, node__state=NodeState.READY)
    return list(events.select_related("dag__owner", "node__work").order_by("pk"))


def _of(announced: Iterable[tuple[int, int]]) -> Q:
    """Condition on events given by DAG and event; empty for none."""
    by_dag: dict[int, list[int]] = defaultdict(list)
    for dag_id, event_id in announced:
        by_dag[dag_id].append(event_id)
    # An event is found within its DAG: there is no index of the ids alone.
    chosen = Q()
    for dag_id, event_ids in by_dag.items():
        chosen |= Q(dag=dag_id, pk__in=event_ids)
    return chosen


def asked_by(gate: Node, owner_id: int) -> frozenset[int]:
    """People whom a gate of this owner's DAG asks to open it: those that it names, else the owner.

    Of a role those who have just that one are asked, the others may open it as well.
    """
    who = gate_of(gate).who
    if not who:
        return frozenset({owner_id})
    named: dict[str, list[str]] = defaultdict(list)
    for each in who:
        kind, name = each.split(":", 1)
        named[kind].append(name)
    people = User.objects.filter(
        Q(username__in=named["user"])
        | Q(role__in=named["role"])
        | Q(pk__in=User.objects.filter(accounting_groups__name__in=named["group"]).values("pk")),
        is_active=True,
    )
    return frozenset(people.order_by("pk").values_list("pk", flat=True)[:MAX_ASKED])
