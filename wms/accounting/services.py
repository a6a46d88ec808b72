"""Services on accounting groups, submitters' factors, quotas and concurrency limits, with audit.

Also the group and submitter of a submission, and the charging of submitters for slots they used,
from which their real priorities follow.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime

from django.db import connection, transaction

from matching.negotiation.fairshare import BEST_PRIORITY, decayed_priority
from wms.accounting.models import AccountingGroup, ConcurrencyLimit, Quota, Submitter
from wms.accounting.sql import CHARGE_SUBMITTERS
from wms.accounting.walls import walls_of
from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.database.saving import (
    check_row,
    check_same_name,
    kinds_that_forbid_deletion,
    save_audited,
)
from wms.core.errors import Conflict, InvalidInput
from wms.core.models import Role, User
from wms.core.policy import require_role


def group_for(user: User, name: str) -> AccountingGroup:
    """The group of this name, in any case, in whose name the user may submit.

    Raises InvalidInput when there is none, or the user is not its member: which of both is told
    where the user may see the group.
    """
    group = None
    # Others are no names, and some of their characters no text for the database.
    if name.isascii() and name.isprintable():
        group = AccountingGroup.objects.filter(name__iexact=name.strip()).first()
    is_member = group is not None and group.members.filter(pk=user.pk).exists()
    is_seen = is_member and user.limited_to is None
    if group is None or not (is_seen or walls_of(user).lets_in_group(group.pk, None)):
        raise InvalidInput.of(f"there is no group {name.strip()[:80]}", field="accounting_group")
    if not is_member:
        message = f"{user.get_username()} is not a member of the group {group.name}"
        raise InvalidInput.of(message, field="accounting_group")
    return group


def require_group_of_token(user: User, *, has_group: bool) -> None:
    """Raise InvalidInput unless a submission has a group, where the token is limited to a frontend.

    Without one it would be the default frontend's. Which group it may be, `group_for` says.
    """
    if user.limited_to is not None and not has_group:
        message = "name a group of the frontend that your token is limited to"
        raise InvalidInput.of(message, field="accounting_group")


def ensure_submitter(user: User, group: AccountingGroup | None) -> None:
    """Make a submitter with the best real priority, if there is none.

    Called at submission: so a factor can be set before anything is used.
    """
    Submitter.objects.bulk_create([Submitter(user=user, group=group)], ignore_conflicts=True)


@transaction.atomic
def charge(
    used_slots: Mapping[tuple[int, int | None], float], *, half_life_s: float, now: datetime
) -> None:
    """Charge submitters for the slots they have used, and bring real priorities up to `now`.

    A submitter is charged for what it was noted with the last time, for the time since then; who
    is not named uses nothing from now on. Who is named first is created. A `now` that is not later
    than the last charge only notes what is used. Three statements for any number of submitters.
    """
    rows = list(Submitter.objects.select_for_update().order_by("pk"))
    _update([row for row in rows if not _is_at_rest(row, used_slots)], used_slots, half_life_s, now)
    known = {(row.user_id, row.group_id) for row in rows}
    Submitter.objects.bulk_create(
        [
            Submitter(user_id=user, group_id=group, used_slots=used, charged_at=now)
            for (user, group), used in used_slots.items()
            if (user, group) not in known
        ],
        # Somebody who was first at the same time is noted the next time.
        ignore_conflicts=True,
    )


def _is_at_rest(row: Submitter, used_slots: Mapping[tuple[int, int | None], float]) -> bool:
    used = used_slots.get((row.user_id, row.group_id), 0.0)
    return row.real_priority == BEST_PRIORITY and row.used_slots == used == 0


def _update(
    rows: Sequence[Submitter],
    used_slots: Mapping[tuple[int, int | None], float],
    half_life_s: float,
    now: datetime,
) -> None:
    elapsed_s = [max(0.0, (now - row.charged_at).total_seconds()) for row in rows]
    timed = list(zip(rows, elapsed_s, strict=True))
    columns: list[list[float]] = [
        [row.pk for row in rows],
        [decayed_priority(row.real_priority, row.used_slots, s, half_life_s) for row, s in timed],
        [used_slots.get((row.user_id, row.group_id), 0.0) for row in rows],
        [row.used_slot_s + row.used_slots * s for row, s in timed],
    ]
    with connection.cursor() as cursor:
        cursor.execute(CHARGE_SUBMITTERS, [now, *columns])


_GROUP_CHECKS: list[Callable[[AccountingGroup], None]] = []


def check_group(group: AccountingGroup) -> None:
    """Raise InvalidInput with the faults of a group."""
    check_row(group)
    check_same_name(group)
    if group.quota_kind == AccountingGroup.QuotaKind.DYNAMIC and group.quota > 1:
        raise InvalidInput.of("a fraction is at most 1", field="quota")
    others = AccountingGroup.objects.exclude(pk=group.pk)
    if others.filter(name__iexact=group.name).exists():
        raise InvalidInput.of("there is a group of this name in another case", field="name")
    parent = group.name.rpartition(".")[0]
    if parent and not others.filter(name=parent).exists():
        raise InvalidInput.of(f"there is no group {parent}: make it first", field="name")
    for check in _GROUP_CHECKS:
        check(group)


def register_group_check(check: Callable[[AccountingGroup], None]) -> None:
    """Have groups checked by a higher app, which raises InvalidInput; called when it is set up."""
    _GROUP_CHECKS.append(check)


@transaction.atomic
def save_group(
    group: AccountingGroup,
    *,
    actor: Actor,
    reason: str = "",
    members: Collection[User] | None = None,
) -> None:
    """Check and store a group, and its members where given. Raises NotPermitted or InvalidInput."""
    require_role(actor, Role.OPERATOR, "configure groups")
    # The parent stays as long as this is not committed; `delete_group` takes the same lock.
    parent = group.name.rpartition(".")[0]
    AccountingGroup.objects.select_for_update().filter(name=parent).first()
    check_group(group)
    facts = {}
    if members is not None:
        old = set(group.members.values_list("username", flat=True)) if group.pk else set()
        new = {member.get_username() for member in members}
        facts = {"members": [sorted(old), sorted(new)]} if old != new else {}
    save_audited(group, target=f"group {group.name}", actor=actor, reason=reason, facts=facts)
    if members is not None:
        group.members.set(members)


def check_group_deletion(group: AccountingGroup) -> None:
    """Raise Conflict when DAGs, pilots or others are in the name of a group, or it has children."""
    if AccountingGroup.objects.filter(name__startswith=f"{group.name}.").exists():
        raise Conflict(f"The group {group.name} has groups below it: delete those first.")
    if kinds := kinds_that_forbid_deletion(group):
        raise Conflict(
            f"There are {kinds} in the name of the group {group.name}: it cannot be deleted. Take "
            "its members out instead."
        )


@transaction.atomic
def delete_group(group: AccountingGroup, *, actor: Actor, reason: str = "") -> None:
    """Delete a group, with what its submitters have used. Raises NotPermitted or Conflict."""
    require_role(actor, Role.OPERATOR, "configure groups")
    AccountingGroup.objects.select_for_update().filter(pk=group.pk).first()
    check_group_deletion(group)
    facts = {"quota": [group.quota, None], "quota_kind": [group.quota_kind, None]}
    target = f"group {group.name}"
    record_action("delete accounting group", target=target, actor=actor, reason=reason, facts=facts)
    group.delete()


def check_quota_row(quota: Quota) -> None:
    """Raise InvalidInput with the faults of a quota."""
    if quota.user is not None and quota.group is not None:
        raise InvalidInput.of("a quota is of a user or of a group, not of both", field="group")
    if Quota.objects.exclude(pk=quota.pk).filter(user=quota.user, group=quota.group).exists():
        raise InvalidInput.of(f"there is a {quota} already")
    check_row(quota)


@transaction.atomic
def save_quota(quota: Quota, *, actor: Actor, reason: str = "") -> None:
    """Check and store a quota. Raises NotPermitted or InvalidInput.

    What is there already stays, even beyond the quota.
    """
    require_role(actor, Role.OPERATOR, "configure quotas")
    check_quota_row(quota)
    save_audited(quota, target=str(quota), actor=actor, reason=reason)


@transaction.atomic
def delete_quota(quota: Quota, *, actor: Actor, reason: str = "") -> None:
    """Delete a quota: its user falls back to that of every user, its group has none then.

    Raises NotPermitted.
    """
    require_role(actor, Role.OPERATOR, "configure quotas")
    facts = {
        name: [getattr(quota, name), None]
        for name in ("max_waiting_jobs", "max_clusters", "max_bytes")
    }
    record_action("delete quota", target=str(quota), actor=actor, reason=reason, facts=facts)
    quota.delete()


def check_limit(limit: ConcurrencyLimit) -> None:
    """Raise InvalidInput with the faults of a limit."""
    check_row(limit)
    check_same_name(limit)


@transaction.atomic
def save_limit(limit: ConcurrencyLimit, *, actor: Actor, reason: str = "") -> None:
    """Check and store a concurrency limit. Raises NotPermitted or InvalidInput."""
    require_role(actor, Role.OPERATOR, "configure concurrency limits")
    check_limit(limit)
    save_audited(limit, target=f"limit {limit.name}", actor=actor, reason=reason)


@transaction.atomic
def delete_limit(limit: ConcurrencyLimit, *, actor: Actor, reason: str = "") -> None:
    """Delete a concurrency limit: what it named is free then. Raises NotPermitted."""
    require_role(actor, Role.OPERATOR, "configure concurrency limits")
    facts = {"maximum": [limit.maximum, None]}
    target = f"limit {limit.name}"
    record_action(
        "delete concurrency limit", target=target, actor=actor, reason=reason, facts=facts
    )
    limit.delete()


@transaction.atomic
def save_submitter(submitter: Submitter, *, actor: Actor, reason: str = "") -> None:
    """Store a submitter's factor; all else follows from use.

    Raises NotPermitted or InvalidInput.
    """
    require_role(actor, Role.OPERATOR, "set priority factors")
    check_row(submitter)
    save_audited(
        submitter,
        target=f"submitter {submitter}",
        actor=actor,
        reason=reason,
        fields=["factor"],
    )
