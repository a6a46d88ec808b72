"""Accounts of services: made and changed by administrators, with the groups that they belong to.

A group leads to its frontend, so an account in the groups of one frontend sees and submits what is
that frontend's, and its tokens do no more.
"""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction
from django.db.models import Max, Prefetch, QuerySet
from django.db.models.functions import Greatest

from wms.accounting.models import AccountingGroup
from wms.core.accounts import check_account, save_account
from wms.core.actors import Actor
from wms.core.database.saving import check_row
from wms.core.errors import NotFound
from wms.core.models import Role, ServiceAccount, User
from wms.core.policy import has_role, require_role


def check_service_account(account: ServiceAccount) -> None:
    """Raise InvalidInput or Conflict with the faults of a service's account."""
    account.is_service = True
    if account.pk is None:
        account.set_unusable_password()
    check_account(account)
    check_row(account)


@transaction.atomic
def save_service_account(
    account: ServiceAccount,
    *,
    groups: Collection[AccountingGroup],
    actor: Actor,
    reason: str = "",
) -> None:
    """Check and store the account of a service, and the groups that it is a member of.

    Without a group it belongs to the default frontend. Raises NotPermitted, InvalidInput or
    Conflict.
    """
    require_role(actor, Role.ADMIN, "manage accounts")
    check_service_account(account)
    old = set(_groups_of(account)) if account.pk is not None else set()
    new = {group.name for group in groups}
    facts = {"groups": [sorted(old), sorted(new)]} if old != new else {}
    save_account(account, actor=actor, reason=reason, facts=facts)
    if old != new:
        account.accounting_groups.set(groups)


def _groups_of(account: User) -> list[str]:
    return list(account.accounting_groups.values_list("name", flat=True))


def visible_service_accounts(user: User) -> QuerySet[ServiceAccount]:
    """Accounts of services with groups and `last_used_at`, for who manages accounts."""
    rows = ServiceAccount.objects.all()
    if not has_role(user, Role.ADMIN):
        return rows.none()
    groups = Prefetch("accounting_groups", AccountingGroup.objects.order_by("name"))
    own, signed = Max("api_tokens__last_used_at"), Max("named_subjects__last_used_at")
    return rows.prefetch_related(groups).annotate(last_used_at=Greatest(own, signed))


def find_service_account(user: User, account_id: int) -> ServiceAccount:
    """The account of a service. Raises NotFound."""
    found = visible_service_accounts(user).filter(pk=account_id).first()
    if found is None:
        raise NotFound(f"There is no service account {account_id}, or you may not see it.")
    return found
