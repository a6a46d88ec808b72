"""Services and selectors of identities: the account that an issuer's subject is linked to.

An account is found by issuer and subject alone. Administrators link and unlink by hand; whoever
logs in at a provider for the first time gets an account of their own (`wms.accounting.entering`).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.errors import AccountOff, Conflict, InvalidInput, NotFound, SubjectUnknown
from wms.core.identity_models import Identity
from wms.core.models import Role, User
from wms.core.policy import require_role
from wms.core.tokens import revoke_tokens

_LAST_USED_STEP = timedelta(minutes=1)
_LONGEST_SUBJECT = 255


def checked_subject(subject: object) -> str:
    """Subject as it can be kept. Raises InvalidInput."""
    if not isinstance(subject, str) or not subject.strip() or len(subject) > _LONGEST_SUBJECT:
        raise InvalidInput.of("is no text of 1 to 255 characters", field="subject")
    if not subject.isprintable():
        raise InvalidInput.of("has characters that cannot be shown", field="subject")
    return subject


def identity_of(issuer: str, subject: str) -> Identity | None:
    """The identity with its account, if there is one."""
    return Identity.objects.filter(issuer=issuer, subject=subject).select_related("user").first()


def identities_of(user: User) -> QuerySet[Identity]:
    """Identities of an account, the first linked first."""
    return Identity.objects.filter(user=user).order_by("pk")


def account_of(
    issuer: str, subject: str, *, username: str = "", now: datetime, address: str | None = None
) -> User:
    """Account of a signed token's subject: the linked one, else the configured `username`.

    Notes the use of the link. Raises SubjectUnknown or AccountOff.
    """
    found = identity_of(issuer, subject)
    user = User.objects.filter(username=username).first() if username else None
    if found is not None and user is None:
        user = found.user
        note_use(found, now=now, address=address)
    if user is None:
        raise SubjectUnknown(
            f"No account belongs to {subject} of {issuer}: log in once on the portal's page by "
            "this provider, or ask an administrator."
        )
    if not user.is_active:
        raise AccountOff(f"The account {user.get_username()} is switched off.")
    return user


def note_use(identity: Identity, *, now: datetime, address: str | None) -> None:
    """Keep when and from where an identity was used, to the minute."""
    unnoted = Q(last_used_at=None) | Q(last_used_at__lt=now - _LAST_USED_STEP)
    rows = Identity.objects.filter(unnoted, pk=identity.pk)
    rows.update(last_used_at=now, last_used_from=address)


@transaction.atomic
def link_identity(user: User, issuer: str, subject: str, *, actor: Actor, reason: str = "") -> None:
    """Link a provider's subject to an account. Raises NotPermitted, InvalidInput or Conflict."""
    require_role(actor, Role.ADMIN, "manage accounts")
    if user.is_service:
        raise Conflict(f"{user.username} is the account of a service: it has no login.")
    clean = checked_subject(subject)
    try:
        with transaction.atomic():
            Identity.objects.create(user=user, issuer=issuer, subject=clean)
    except IntegrityError:
        raise Conflict(f"{clean} of {issuer} is linked to an account already.") from None
    _record("link identity", user, issuer, clean, actor, reason)


@transaction.atomic
def unlink_identity(issuer: str, subject: str, *, actor: Actor, reason: str = "") -> User:
    """Take a link away, and end the tokens that were made by it; the account. Raises NotFound."""
    require_role(actor, Role.ADMIN, "manage accounts")
    found = Identity.objects.select_for_update().filter(issuer=issuer, subject=subject).first()
    if found is None:
        raise NotFound(f"No account is linked to {subject} of {issuer}.")
    made = list(found.tokens.values_list("pk", flat=True))
    if made:
        revoke_tokens(made, actor=actor, reason=reason or "the identity was unlinked")
    user = found.user
    found.delete()
    _record("unlink identity", user, issuer, subject, actor, reason)
    return user


def _record(action: str, user: User, issuer: str, subject: str, actor: Actor, reason: str) -> None:
    record_action(
        action,
        target=f"user {user.username}",
        actor=actor,
        reason=reason,
        facts={"issuer": issuer, "subject": subject},
    )
