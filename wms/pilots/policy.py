"""Policy of pilots: whether a user may drain or remove them, and send a test pilot to a queue.

- A pilot is seen, with its log, by the people of the frontend whose jobs it runs, a private one by
  those of its owner's group; all pilots of a site also by its administrators.
- Shifters and above steer pilots, as they may ban a site; so do a site's administrators those of
  their site. What a drained pilot runs goes on; what a removed one runs waits again.
- Whoever may steer the pilots of a queue may send a test pilot there.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from django.db.models import Q, QuerySet

from wms.accounting.walls import Walls, within_reach
from wms.core.actors import Actor
from wms.core.models import Role, User
from wms.core.policy import has_role
from wms.pilots.models import Pilot
from wms.sites.models import Queue, Site
from wms.sites.policy import may_steer as may_steer_site
from wms.sites.policy import require_steering as require_steering_site
from wms.sites.policy import steerable_sites


def pilots_within(user: User, walls: Walls) -> Q:
    """Condition for the pilots that walls let the user see."""
    sent = Q(owner__isnull=True) & walls.by_frontend()
    private = Q(owner__isnull=False) & walls.by_group("owner_group")
    seen = sent | private
    if user.limited_to is not None or not may_steer_some(user):
        return seen
    return seen | Q(queue__site__in=steerable_sites(user))


def pilots_in_reach(actor: Actor, rows: QuerySet[Pilot]) -> QuerySet[Pilot]:
    """The pilots that an actor may act upon, as far as walls decide it."""
    if actor.user is None:
        return rows
    return within_reach(actor, rows, partial(pilots_within, actor.user))


def may_steer(user: User, site: Site) -> bool:
    """True when the user may drain and remove pilots of this site."""
    return may_steer_site(user, site)


def may_steer_some(user: User) -> bool:
    """True when the user's role lets the user steer pilots, of some site at least."""
    return has_role(user, Role.SITE_ADMIN)


def steered_queues(user: User, queue_ids: Collection[int]) -> Collection[int]:
    """The queues, of those given, whose pilots the user may drain and remove."""
    if has_role(user, Role.SHIFTER):
        return queue_ids
    own = Queue.objects.filter(pk__in=queue_ids, site__in=steerable_sites(user))
    return set(own.values_list("pk", flat=True))


def require_steering(actor: Actor, action: str, site: Site) -> None:
    """Raise NotPermitted unless the actor may drain and remove pilots of this site."""
    require_steering_site(actor, action, site)
