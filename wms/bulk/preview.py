"""What an operation would do, told before it is confirmed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, QuerySet

from wms.actions.actions import Action
from wms.actions.kinds import Kind
from wms.actions.registry import find_kind
from wms.bulk.models import BulkItem, BulkOperation
from wms.bulk.states import Outcome
from wms.core.models import User

#: More objects than these are acted on only by who has typed their number.
TYPED_ABOVE = 1000
_SAMPLES = 10
_GROUPS = 12


@dataclass(frozen=True, slots=True)
class Sample:
    """One of the objects, and why it would be skipped, if it would."""

    pk: int
    label: str
    state: str
    group: str
    obstacle: str


@dataclass(frozen=True, slots=True)
class Preview:
    """An operation before it is confirmed.

    `left_out` dropped out since the objects were frozen. `total` are those that are acted on, of
    which `fitting` would change and `skipped` would not, each for a reason. `foreign` belong to
    others.
    """

    total: int
    left_out: int
    fitting: int
    foreign: int
    states: Mapping[str, int]
    groups: Sequence[tuple[str, int]]
    more_groups: int
    skipped: Sequence[tuple[str, int]]
    samples: Sequence[Sample]
    effects: Sequence[str]
    must_type: bool


def pending_objects(operation: BulkOperation) -> QuerySet[Any]:
    """The objects that the operation would still act on."""
    pending = BulkItem.objects.filter(operation=operation, outcome=Outcome.PENDING)
    objects = find_kind(operation.list_name).model._default_manager
    return objects.filter(pk__in=pending.values("object_id"))


def preview_of(operation: BulkOperation, user: User) -> Preview:
    """What would happen if the user confirmed it now. A handful of queries, whatever the number."""
    kind = find_kind(operation.list_name)
    action = kind.find_action(operation.action)
    objects = pending_objects(operation)
    rows = _grouped(kind, action, objects)
    permitted = set(kind.permitted(user, {row["told_key"] for row in rows}))
    states: Counter[str] = Counter()
    groups: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    for row in rows:
        states[row["state"]] += row["n"]
        groups[str(row["told_group"])] += row["n"]
        why = kind.refusal if row["told_key"] not in permitted else row["obstacle"]
        if why:
            skipped[why] += row["n"]
    total = states.total()
    foreign = sum(row["n"] for row in rows if kind.owner and row["told_key"] != user.pk)
    ordered = groups.most_common()
    return Preview(
        total=total,
        left_out=operation.skipped_count,
        fitting=total - skipped.total(),
        foreign=foreign,
        states=dict(states.most_common()),
        groups=ordered[:_GROUPS],
        more_groups=len(ordered[_GROUPS:]),
        skipped=skipped.most_common(),
        samples=_samples(kind, action, objects, permitted),
        effects=kind.effects(objects),
        must_type=must_type(action, total=total, foreign=foreign),
    )


def must_type(action: Action, *, total: int, foreign: int) -> bool:
    """True when who confirms it has to type the number of objects."""
    return total > TYPED_ABOVE or (action.is_destructive and foreign > 0)


def foreign_objects(operation: BulkOperation, user: User) -> int:
    """How many of the objects belong to others."""
    kind = find_kind(operation.list_name)
    if not kind.owner:
        return 0
    return pending_objects(operation).exclude(**{kind.owner: user.pk}).count()


def _grouped(kind: Kind, action: Action, objects: QuerySet[Any]) -> list[dict[str, Any]]:
    """How many objects there are of each state, key, group and obstacle."""
    told = {"told_key": F(kind.key), "told_group": F(kind.group), "obstacle": action.obstacle()}
    names = ("state", *told)
    return list(objects.order_by().annotate(**told).values(*names).annotate(n=Count("pk")))


def _samples(
    kind: Kind, action: Action, objects: QuerySet[Any], permitted: Collection[Any]
) -> list[Sample]:
    told = {
        "told_label": F(kind.label), "told_group": F(kind.group), "told_key": F(kind.key),
        "obstacle": action.obstacle(),
    }  # fmt: skip
    first = objects.order_by("pk").annotate(**told).values("pk", "state", *told)[:_SAMPLES]
    return [
        Sample(
            row["pk"],
            str(row["told_label"]),
            row["state"],
            str(row["told_group"]),
            row["obstacle"] if row["told_key"] in permitted else kind.refusal,
        )
        for row in first
    ]
