"""Wallboards: addresses with a token of their own, for screens in control rooms.

Shifters and above make them, see all of them, and revoke them, with a reason. A screen sees what
its maker may see, and may do nothing; its token opens nothing else.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.errors import InvalidInput, NotPermitted, ReasonRequired
from wms.core.models import ApiToken, Role, TokenKind, User
from wms.core.policy import has_role, require_role
from wms.core.tokens import IssuedToken, store_token
from wms.core.transitions import Applied

#: Days for which an address is good at most.
MAX_DAYS = 366
MAX_NAME = 100
_ROLE = Role.SHIFTER


def may_manage(user: User) -> bool:
    """True when the user may make, see and revoke addresses of wallboards."""
    return user.is_active and has_role(user, _ROLE)


@transaction.atomic
def make_wallboard(
    *, name: str, days: int, reason: str, actor: Actor, now: datetime
) -> IssuedToken:
    """Make an address for a screen, which is shown this once. Raises InvalidInput."""
    require_role(actor, _ROLE, "make wallboards")
    if actor.user is None:
        raise NotPermitted("Wallboards are made by people: a screen sees what its maker may see.")
    named = name.strip()
    if not 0 < len(named) <= MAX_NAME:
        raise InvalidInput.of(f"has 1 to {MAX_NAME} characters", field="name")
    if not 0 < days <= MAX_DAYS:
        raise InvalidInput.of(f"must be from 1 to {MAX_DAYS}", field="days")
    if not reason.strip():
        raise ReasonRequired("make wallboard")
    until = now + timedelta(days=days)
    issued = store_token(
        user=actor.user, name=named, kind=TokenKind.WALLBOARD, scopes=[], expires_at=until
    )
    facts = {"name": named, "expires_at": until.isoformat()}
    record_action(
        "make wallboard", target=_target(issued.row), actor=actor, reason=reason, facts=facts
    )
    return issued


@transaction.atomic
def revoke_wallboards(ids: Collection[int], *, actor: Actor, reason: str) -> Applied:
    """Revoke addresses; those that were revoked before are skipped."""
    require_role(actor, _ROLE, "revoke wallboards")
    if not reason.strip():
        raise ReasonRequired("revoke wallboard")
    rows = ApiToken.objects.filter(kind=TokenKind.WALLBOARD, pk__in=ids, revoked_at=None)
    locked = list(rows.select_related("user").order_by("pk").select_for_update(of=("self",)))
    done = [row.pk for row in locked]
    ApiToken.objects.filter(pk__in=done).update(revoked_at=Now())
    for row in locked:
        record_action("revoke wallboard", target=_target(row), actor=actor, reason=reason)
    return Applied(changed=done, skipped=sorted(set(ids) - set(done)))


def visible_wallboards(user: User) -> QuerySet[ApiToken]:
    """Wallboards that the user may see: all for shifters and above; revoked ones after others."""
    rows = ApiToken.objects.filter(kind=TokenKind.WALLBOARD).select_related("user")
    if not may_manage(user):
        return rows.none()
    return rows.order_by(F("revoked_at").desc(nulls_first=True), "-pk")


def _target(row: ApiToken) -> str:
    return f"user {row.user.username}, wallboard {row.prefix}"
