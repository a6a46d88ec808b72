"""Walls between frontends: what of other collaborations a user may see, as conditions on rows.

The rule stands here and nowhere else; the `visible_...` selectors of all apps ask it.

- What is in the name of a group with a frontend is seen by the members of this frontend's groups,
  whoever has submitted it.
- All else is the default frontend's. It is seen by who is in no frontend, by members of a group
  without one, and by its own owner.
- Shifters and above see all, since they steer all; and without a group that has a frontend there
  are no walls.
- By a token that is limited to a frontend its user sees what is this one's, if the user may see it,
  and nothing else: nothing of the default frontend's, were it the user's own.

Membership is read with each request: who leaves a group sees nothing more from the next one on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Exists, F, Model, OuterRef, Q, QuerySet
from django.db.models.functions import JSONObject

from wms.accounting.models import AccountingGroup
from wms.core.actors import Actor
from wms.core.models import Role, User
from wms.core.policy import has_role

_M = TypeVar("_M", bound=Model)
#: Attribute of a user who was read together with the groups that make the walls.
_READ = "groups_of_frontends"
_MEMBERS = AccountingGroup.members.through


@dataclass(frozen=True, slots=True)
class Walls:
    """Walls as one user stands before them; `is_open` where the user sees all.

    `own_groups` and `own_names` are groups of the user's frontends, `walled_groups` and
    `walled_names` those of any frontend; `frontends` are the user's.
    """

    user_id: int | None = None
    is_open: bool = True
    sees_default: bool = True
    frontends: frozenset[int] = frozenset()
    own_groups: tuple[int, ...] = ()
    own_names: tuple[str, ...] = ()
    walled_groups: tuple[int, ...] = ()
    walled_names: tuple[str, ...] = ()
    #: What is one's own is seen for that, where it is the default frontend's.
    sees_own: bool = True

    def lets_in(self, frontend_id: int | None) -> bool:
        """Whether the user may see what is of this frontend; None: the default one."""
        if self.is_open:
            return True
        return self.sees_default if frontend_id is None else frontend_id in self.frontends

    def lets_in_group(self, group_id: int | None, owner_id: int | None) -> bool:
        """Whether the user may see what is an owner's in the name of this group; None: of none."""
        if self.is_open or group_id in self.own_groups:
            return True
        return group_id not in self.walled_groups and self._lets_in_default(owner_id)

    def lets_in_name(self, group: str, owner_id: int) -> bool:
        """Whether the user may see what is an owner's in the name of this group; empty: of none."""
        if self.is_open or group in self.own_names:
            return True
        return group not in self.walled_names and self._lets_in_default(owner_id)

    def by_name(self, column: str = "owner_group", owner: str = "owner") -> Q:
        """Condition for rows with the name of their group in a column; empty: of none."""
        return self._either(
            Q(**{f"{column}__in": self.own_names}),
            ~Q(**{f"{column}__in": self.walled_names}),
            owner,
        )

    def by_group(self, column: str = "accounting_group", owner: str = "owner") -> Q:
        """Condition for rows with a foreign key to their group; null: of none."""
        none = Q(**{f"{column}__isnull": True}) | ~Q(**{f"{column}__in": self.walled_groups})
        return self._either(Q(**{f"{column}__in": self.own_groups}), none, owner)

    def by_frontend(self, column: str = "frontend") -> Q:
        """Condition for rows with a foreign key to a frontend; null: the default one."""
        own = Q(**{f"{column}__in": self.frontends})
        return own | Q(**{f"{column}__isnull": True}) if self.sees_default else own

    def of_groups(self) -> Q:
        """Condition for groups: those of the user's frontends, and the default's."""
        own = Q(frontend__in=self.frontends)
        return own | Q(frontend__isnull=True) if self.sees_default else own

    def of_users(self, column: str = "") -> Q:
        """Condition for people of one's frontends, and for who sees all; `column` leads to them."""
        at = f"{column}__" if column else ""
        beside = _MEMBERS.objects.filter(accountinggroup__in=self.own_groups).values("user")
        walled = _MEMBERS.objects.filter(accountinggroup__in=self.walled_groups).values("user")
        shift = [role for role in Role.values if _includes_shifts(role)]
        people = Q(**{f"{at}pk": self.user_id}) | Q(**{f"{at}pk__in": beside})
        people |= Q(**{f"{at}role__in": shift}) | Q(**{f"{at}is_superuser": True})
        return people | ~Q(**{f"{at}pk__in": walled}) if self.sees_default else people

    def of_oneself(self, condition: Q) -> Q:
        """Condition for what is one's own in another way than by group; none if it is not seen."""
        return condition if self.sees_own else Q(pk__in=())

    def _lets_in_default(self, owner_id: int | None) -> bool:
        return self.sees_default or (self.sees_own and owner_id == self.user_id)

    def _either(self, own: Q, default: Q, owner: str) -> Q:
        if self.sees_default:
            return own | default
        sees_own = bool(owner) and self.sees_own
        return own | (default & Q(**{owner: self.user_id})) if sees_own else own


#: Walls before which nobody stands.
OPEN = Walls()


def _includes_shifts(role: str) -> bool:
    return has_role(User(role=role), Role.SHIFTER)


def walls_of(user: User) -> Walls:
    """Walls as they stand before a user. No query for who sees all or was read `with_groups`."""
    if user.limited_to is not None:
        return _limited(user, _told_to(user), user.limited_to)
    return _walls_of_role(user)


def _walls_of_role(user: User) -> Walls:
    return OPEN if has_role(user, Role.SHIFTER) else _walls(user, _told_to(user))


def _told_to(user: User) -> list[dict[str, Any]]:
    rows = getattr(user, _READ, None)
    return _rows_of(user) if rows is None else rows


def _limited(user: User, told: Iterable[Mapping[str, Any]], frontend_id: int) -> Walls:
    """Walls around one frontend; around nothing where the user does not see this one."""
    is_seen = _walls_of_role(user).lets_in(frontend_id)
    walled = [row for row in told if row["frontend"] is not None]
    own = [row for row in walled if is_seen and row["frontend"] == frontend_id]
    return Walls(
        user_id=user.pk,
        is_open=False,
        sees_default=False,
        sees_own=False,
        frontends=frozenset({frontend_id}) if is_seen else frozenset(),
        own_groups=tuple(row["id"] for row in own),
        own_names=tuple(row["name"] for row in own),
        walled_groups=tuple(row["id"] for row in walled),
        walled_names=tuple(row["name"] for row in walled),
    )


def has_frontends(user: User) -> bool:
    """Whether some group has a frontend, as far as the user was read `with_groups`. No query."""
    return any(row["frontend"] is not None for row in getattr(user, _READ, None) or ())


def with_groups(users: QuerySet[User]) -> QuerySet[User]:
    """Users with what `walls_of` needs, in the same query."""
    return users.annotate(**told_of("pk"))


def told_of(user: str) -> dict[str, ArraySubquery]:
    """Expression, by its attribute, for what `walls_of` needs of the user in a column."""
    return {_READ: ArraySubquery(_told(OuterRef(OuterRef(user))))}


def _rows_of(user: User) -> list[dict[str, Any]]:
    return list(_told(user.pk).values_list("told", flat=True))


def _told(member: Any) -> QuerySet[Any, Any]:
    """Groups of frontends, and those without one that the user is a member of."""
    of_user = _MEMBERS.objects.filter(accountinggroup=OuterRef("pk"), user=member)
    groups = AccountingGroup.objects.order_by().annotate(is_member=Exists(of_user))
    told = JSONObject(id="pk", name="name", frontend="frontend_id", is_member=F("is_member"))
    chosen = groups.filter(Q(frontend__isnull=False) | Q(is_member=True))
    return chosen.annotate(told=told).values("told")


def _walls(user: User, told: Iterable[Mapping[str, Any]]) -> Walls:
    rows = sorted(told, key=lambda row: row["name"])
    walled = [row for row in rows if row["frontend"] is not None]
    if not walled:
        return OPEN
    frontends = frozenset(row["frontend"] for row in walled if row["is_member"])
    own = [row for row in walled if row["frontend"] in frontends]
    return Walls(
        user_id=user.pk,
        is_open=False,
        sees_default=not frontends or any(row["frontend"] is None for row in rows),
        frontends=frontends,
        own_groups=tuple(row["id"] for row in own),
        own_names=tuple(row["name"] for row in own),
        walled_groups=tuple(row["id"] for row in walled),
        walled_names=tuple(row["name"] for row in walled),
    )


def seen_by(user: User, rows: QuerySet[_M], condition: Callable[[Walls], Q]) -> QuerySet[_M]:
    """The rows that the user may see, by the condition that walls set; none if switched off."""
    if not user.is_active:
        return rows.none()
    walls = walls_of(user)
    return rows if walls.is_open else rows.filter(condition(walls))


def seen_or_all(user: User, visible: Callable[[User], QuerySet[_M]]) -> QuerySet[_M] | None:
    """Objects of a kind that the user may see; None where no walls are in the way."""
    return None if walls_of(user).is_open else visible(user)


def within_reach(actor: Actor, rows: QuerySet[_M], condition: Callable[[Walls], Q]) -> QuerySet[_M]:
    """The rows that an actor may act upon, as far as walls decide it; loops reach all.

    Services look their objects up in it: what is not visible is not there.
    """
    walls = OPEN if actor.user is None else walls_of(actor.user)
    return rows if walls.is_open else rows.filter(condition(walls))
