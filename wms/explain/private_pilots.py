"""Private pilots in explanations: queues whose private pilots get no more of some jobs, and why.

The account of their owner is switched off, or the owner has left the group.
"""

from __future__ import annotations

from collections.abc import Iterable

from matching.task_queues.needs import Needs
from wms.accounting.models import AccountingGroup
from wms.core.models import User
from wms.sites.models import Queue
from wms.sites.selectors import Identity, lapsed_identities


def barred_owners(queues: Iterable[Queue], needs: Needs) -> dict[int, str]:
    """Reasons why private pilots of queues are given no more of these jobs, by the queue's id.

    Accounts are switched off and members leave. Three queries where a queue is private, else none.
    """
    private = [queue for queue in queues if queue.is_private or queue.owner is not None]
    if not private:
        return {}
    identities = {queue.pk: _identity(queue) for queue in private if not queue.has_owners}
    if len(identities) < len(private) and (own := _owner(needs)) is not None:
        identities |= {queue.pk: own for queue in private if queue.has_owners}
    lapsed = lapsed_identities(set(identities.values()))
    return {pk: lapsed[each] for pk, each in identities.items() if each in lapsed}


def _identity(queue: Queue) -> Identity:
    return queue.owner, queue.owner_group


def _owner(needs: Needs) -> Identity | None:
    """Identity of the pilots that are sent for these jobs; None where other members' take them."""
    group = AccountingGroup.objects.filter(name=needs.owner_group).first()
    if group is not None and group.has_job_sharing:
        return None
    return User.objects.get(username=needs.owner), group
