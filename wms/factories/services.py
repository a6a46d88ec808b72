"""Services on remote factories: configured, given and refused tokens, released, deleted; calls.

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
from wms.core.database.saving import (
    check_row,
    check_same_name,
    kinds_that_forbid_deletion,
    save_audited,
)
from wms.core.errors import Conflict, InvalidInput, NotAuthenticated, NotPermitted, ReasonRequired
from wms.core.models import Role
from wms.core.policy import require_role
from wms.factories.models import RemoteFactory
from wms.factories.tokens import digest, is_token, new_token

_CONFIGURE = "configure remote factories"
_NOTED_EVERY = timedelta(seconds=10)
_LONGEST_NAME = 64
_CONFIGURED = ("name", "description", "is_enabled", "sites", "url", "frontend_name")


def check_factory(factory: RemoteFactory) -> None:
    """Raise InvalidInput with the faults of a factory."""
    check_row(factory)
    check_same_name(factory)
    others = RemoteFactory.objects.exclude(pk=factory.pk)
    if others.filter(name__iexact=factory.name).exists():
        raise InvalidInput.of("there is a factory of this name in another case", field="name")
    names = factory.sites
    if not isinstance(names, list) or not all(
        isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME for name in names
    ):
        raise InvalidInput.of("must be a JSON list of names of sites", field="sites")
    if factory.url and not factory.frontend_name:
        message = "is needed where this installation calls: what the factory calls it"
        raise InvalidInput.of(message, field="frontend_name")
    if factory.frontend_name and not factory.url:
        message = "says nothing where the factory calls: leave it empty, or give the address"
        raise InvalidInput.of(message, field="frontend_name")


@transaction.atomic
def create_factory(factory: RemoteFactory, *, actor: Actor, reason: str = "") -> str:
    """Check and store a new factory; return its token, which nobody can read again.

    There is none for one that this installation calls. Raises NotPermitted or InvalidInput.
    """
    require_role(actor, Role.OPERATOR, _CONFIGURE)
    check_factory(factory)
    token = "" if factory.url else new_token()
    if token:
        factory.token_sha256, factory.token_at = digest(token), timezone.now()
    save_audited(factory, target=target_of(factory), actor=actor, reason=reason, fields=_CONFIGURED)
    return token


@transaction.atomic
def save_factory(factory: RemoteFactory, *, actor: Actor, reason: str = "") -> None:
    """Check and store changes of a factory, its token left out.

    One that this installation calls is called within seconds. Raises NotPermitted or InvalidInput.
    """
    require_role(actor, Role.OPERATOR, _CONFIGURE)
    check_factory(factory)
    rows = RemoteFactory.objects.filter(pk=factory.pk)
    was_called = rows.exclude(url="").exists()
    save_audited(factory, target=target_of(factory), actor=actor, reason=reason, fields=_CONFIGURED)
    # Whatever went wrong before may be mended now.
    rows.update(next_at=None)
    if was_called != bool(factory.url):
        # The token of one direction is worth nothing in the other.
        rows.update(token_sha256="", token_at=None, failures=0, error="")


@transaction.atomic
def renew_token(factory: RemoteFactory, *, actor: Actor, reason: str) -> str:
    """A new token, which nobody can read again; the old one is worth nothing from now on.

    Whoever calls with it first is the factory from then on. Raises NotPermitted, ReasonRequired,
    and Conflict for one that this installation calls.
    """
    require_role(actor, Role.OPERATOR, _CONFIGURE)
    if not reason:
        raise ReasonRequired(event="new token")
    if factory.url:
        raise Conflict(
            f"This installation calls the factory {factory.name}: its token is made there, and is "
            "a file here."
        )
    token = new_token()
    _set_token(factory, digest(token), "renew token of remote factory", actor, reason)
    return token


@transaction.atomic
def revoke_token(factory: RemoteFactory, *, actor: Actor, reason: str) -> None:
    """End the token of a factory: its calls are refused. Raises NotPermitted, ReasonRequired."""
    require_role(actor, Role.OPERATOR, _CONFIGURE)
    if not reason:
        raise ReasonRequired(event="revoke token")
    _set_token(factory, "", "revoke token of remote factory", actor, reason)


def _set_token(factory: RemoteFactory, stored: str, action: str, actor: Actor, reason: str) -> None:
    row = RemoteFactory.objects.select_for_update().get(pk=factory.pk)
    row.token_sha256, row.instance = stored, None
    row.token_at = timezone.now() if stored else None
    row.save(update_fields=["token_sha256", "instance", "token_at"])
    record_action(action, target=target_of(factory), actor=actor, reason=reason)


def check_factory_deletion(factory: RemoteFactory) -> None:
    """Raise Conflict when pilots are ordered of the factory."""
    if kinds := kinds_that_forbid_deletion(factory):
        raise Conflict(
            f"There are {kinds} of the factory {factory.name}: it cannot be deleted. Switch it off "
            "instead."
        )


@transaction.atomic
def delete_factory(factory: RemoteFactory, *, actor: Actor, reason: str = "") -> None:
    """Delete a factory of which nothing is ordered. Raises NotPermitted or Conflict."""
    require_role(actor, Role.OPERATOR, _CONFIGURE)
    RemoteFactory.objects.select_for_update().filter(pk=factory.pk).first()
    check_factory_deletion(factory)
    record_action("delete remote factory", target=target_of(factory), actor=actor, reason=reason)
    factory.delete()


def target_of(factory: RemoteFactory) -> str:
    """Name of a factory in the audit trail."""
    return f"remote factory {factory.name}"


def authenticate_factory(name: str, token: str, *, now: datetime) -> RemoteFactory:
    """The factory of this name and token. Raises NotAuthenticated; a wrong token is noted."""
    factory = RemoteFactory.objects.filter(name=name[:_LONGEST_NAME]).first()
    if factory is None:
        raise NotAuthenticated
    what = ""
    if factory.url:
        what = "this installation calls it, and not the other way round"
    elif not is_token(token, factory.token_sha256):
        what = "its token is wrong" if factory.token_sha256 else "its token is revoked"
    if what:
        note_refusal(factory, f"a call in its name was refused: {what}", now)
        raise NotAuthenticated
    return factory


def use_token(factory: RemoteFactory, token: str) -> None:
    """Note the token with which a factory is called; with a new one any installation may answer."""
    stored = digest(token)
    if factory.token_sha256 != stored:
        factory.token_sha256, factory.instance = stored, None
        factory.token_at = timezone.now()
        factory.save(update_fields=["token_sha256", "instance", "token_at"])


def admit_factory(factory: RemoteFactory, instance: UUID, now: datetime) -> None:
    """Believe a factory that was authenticated; the first installation heard is the only one.

    Raises NotPermitted while it is switched off, and Conflict for another installation with its
    token: two that carry out the same orders would double all pilots.
    """
    if not factory.is_enabled:
        reason = f"the factory {factory.name} is switched off here"
        note_refusal(factory, reason, now)
        raise NotPermitted(reason)
    free = Q(instance=None) | Q(instance=instance)
    admitted = RemoteFactory.objects.filter(free, pk=factory.pk)
    if not admitted.update(instance=instance, seen_at=now):
        does = f"answers at {factory.url}" if factory.url else "calls"
        reason = (
            f"another installation {does} as the factory {factory.name}: give it a name of its "
            "own, or renew the token"
        )
        note_refusal(factory, reason, now)
        raise Conflict(reason)


def note_refusal(factory: RemoteFactory, reason: str, now: datetime) -> None:
    """Note why a call was refused, for the factory's page; at most every ten seconds."""
    lately = Q(refused_at__gt=now - _NOTED_EVERY)
    RemoteFactory.objects.filter(pk=factory.pk).exclude(lately).update(
        refused_at=now, refused_reason=reason
    )
