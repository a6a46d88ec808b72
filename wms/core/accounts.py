"""Accounts of persons and services."""

from __future__ import annotations

from django.db import transaction

from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.models import Role, User
from wms.core.policy import has_role, require_role


@transaction.atomic
def ensure_account(username: str, *, password: str, role: Role, actor: Actor) -> User:
    """The account of this name; created with this password and role when there is none.

    An existing account stays as it is. Operators may also enter the administration pages.
    """
    require_role(actor, Role.ADMIN, "create accounts")
    existing = User.objects.filter(username=username).first()
    if existing is not None:
        return existing
    user = User(username=username, role=role)
    user.is_staff = has_role(user, Role.OPERATOR)
    user.set_password(password)
    user.save()
    record_action("create account", target=f"user {username}", actor=actor, facts={"role": role})
    return user
