"""Selectors of credentials: which a user may read, and those whose end is near or past.

None of them reads what is secret.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import F, QuerySet

from wms.accounting.walls import Walls, seen_by
from wms.core.models import Role, User
from wms.core.policy import has_role
from wms.pilots.credential_models import Credential

#: The end of a credential is told so long ahead.
TOLD_AHEAD = timedelta(days=7)
#: Of one that lives for a shorter time: when so much of it is left.
_LAST_PART = 0.25


def visible_credentials(user: User) -> QuerySet[Credential]:
    """Credentials that the user may read, latest first, without what is secret.

    Operators and admins read all, others none.
    """
    rows = Credential.objects.defer("sealed").select_related("frontend", "queue__site", "site")
    return rows.order_by("-pk") if has_role(user, Role.OPERATOR) else rows.none()


def ending_credentials(user: User, now: datetime) -> QuerySet[Credential]:
    """Credentials of the user's frontends that have expired or soon will, the first one first."""
    return seen_by(user, all_ending_credentials(now), Walls.by_frontend)


def all_ending_credentials(now: datetime) -> QuerySet[Credential]:
    """Credentials that have expired or soon will, of all frontends, the first to end first.

    They are on; soon is within a week, or the last quarter of the life of one that was made for
    less.
    """
    on = Credential.objects.filter(is_enabled=True, expires_at__lt=now + TOLD_AHEAD)
    whole = F("expires_at") - F("replaced_at")
    in_last_part = on.filter(expires_at__lt=now + whole * _LAST_PART)
    return in_last_part.defer("sealed").order_by("expires_at")
