"""Service that lets people in whom an identity provider knows: account, role and groups.

The account is that of issuer and subject. The first login makes one, with the rights that the
provider's claims give by the configuration, and with no more than the default otherwise. Each
further login sets anew what the configuration takes from claims, and leaves the rest alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog
from django.db import transaction

from wms.accounting.models import AccountingGroup
from wms.core.accounts import check_account
from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.database.locks import wait_for_locks
from wms.core.errors import AccountOff, Conflict
from wms.core.identities import checked_subject, identity_of, note_use
from wms.core.identity_models import Identity
from wms.core.models import Role, User
from wms.core.policy import enters_administration

log = structlog.get_logger(__name__)
_ACTOR = Actor.system("openid")
_NO_NAME = re.compile(r"[^A-Za-z0-9@.+_-]+")
_LONGEST_NAME = 140
_LOCK = "openid-account"


@dataclass(frozen=True, slots=True)
class Entrant:
    """Person as a provider tells of them, after the configuration has judged the claims.

    `role` is None where claims say nothing about roles. `managed_groups` are those of which the
    claims decide whether the person is a member; `groups` are those of which the person is.
    `email` is one that the provider has verified, where accounts may be found by it.
    """

    issuer: str
    subject: str
    username: str
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    role: Role | None = None
    default_role: Role = Role.VIEWER
    groups: frozenset[str] = frozenset()
    managed_groups: frozenset[str] = frozenset()
    links_by_email: bool = False


@transaction.atomic
def enter(person: Entrant, *, now: datetime, address: str | None = None) -> Identity:
    """Identity of the person with its account, both made if there are none; rights set anew.

    Raises AccountOff, or InvalidInput for a subject that is none.
    """
    checked_subject(person.subject)
    identity = identity_of(person.issuer, person.subject)
    if identity is None:
        # Two first logins at once, or two people of one name, come one after the other.
        wait_for_locks([_LOCK])
        identity = identity_of(person.issuer, person.subject) or _linked(person)
    user = User.objects.select_for_update().get(pk=identity.user_id)
    if not user.is_active:
        raise AccountOff(f"The account {user.username} is switched off: ask an administrator.")
    _refresh(user, person)
    identity.user = user
    note_use(identity, now=now, address=address)
    return identity


def _linked(person: Entrant) -> Identity:
    """A new identity, of a new account or of the one with the person's address of mail."""
    user = _found_by_email(person)
    is_new = user is None
    if user is None:
        user = User(
            username=_free_name(person.username),
            role=person.default_role if person.role is None else person.role,
            first_name=person.first_name[:150],
            last_name=person.last_name[:150],
            email=person.email,
        )
        user.is_staff = enters_administration(user)
        user.set_unusable_password()
        user.save()
    made = Identity.objects.create(
        user=user, issuer=person.issuer, subject=person.subject, linked_by=_ACTOR.name
    )
    record_action(
        "create account" if is_new else "link identity",
        target=f"user {user.username}",
        actor=_ACTOR,
        facts={"issuer": person.issuer, "subject": person.subject, "role": user.role},
    )
    return made


def _found_by_email(person: Entrant) -> User | None:
    """The only account with this address, where the configuration has accounts found so.

    Never an administrator's: an address is too little for that. Nor one that this provider knows
    as somebody else: addresses of those who left are given to others.
    """
    if not person.links_by_email or not person.email:
        return None
    people = User.objects.filter(is_service=False, is_superuser=False).exclude(role=Role.ADMIN)
    people = people.exclude(identities__issuer=person.issuer)
    found = list(people.filter(email__iexact=person.email)[:2])
    return found[0] if len(found) == 1 else None


def _free_name(proposed: str) -> str:
    """A name that no account has, in any case: another's is never taken over."""
    base = _NO_NAME.sub("-", proposed).strip("-.")[:_LONGEST_NAME] or "person"
    taken = {
        name.casefold()
        for name in User.objects.filter(username__istartswith=base).values_list(
            "username", flat=True
        )
    }
    names = (base, *(f"{base}-{number}" for number in range(2, len(taken) + 3)))
    return next(name for name in names if name.casefold() not in taken)


def _refresh(user: User, person: Entrant) -> None:
    """Set anew what claims decide: role, groups, name and address."""
    changes = _changed_role(user, person) | _changed_names(user, person)
    changes |= _changed_groups(user, person.groups, person.managed_groups)
    if not changes:
        return
    user.is_staff = enters_administration(user)
    user.save(update_fields=["role", "is_staff", "first_name", "last_name", "email"])
    record_action("change account", target=f"user {user.username}", actor=_ACTOR, facts=changes)


def _changed_role(user: User, person: Entrant) -> dict[str, Any]:
    if person.role is None or person.role == user.role:
        return {}
    old, user.role = user.role, person.role
    try:
        check_account(user)
    except Conflict as error:
        user.role = old
        log.warning("role_of_claims_not_given", user=user.username, reason=str(error))
        return {}
    return {"role": [old, str(person.role)]}


def _changed_names(user: User, person: Entrant) -> dict[str, Any]:
    told = {
        "first_name": person.first_name[:150],
        "last_name": person.last_name[:150],
        "email": person.email,
    }
    changes = {
        name: [getattr(user, name), value]
        for name, value in told.items()
        if value and getattr(user, name) != value
    }
    for name, (_, value) in changes.items():
        setattr(user, name, value)
    return changes


def _changed_groups(
    user: User, wanted: Collection[str], managed: Collection[str]
) -> dict[str, Any]:
    """Join and leave groups; only those that exist, and of which the claims decide."""
    if not managed:
        return {}
    groups = {group.name: group for group in AccountingGroup.objects.filter(name__in=managed)}
    if missing := sorted(set(wanted) - set(groups)):
        log.warning("groups_of_claims_do_not_exist", user=user.username, groups=missing)
    old = set(user.accounting_groups.values_list("name", flat=True))
    joined = [groups[name] for name in sorted(set(wanted) & set(groups) - old)]
    left = [groups[name] for name in sorted(old & set(groups) - set(wanted))]
    if not joined and not left:
        return {}
    user.accounting_groups.add(*joined)
    user.accounting_groups.remove(*left)
    new = (old | {group.name for group in joined}) - {group.name for group in left}
    return {"groups": [sorted(old), sorted(new)]}
