"""Policy of pilots: whether a user may drain or remove them, and send a test pilot to a queue.

- Everybody who is logged in sees every pilot, with its log: it runs everybody's jobs.
- Shifters and above steer pilots, as they may ban a site; so do a site's administrators those of
  their site. What a drained pilot runs goes on; what a removed one runs waits again.
- Whoever may steer the pilots of a queue may send a test pilot there.
"""

from __future__ import annotations

from collections.abc import Collection

from wms.core.actors import Actor
from wms.core.models import Role, User
from wms.core.policy import has_role
from wms.sites.models import Queue, Site
from wms.sites.policy import may_steer as may_steer_site
from wms.sites.policy import require_steering as require_steering_site
from wms.sites.policy import steerable_sites


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
