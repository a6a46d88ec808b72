"""Preview of a bulk operation: how many objects would change or be skipped, why, and examples.

Also how many belong to other users, and whether their number must be typed to confirm it.
"""

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

#: Number of objects above which the user has to type it to confirm.
TYPED_ABOVE = 1000
_SAMPLES = 10
_GROUPS = 12


@dataclass(frozen=True, slots=True)
class Sample:
    """Example object of a preview, with the obstacle for which it would be skipped, or ''."""

    pk: int
    label: str
    state: str
    group: str
    obstacle: str


@dataclass(frozen=True, slots=True)
class Preview:
    """Counts of a bulk operation before it is confirmed.

    `left_out` objects no longer match the filter. Of the `total` others, `fitting` would change,
    and `skipped` counts the rest by reason. `foreign` objects belong to other users.
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


def pending_objects(operation: BulkOperation, user: User) -> QuerySet[Any]:
    """Objects of an operation that are still pending, and that the user may see."""
    pending = BulkItem.objects.filter(operation=operation, outcome=Outcome.PENDING)
    return find_kind(operation.list_name).visible(user).filter(pk__in=pending.values("object_id"))


def preview_of(operation: BulkOperation, user: User) -> Preview:
    """Preview of an operation for this user now; the number of queries is constant."""
    kind = find_kind(operation.list_name)
    action = kind.find_action(operation.action)
    objects = pending_objects(operation, user)
    rows = _grouped(kind, action, objects)
    permitted = set(kind.permitted(user, {row["object_key"] for row in rows}))
    states: Counter[str] = Counter()
    groups: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    for row in rows:
        states[row["state"]] += row["n"]
        groups[str(row["object_group"])] += row["n"]
        why = kind.refusal if row["object_key"] not in permitted else row["obstacle"]
        if why:
            skipped[why] += row["n"]
    total = states.total()
    foreign = sum(row["n"] for row in rows if kind.owner and row["object_key"] != user.pk)
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
    """Whether the user has to type the number of objects to confirm."""
    return total > TYPED_ABOVE or (action.is_destructive and foreign > 0)


def foreign_objects(operation: BulkOperation, user: User) -> int:
    """Number of pending objects that belong to other users."""
    kind = find_kind(operation.list_name)
    if not kind.owner:
        return 0
    return pending_objects(operation, user).exclude(**{kind.owner: user.pk}).count()


def _grouped(kind: Kind, action: Action, objects: QuerySet[Any]) -> list[dict[str, Any]]:
    """Numbers of objects by state, key, group and obstacle."""
    columns = {
        "object_key": F(kind.key),
        "object_group": F(kind.group),
        "obstacle": action.obstacle(),
    }
    names = ("state", *columns)
    return list(objects.order_by().annotate(**columns).values(*names).annotate(n=Count("pk")))


def _samples(
    kind: Kind, action: Action, objects: QuerySet[Any], permitted: Collection[Any]
) -> list[Sample]:
    columns = {
        "object_label": F(kind.label), "object_group": F(kind.group), "object_key": F(kind.key),
        "obstacle": action.obstacle(),
    }  # fmt: skip
    first = objects.order_by("pk").annotate(**columns).values("pk", "state", *columns)[:_SAMPLES]
    return [
        Sample(
            row["pk"],
            str(row["object_label"]),
            row["state"],
            str(row["object_group"]),
            row["obstacle"] if row["object_key"] in permitted else kind.refusal,
        )
        for row in first
    ]
