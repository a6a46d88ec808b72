"""Services on user accounts: create, change role and other fields, set passwords, with audit.

Admins may do it to all accounts, everybody may change their own password. Also the checks that the
last administrator stays one, and that accounts of services have neither password nor login.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import Q

from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.errors import Conflict
from wms.core.models import Role, User
from wms.core.policy import enters_administration, has_role, require_role

_AUDITED = ("username", "first_name", "last_name", "email", "role", "is_active", "is_service")


@transaction.atomic
def ensure_account(username: str, *, password: str, role: Role, actor: Actor) -> User:
    """The account of this name; created with this password and role when there is none.

    An existing account stays as it is. Operators and site administrators may also enter the
    administration pages.
    """
    require_role(actor, Role.ADMIN, "create accounts")
    existing = User.objects.filter(username=username).first()
    if existing is not None:
        return existing
    user = User(username=username, role=role)
    user.is_staff = enters_administration(user)
    user.set_password(password)
    user.save()
    record_action("create account", target=f"user {username}", actor=actor, facts={"role": role})
    return user


def check_account(user: User) -> None:
    """Raise Conflict when nobody could manage accounts any more after this change.

    And for a service that is to manage accounts: whoever has its token could make others.
    """
    if user.is_service and user.role == Role.ADMIN:
        raise Conflict("The account of a service cannot be an administrator's.")
    if has_role(user, Role.ADMIN):
        return
    admins = User.objects.filter(Q(role=Role.ADMIN) | Q(is_superuser=True), is_active=True)
    if admins.filter(pk=user.pk).exists() and not admins.exclude(pk=user.pk).exists():
        raise Conflict(f"{user.username} is the last administrator: name another one first.")


@transaction.atomic
def save_account(
    user: User,
    *,
    actor: Actor,
    password: str = "",
    reason: str = "",
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Store an account, with a new password if one is given; what changed goes into the audit.

    `facts` are changes of what others keep of it. Raises NotPermitted or Conflict.
    """
    require_role(actor, Role.ADMIN, "manage accounts")
    check_account(user)
    old = User.objects.select_for_update().filter(pk=user.pk).first()
    if old is not None and old.username != user.username:
        raise Conflict(f"The name {old.username} cannot be changed: jobs and events carry it.")
    if old is not None and old.is_service != user.is_service:
        raise Conflict("The account of a person stays one, and that of a service, too.")
    user.is_staff = enters_administration(user) and not user.is_service
    changes: dict[str, Any] = {
        name: [None if old is None else getattr(old, name), getattr(user, name)]
        for name in _AUDITED
        if old is None or getattr(old, name) != getattr(user, name)
    }
    if password:
        _require_login(user)
        user.set_password(password)
        changes["password"] = "set"
    elif old is None and user.is_service:
        user.set_unusable_password()
    changes |= facts or {}
    if not changes:
        return
    user.save()
    action = "create account" if old is None else "change account"
    record_action(action, target=f"user {user.username}", actor=actor, reason=reason, facts=changes)


@transaction.atomic
def change_password(user: User, password: str, *, actor: Actor) -> None:
    """Give an account a new password: one's own, or as an admin another's. Raises NotPermitted."""
    if actor.user is None or actor.user.pk != user.pk:
        require_role(actor, Role.ADMIN, "change the passwords of others")
    _require_login(user)
    user.set_password(password)
    user.save(update_fields=["password"])
    record_action("change password", target=f"user {user.username}", actor=actor)


def _require_login(user: User) -> None:
    if user.is_service:
        raise Conflict(f"{user.username} is the account of a service: it has tokens, no password.")
