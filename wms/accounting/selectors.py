"""Selectors of frontends, accounting groups, submitters by priority, quotas, concurrency limits.

For control loops, for submissions (which quotas one must keep), and for what a user may see.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.db.models import F, FloatField, Prefetch, Q, QuerySet, Sum, Value, Window
from django.db.models.functions import Coalesce, RowNumber

from matching.negotiation.fairshare import GroupShare
from wms.accounting.models import AccountingGroup, ConcurrencyLimit, Frontend, Quota, Submitter
from wms.accounting.walls import Walls, seen_by, walls_of
from wms.core.errors import NotFound
from wms.core.models import User


@dataclass(frozen=True, slots=True)
class SubmitterShare:
    """A submitter as the negotiator sees it; `group` is empty for a submitter without one.

    `name` is for people: `physics.alice`, or `alice`. Since user names may contain points, ids tell
    submitters apart.
    """

    user_id: int
    group_id: int | None
    name: str
    user: str
    group: str
    real_priority: float
    factor: float
    effective_priority: float
    used_slots: float
    used_slot_s: float
    charged_at: datetime


def submitters() -> list[SubmitterShare]:
    """All submitters in the order of their effective priority, best first."""
    return [_share(row) for row in ranked_submitters()]


def ranked_submitters() -> QuerySet[Submitter]:
    """The rows of all submitters with their `effective_priority` and `place`, best first."""
    order = [(F("real_priority") * F("factor")).asc(), F("pk").asc()]
    return (
        Submitter.objects.select_related("user", "group")
        .annotate(
            effective_priority=F("real_priority") * F("factor"),
            place=Window(RowNumber(), order_by=order),
        )
        .order_by("place")
    )


def visible_submitters(user: User) -> QuerySet[Submitter]:
    """The submitters of the user's frontends, best first; their places are those among them."""
    return seen_by(user, ranked_submitters(), partial(Walls.by_group, column="group", owner="user"))


def find_submitter(user: User, submitter_id: int) -> Submitter:
    """One visible submitter with its place. Raises NotFound."""
    rows = visible_submitters(user)
    found = rows.filter(pk=submitter_id).first()
    if found is None:
        raise NotFound(f"There is no submitter {submitter_id}, or you may not see it.")
    # Alone it would be the first.
    own = found.real_priority * found.factor
    before = Q(effective_priority__lt=own) | Q(effective_priority=own, pk__lt=found.pk)
    found.place = rows.filter(before).count() + 1  # type: ignore[attr-defined]  # annotated
    return found


def _share(row: Submitter) -> SubmitterShare:
    group = row.group.name if row.group else ""
    return SubmitterShare(
        user_id=row.user_id,
        group_id=row.group_id,
        name=str(row),
        user=row.user.get_username(),
        group=group,
        real_priority=row.real_priority,
        factor=row.factor,
        effective_priority=row.real_priority * row.factor,
        used_slots=row.used_slots,
        used_slot_s=row.used_slot_s,
        charged_at=row.charged_at,
    )


def groups() -> list[GroupShare]:
    """All groups with their quotas, by name."""
    return [
        GroupShare(
            name=row.name,
            quota=row.quota,
            is_fraction=row.quota_kind == AccountingGroup.QuotaKind.DYNAMIC,
            accepts_surplus=row.accepts_surplus,
        )
        for row in AccountingGroup.objects.all()
    ]


def groups_in_draws() -> list[tuple[str, float, bool]]:
    """Name, share and job sharing of all groups, for the priorities of TaskQueues."""
    return list(AccountingGroup.objects.values_list("name", "share", "has_job_sharing"))


def visible_groups(user: User) -> QuerySet[AccountingGroup]:
    """The groups of the user's frontends, by name, with members and `used_slots`."""
    if not user.is_active:
        return AccountingGroup.objects.none()
    members = User.objects.only("username").order_by("username")
    used = Coalesce(Sum("submitters__used_slots"), Value(0.0), output_field=FloatField())
    groups = seen_by(user, AccountingGroup.objects.select_related("frontend"), Walls.of_groups)
    return groups.annotate(used_slots=used).prefetch_related(Prefetch("members", members))


def quotas_for(user: User, group: AccountingGroup | None) -> list[Quota]:
    """The quotas that a submission of the user in the name of the group, or of none, must keep.

    That of the user, or of every user; then those of the group and of the groups above it.
    """
    names = [] if group is None else group.name.split(".")
    above = [".".join(names[: depth + 1]) for depth in range(len(names))]
    rows = Quota.objects.select_related("user", "group").filter(
        Q(user=user) | Q(user=None, group=None) | Q(group__name__in=above)
    )
    of_groups = sorted((row for row in rows if row.group), key=lambda row: str(row.group))
    of_user = next((row for row in rows if row.user), None)
    of_all = next((row for row in rows if not (row.user or row.group)), None)
    first = of_user or of_all
    return [*([first] if first else []), *of_groups]


def visible_quotas(user: User) -> QuerySet[Quota]:
    """The quotas that the user may see: of groups and people of the user's frontends.

    That of every user is seen by all.
    """
    return seen_by(user, Quota.objects.select_related("user", "group"), _quotas_within)


def _quotas_within(walls: Walls) -> Q:
    of_groups = Q(group__in=AccountingGroup.objects.filter(walls.of_groups()).values("pk"))
    of_people = Q(user__isnull=False) & walls.of_users("user")
    return of_groups | of_people | Q(user=None, group=None)


def limits() -> dict[str, float]:
    """The maximum of each concurrency limit by name."""
    return dict(ConcurrencyLimit.objects.values_list("name", "maximum"))


def visible_limits(user: User) -> QuerySet[ConcurrencyLimit]:
    """The concurrency limits that the user may see: all of them, since all share them, by name."""
    return ConcurrencyLimit.objects.all() if user.is_active else ConcurrencyLimit.objects.none()


def visible_frontends(user: User) -> QuerySet[Frontend]:
    """Frontends that the user may see, by name, with their groups: the user's, or all of them."""
    groups = Prefetch("groups", AccountingGroup.objects.order_by("name"))
    rows = Frontend.objects.prefetch_related(groups).order_by("name")
    return seen_by(user, rows, lambda walls: walls.by_frontend("pk"))


def find_frontend(user: User, name: str) -> Frontend:
    """The frontend of this name, if the user may see it. Raises NotFound."""
    frontend = visible_frontends(user).filter(name=name).first()
    if frontend is None:
        raise NotFound(f"There is no frontend {name}, or you may not see it.")
    return frontend


def names_of_own_groups(user: User) -> list[str]:
    """Names of the groups of which the user is a member, and in whose name the user may submit."""
    groups = AccountingGroup.objects.filter(members=user).order_by("name")
    if user.limited_to is not None:
        groups = groups.filter(walls_of(user).of_groups())
    return list(groups.values_list("name", flat=True))
