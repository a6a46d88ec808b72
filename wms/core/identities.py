"""Services and selectors of identities: the account that an issuer's subject is linked to.

An account is found by issuer and subject alone. Its owner links another one by logging in with it,
administrators link any; both take links away. Whoever logs in at a provider for the first time gets
an account of their own (`wms.accounting.entering`).
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.errors import (
    AccountOff,
    Conflict,
    InvalidInput,
    NotFound,
    ReasonRequired,
    SubjectUnknown,
)
from wms.core.identity_models import Identity, NamedSubject
from wms.core.models import ApiToken, Role, User
from wms.core.policy import has_role, require_role
from wms.core.tokens import revoke_tokens
from wms.core.transitions import Applied

_LAST_USED_STEP = timedelta(minutes=1)
_LONGEST_SUBJECT, _LONGEST_ISSUER = 255, 500


def checked_subject(subject: object) -> str:
    """Subject as it can be kept. Raises InvalidInput."""
    if not isinstance(subject, str) or not subject.strip() or len(subject) > _LONGEST_SUBJECT:
        raise InvalidInput.of("is no text of 1 to 255 characters", field="subject")
    if not subject.isprintable():
        raise InvalidInput.of("has characters that cannot be shown", field="subject")
    return subject


def checked_issuer(issuer: str) -> str:
    """Address of an issuer as it can be kept. Raises InvalidInput."""
    try:
        parts = urlsplit(issuer)
    except ValueError:
        parts = urlsplit("")
    is_address = parts.scheme in {"http", "https"} and bool(parts.hostname)
    if not is_address or len(issuer) > _LONGEST_ISSUER or not issuer.isprintable():
        raise InvalidInput.of(
            f"is no address as an issuer writes its own, of at most {_LONGEST_ISSUER} characters",
            field="issuer",
        )
    return issuer


def identity_of(issuer: str, subject: str) -> Identity | None:
    """The identity with its account, if there is one."""
    return Identity.objects.filter(issuer=issuer, subject=subject).select_related("user").first()


def identities_of(user: User) -> QuerySet[Identity]:
    """Identities of an account, the first linked first."""
    return Identity.objects.filter(user=user).order_by("pk")


def named_subjects_of(user: User) -> QuerySet[NamedSubject]:
    """Subjects that have used the account because the settings name it, with their last use."""
    return NamedSubject.objects.filter(user=user).order_by("pk")


def visible_identities(user: User) -> QuerySet[Identity]:
    """The identities that the user may see: the own ones, and for admins those of all."""
    rows = Identity.objects.select_related("user")
    if not user.is_active:
        return rows.none()
    return rows if has_role(user, Role.ADMIN) else rows.filter(user=user)


def find_identity(user: User, identity_id: int) -> Identity:
    """One identity that the user may see. Raises NotFound."""
    found = visible_identities(user).filter(pk=identity_id).first()
    if found is None:
        raise NotFound(f"There is no identity {identity_id}, or you may not see it.")
    return found


def find_own_identity(user: User, identity_id: int) -> Identity:
    """One identity of the user. Raises NotFound."""
    found = identities_of(user).filter(pk=identity_id).first()
    if found is None:
        raise NotFound(f"You have no identity {identity_id}.")
    return found


def account_of(
    issuer: str, subject: str, *, username: str = "", now: datetime, address: str | None = None
) -> User:
    """Account of a signed token's subject: the configured `username`, else the linked one.

    Notes the use. Raises SubjectUnknown or AccountOff.
    """
    named = User.objects.filter(username=username).first() if username else None
    linked = identity_of(issuer, subject) if named is None else None
    user = named or (linked.user if linked is not None else None)
    if user is None:
        raise SubjectUnknown(
            f"No account belongs to {subject} of {issuer}: log in once on the portal's page by "
            "this provider, or ask an administrator."
        )
    if not user.is_active:
        raise AccountOff(f"The account {user.get_username()} is switched off.")
    if linked is not None:
        note_use(linked, now=now, address=address)
    else:
        _note_named(user, issuer, subject, now=now, address=address)
    return user


def note_use(identity: Identity, *, now: datetime, address: str | None) -> None:
    """Keep when and from where an identity was used, to the minute."""
    last = identity.last_used_at
    if last is not None and now - last <= _LAST_USED_STEP:
        return
    # Of many uses at once the first one writes.
    unnoted = Q(last_used_at=None) | Q(last_used_at__lt=now - _LAST_USED_STEP)
    rows = Identity.objects.filter(unnoted, pk=identity.pk)
    rows.update(last_used_at=now, last_used_from=address)


def _note_named(
    user: User, issuer: str, subject: str, *, now: datetime, address: str | None
) -> None:
    kept = NamedSubject.objects.filter(issuer=issuer, subject=subject, user=user)
    if kept.filter(last_used_at__gte=now - _LAST_USED_STEP).exists():
        return
    row = NamedSubject(
        user=user, issuer=issuer, subject=subject, last_used_at=now, last_used_from=address
    )
    NamedSubject.objects.bulk_create(
        [row],
        update_conflicts=True,
        unique_fields=["issuer", "subject"],
        update_fields=["user", "last_used_at", "last_used_from"],
    )


@transaction.atomic
def link_identity(
    user: User, issuer: str, subject: str, *, actor: Actor, reason: str = ""
) -> Identity:
    """Link a provider's subject to an account, by hand of an administrator.

    Raises NotPermitted, ReasonRequired, InvalidInput, or Conflict where an account has it.
    """
    require_role(actor, Role.ADMIN, "manage accounts")
    if actor.user is not None and not reason.strip():
        raise ReasonRequired("link identity")
    check_link(user, issuer, subject)
    try:
        with transaction.atomic():
            made = Identity.objects.create(
                user=user, issuer=issuer, subject=subject, linked_by=actor.name
            )
    except IntegrityError:
        raise _taken(issuer, subject) from None
    _record("link identity", made, actor, reason)
    return made


def check_link(user: User, issuer: str, subject: str) -> None:
    """Raise InvalidInput or Conflict where this cannot be linked to the account."""
    checked_issuer(issuer)
    checked_subject(subject)
    if user.is_service:
        raise Conflict(f"{user.username} is the account of a service: it has no login.")
    if identity_of(issuer, subject) is not None:
        raise _taken(issuer, subject)


def _taken(issuer: str, subject: str) -> Conflict:
    return Conflict(f"{subject} of {issuer} is linked to an account already.")


@transaction.atomic
def link_own_identity(
    user_id: int, issuer: str, subject: str, *, now: datetime, address: str | None = None
) -> Identity:
    """Link a subject to the account of the person who has just logged in as it at its issuer.

    One that is linked to this account stays so. Raises AccountOff, InvalidInput, or Conflict where
    it is another's.
    """
    checked_subject(subject)
    user = User.objects.select_for_update(no_key=True).get(pk=user_id)
    if not user.is_active:
        raise AccountOff(f"The account {user.username} is switched off: ask an administrator.")
    actor = Actor.person(user)
    found, is_new = Identity.objects.get_or_create(
        issuer=issuer, subject=subject, defaults={"user": user, "linked_by": actor.name}
    )
    if found.user_id != user.pk:
        raise Conflict(
            f"{subject} of {issuer} is linked to another account: whoever has that one unlinks it "
            "there, or an administrator does."
        )
    if is_new:
        _record("link identity", found, actor, "")
    note_use(found, now=now, address=address)
    return found


@transaction.atomic
def unlink_identities(
    identity_ids: Collection[int],
    *,
    actor: Actor,
    login_issuers: Collection[str] = (),
    reason: str = "",
) -> Applied:
    """Take links away, and end the tokens that were made by them; those that are not are skipped.

    Nobody unlinks what they would log in by last, where `login_issuers` are those by which one
    may. Raises NotPermitted, Conflict, and ReasonRequired for the identities of others.
    """
    owners = Identity.objects.filter(pk__in=identity_ids).values("user_id")
    # Of two who unlink at once, the second one sees what is left. A login that holds the identity
    # refers to the account when it ends: its key stays free.
    list(User.objects.filter(pk__in=owners).order_by("pk").select_for_update(no_key=True))
    rows = list(
        Identity.objects.filter(pk__in=identity_ids)
        .select_related("user")
        .order_by("pk")
        .select_for_update(of=("self",))
    )
    ids, own = [row.pk for row in rows], None if actor.user is None else actor.user.pk
    if any(row.user_id != own for row in rows):
        require_role(actor, Role.ADMIN, "manage accounts")
        if actor.user is not None and not reason.strip():
            raise ReasonRequired("unlink identity")
    if actor.user is not None and any(row.user_id == own for row in rows):
        _check_another_way(actor.user, ids, login_issuers)
    made = list(
        ApiToken.objects.filter(login__in=ids, revoked_at=None).values_list("pk", flat=True)
    )
    if made:
        revoke_tokens(made, actor=actor, reason=reason or "the identity was unlinked")
    Identity.objects.filter(pk__in=ids).delete()
    for row in rows:
        _record("unlink identity", row, actor, reason)
    return Applied(changed=ids, skipped=sorted(set(identity_ids) - set(ids)))


def _check_another_way(user: User, leaving: Collection[int], issuers: Collection[str]) -> None:
    """Raise Conflict unless the person can log in without the identities that leave."""
    if user.has_usable_password():
        return
    others = Identity.objects.filter(user=user, issuer__in=issuers).exclude(pk__in=leaving)
    if not others.exists():
        raise Conflict(
            "This is the last way to log in to your account, which has no password: link another "
            "identity before, or ask an administrator."
        )


def unlink_identity(issuer: str, subject: str, *, actor: Actor, reason: str = "") -> User:
    """Take a link away by its issuer and subject; the account that had it. Raises NotFound."""
    found = identity_of(issuer, subject)
    if found is None:
        raise NotFound(f"No account is linked to {subject} of {issuer}.")
    unlink_identities([found.pk], actor=actor, reason=reason)
    return found.user


def _record(action: str, identity: Identity, actor: Actor, reason: str) -> None:
    record_action(
        action,
        target=f"user {identity.user.username}",
        actor=actor,
        reason=reason,
        facts={"issuer": identity.issuer, "subject": identity.subject},
    )
