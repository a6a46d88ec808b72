"""Remote frontends that call this factory: their tokens, and who may call with one.

What people do is permitted and audited. A token is shown once, and stored as a hash.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.errors import Conflict, NotAuthenticated, NotPermitted, ReasonRequired
from wms.core.models import Role
from wms.core.policy import require_role
from wms.factories.tokens import digest, is_token, new_token
from wms.pilots.factories.services import CONFIGURE, target_of
from wms.pilots.factory_models import RemoteFrontend

_NOTED_EVERY = timedelta(seconds=10)
_LONGEST_NAME = 64


@transaction.atomic
def renew_caller_token(remote: RemoteFrontend, *, actor: Actor, reason: str) -> str:
    """A new token for a frontend that calls, which nobody can read again; the old one is over.

    Whoever calls with it first is the frontend from then on. Raises NotPermitted, ReasonRequired,
    and Conflict for one that this installation calls.
    """
    require_role(actor, Role.OPERATOR, CONFIGURE)
    if not reason:
        raise ReasonRequired(event="new token")
    if not remote.is_caller:
        raise Conflict(
            f"This installation calls the frontend {remote.frontend.name}: its token is made "
            "there, and is a file here."
        )
    token = new_token()
    _set_token(remote, digest(token), "renew token of remote frontend", actor, reason)
    return token


@transaction.atomic
def revoke_caller_token(remote: RemoteFrontend, *, actor: Actor, reason: str) -> None:
    """End the token of a frontend: its calls are refused. Raises NotPermitted, ReasonRequired."""
    require_role(actor, Role.OPERATOR, CONFIGURE)
    if not reason:
        raise ReasonRequired(event="revoke token")
    _set_token(remote, "", "revoke token of remote frontend", actor, reason)


def _set_token(remote: RemoteFrontend, stored: str, action: str, actor: Actor, reason: str) -> None:
    row = RemoteFrontend.objects.select_for_update().get(pk=remote.pk)
    row.token_sha256, row.caller, row.turn = stored, None, None
    row.token_at = timezone.now() if stored else None
    row.save(update_fields=["token_sha256", "caller", "turn", "token_at"])
    record_action(action, target=target_of(remote), actor=actor, reason=reason)


def authenticate_caller(name: str, token: str, *, now: datetime) -> RemoteFrontend:
    """The frontend of this name and token, if it may call.

    Raises NotAuthenticated, and NotPermitted while it is switched off. What was wrong is noted.
    """
    remotes = RemoteFrontend.objects.select_related("frontend")
    remote = remotes.filter(frontend__name=name[:_LONGEST_NAME]).first()
    if remote is None:
        raise NotAuthenticated
    what = ""
    if not remote.is_caller:
        what = "this installation calls it, and not the other way round"
    elif not is_token(token, remote.token_sha256):
        what = "its token is wrong" if remote.token_sha256 else "it has no token"
    if what:
        _note_refusal(remote, f"a call in its name was refused: {what}", now)
        raise NotAuthenticated
    if not (remote.is_enabled and remote.frontend.is_enabled):
        reason = f"the frontend {remote.frontend.name} is switched off here"
        _note_refusal(remote, reason, now)
        raise NotPermitted(reason)
    return remote


def admit_caller(remote: RemoteFrontend, instance: UUID, now: datetime) -> None:
    """Let the first installation that calls with a token in, and no other one.

    Raises Conflict for another one: of two each would take back what the other has ordered.
    """
    free = Q(caller=None) | Q(caller=instance)
    if RemoteFrontend.objects.filter(free, pk=remote.pk).update(caller=instance, called_at=now):
        return
    reason = (
        f"another installation calls as the frontend {remote.frontend.name}: give it a name of "
        "its own, or renew the token"
    )
    _note_refusal(remote, reason, now)
    raise Conflict(reason)


def _note_refusal(remote: RemoteFrontend, reason: str, now: datetime) -> None:
    """Note why a call was refused, for the frontend's page; at most every ten seconds."""
    lately = Q(refused_at__gt=now - _NOTED_EVERY)
    RemoteFrontend.objects.filter(pk=remote.pk).exclude(lately).update(
        refused_at=now, refused_reason=reason
    )
