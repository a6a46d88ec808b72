"""Services on remote frontends: configured, switched off, deleted; permitted and audited."""

from __future__ import annotations

from django.db import transaction

from wms.accounting.models import AccountingGroup
from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.database.saving import check_row, kinds_that_forbid_deletion, save_audited
from wms.core.errors import Conflict, InvalidInput
from wms.core.models import Role
from wms.core.policy import require_role
from wms.pilots.factory_models import RemoteFrontend

#: Right that changes of remote frontends need.
CONFIGURE = "configure remote frontends"


def check_remote_frontend(remote: RemoteFrontend) -> None:
    """Raise InvalidInput with the faults of a remote frontend."""
    check_row(remote)
    if AccountingGroup.objects.filter(frontend=remote.frontend_id).exists():
        message = "groups of this installation belong to it: its jobs are not elsewhere"
        raise InvalidInput.of(message, field="frontend")
    if remote.url and not remote.factory_name:
        message = "is needed where this installation calls: what the frontend calls it"
        raise InvalidInput.of(message, field="factory_name")
    if remote.factory_name and not remote.url:
        message = "says nothing where the frontend calls: leave it empty, or give the address"
        raise InvalidInput.of(message, field="factory_name")
    stored = RemoteFrontend.objects.filter(pk=remote.pk).first() if remote.pk else None
    if stored is not None and stored.frontend_id != remote.frontend_id:
        raise InvalidInput.of("its orders are those of this frontend", field="frontend")


def check_group_frontend(group: AccountingGroup) -> None:
    """Raise InvalidInput where a group's frontend has its jobs at another installation."""
    if RemoteFrontend.objects.filter(frontend=group.frontend_id).exists():
        message = "its jobs are at another installation: no group here belongs to it"
        raise InvalidInput.of(message, field="frontend")


@transaction.atomic
def save_remote_frontend(remote: RemoteFrontend, *, actor: Actor, reason: str = "") -> None:
    """Check and store a remote frontend; one with an address is called within seconds.

    Raises NotPermitted or InvalidInput.
    """
    require_role(actor, Role.OPERATOR, CONFIGURE)
    check_remote_frontend(remote)
    fields = ("frontend_id", "url", "factory_name", "is_enabled")
    save_audited(remote, target=target_of(remote), actor=actor, reason=reason, fields=fields)
    rows = RemoteFrontend.objects.filter(pk=remote.pk)
    # Whatever went wrong before may be mended now.
    rows.update(next_at=None)
    if remote.is_caller:
        # Of calls that are not made any more.
        rows.update(failures=0, error="")
    else:
        rows.update(token_sha256="", token_at=None, caller=None, turn=None)


def check_remote_deletion(remote: RemoteFrontend) -> None:
    """Raise Conflict when orders of the frontend are known."""
    if kinds := kinds_that_forbid_deletion(remote):
        raise Conflict(
            f"There are {kinds} of the frontend {remote.frontend.name}: it cannot be deleted. "
            "Switch it off instead."
        )


@transaction.atomic
def delete_remote_frontend(remote: RemoteFrontend, *, actor: Actor, reason: str = "") -> None:
    """Delete a remote frontend that has no orders. Raises NotPermitted or Conflict."""
    require_role(actor, Role.OPERATOR, CONFIGURE)
    RemoteFrontend.objects.select_for_update().filter(pk=remote.pk).first()
    check_remote_deletion(remote)
    record_action("delete remote frontend", target=target_of(remote), actor=actor, reason=reason)
    remote.delete()


def target_of(remote: RemoteFrontend) -> str:
    """Name of a remote frontend in the audit trail."""
    return f"remote frontend {remote.frontend.name}"
