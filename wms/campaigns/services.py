"""Services of campaigns: set a deadline, or take it away."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.utils import timezone

from wms.campaigns.models import CampaignDeadline
from wms.campaigns.selectors import deadline_of, in_words, members_of
from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.errors import InvalidInput, NotPermitted, ReasonRequired
from wms.core.models import Role, User
from wms.core.policy import has_role
from wms.core.stale import refuse_stale
from wms.jobs.clusters.options import check_deadline


def may_set_deadline(user: User, name: str) -> bool:
    """Whether the user may set the deadline of a campaign. Raises NotFound."""
    dags, clusters = members_of(user, name)
    if has_role(user, Role.SHIFTER):
        return True
    is_own = dags.filter(owner=user).exists() or clusters.filter(owner=user).exists()
    return is_own and has_role(user, Role.USER)


@transaction.atomic
def set_deadline(
    name: str, *, deadline: datetime | None, actor: Actor, reason: str, seen: str = ""
) -> CampaignDeadline:
    """Set the deadline of a campaign for those who may see what the actor sets; None: no deadline.

    Who has a DAG or cluster in it may, and shifters. A deadline stops nothing; the campaign tells
    whether it will be met. `seen` is the deadline that the actor saw, as `in_words` has it. Raises
    NotFound, NotPermitted, ReasonRequired, InvalidInput, and Conflict for another deadline than was
    seen.
    """
    user = actor.user
    if user is None:
        raise NotPermitted("Deadlines of campaigns are set by people.")
    if not may_set_deadline(user, name):
        raise NotPermitted(
            f"{actor.name} may not set the deadline of {name}: nothing in it is theirs, and this "
            f"needs the role {Role.SHIFTER.label}."
        )
    if not reason.strip():
        raise ReasonRequired("set deadline")
    if deadline is not None:
        try:
            check_deadline(deadline)
        except ValueError as error:
            raise InvalidInput.of(str(error), field="deadline") from None
    # Whoever sets one waits here, so that it is compared with what another has set.
    list(CampaignDeadline.objects.select_for_update().filter(campaign=name).order_by("pk"))
    refuse_stale(seen, in_words(deadline_of(user, name)), what=f"the deadline of {name}")
    row, _ = CampaignDeadline.objects.update_or_create(
        campaign=name, set_by=user, defaults={"deadline": deadline, "set_at": timezone.now()}
    )
    record_action(
        "set deadline of campaign",
        target=f"campaign {name}",
        actor=actor,
        reason=reason.strip(),
        facts={"deadline": deadline.isoformat() if deadline else None},
    )
    return row
