"""Tokens of the API that are limited to one frontend.

By such a token its user sees and steers what is this frontend's (`wms.accounting.walls`), as a
shifter at most. The limit is set when the token is made, and stays, also on what is submitted by it
(`Workspace.limited_to`); with the frontend the token ends.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db import transaction

from wms.accounting.models import Frontend
from wms.accounting.walls import walls_of
from wms.core.actors import Actor
from wms.core.errors import BeyondFrontend, InvalidInput
from wms.core.models import User
from wms.core.tokens import IssuedToken, issue_token


@transaction.atomic
def issue_limited_token(
    user: User,
    *,
    frontend: str,
    name: str,
    actor: Actor,
    expires_at: datetime | None = None,
    scopes: Collection[str] | None = None,
) -> IssuedToken:
    """Make a token for the user, limited to the frontend of this name; empty: not limited.

    Raises as `issue_token`, and InvalidInput for a frontend that there is not, or whose objects the
    user may not see.
    """
    row = _checked(user, frontend) if frontend else None
    return issue_token(
        user, name=name, actor=actor, expires_at=expires_at, scopes=scopes, frontend=row
    )


def limits_for(user: User) -> list[str]:
    """Names of the frontends to which a token of the user may be limited."""
    walls = walls_of(user)
    rows = Frontend.objects.order_by("name").values_list("pk", "name")
    return [name for pk, name in rows if walls.lets_in(pk)]


def require_limit_of_actor(limited_to: int | None, *, actor: Actor, named: str) -> None:
    """Raise BeyondFrontend for a token whose limit is not the one by which `named` was submitted.

    What it puts into that would reach what the limit of that reaches, most often all of its owner's
    data.
    """
    limit = actor.user.limited_to if actor.user is not None else None
    if limit is not None and limit != limited_to:
        raise BeyondFrontend(
            f"{named} was not submitted by a token with the limit of yours: what is put into it "
            "would reach more than that."
        )


def _checked(user: User, name: str) -> Frontend:
    # Locked, so that it is not deleted meanwhile.
    rows = Frontend.objects.select_for_update(no_key=True).filter(name=name.replace("\0", "?"))
    row = rows.first()
    if row is None or not walls_of(user).lets_in(row.pk):
        message = f"there is no frontend {name[:80]} that {user.get_username()} is in"
        raise InvalidInput.of(message, field="frontend")
    return row
