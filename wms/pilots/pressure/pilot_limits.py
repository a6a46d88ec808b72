"""Services on pilot limits, which bound the pilots of many queues together: check, save, delete.

Permitted and audited. A limit counts from the director's next cycle on, and ends no pilot.
"""

from __future__ import annotations

from django.db import transaction

from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.database.saving import check_row, save_audited
from wms.core.errors import InvalidInput
from wms.pilots.pressure_models import PilotLimit
from wms.sites.policy import require_configuring, sites_of

_BOUNDS = ("max_pilots", "curb_pilots", "max_cores", "max_idle_pilots", "curb_idle_pilots")
_CONFIGURED = ("scope", "site_id", "group_id", "frontend_id", *_BOUNDS)


def check_limit(limit: PilotLimit) -> None:
    """Raise InvalidInput with the faults of a limit."""
    if limit.site_id and limit.scope != PilotLimit.Scope.SITE:
        raise InvalidInput.of("only a limit of sites names one", field="site")
    if limit.group_id and limit.scope != PilotLimit.Scope.GROUP:
        raise InvalidInput.of("only a limit of groups names one", field="group")
    if limit.frontend_id and limit.scope != PilotLimit.Scope.FRONTEND:
        raise InvalidInput.of("only a limit of frontends names one", field="frontend")
    if all(getattr(limit, name) is None for name in _BOUNDS):
        raise InvalidInput.of("set at least one number, or it limits nothing", field="max_pilots")
    check_row(limit)


@transaction.atomic
def save_limit(limit: PilotLimit, *, actor: Actor, reason: str = "") -> None:
    """Check and store a limit; it counts from the next cycle on, and ends no pilot.

    Raises NotPermitted or InvalidInput.
    """
    require_configuring(actor, "configure limits on pilots", *sites_of(limit))
    check_limit(limit)
    save_audited(limit, target=f"limit on {limit}", actor=actor, reason=reason, fields=_CONFIGURED)


@transaction.atomic
def delete_limit(limit: PilotLimit, *, actor: Actor, reason: str = "") -> None:
    """Delete a limit: nothing holds back its pilots then. Raises NotPermitted."""
    require_configuring(actor, "configure limits on pilots", *sites_of(limit))
    facts = {name: [getattr(limit, name), None] for name in _BOUNDS}
    target = f"limit on {limit}"
    record_action("delete pilot limit", target=target, actor=actor, reason=reason, facts=facts)
    limit.delete()
