"""Sessions under a new secret key: signed anew, so that nobody has to log in again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.core import signing
from django.db.models import QuerySet
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from wms.core.key_rotation import Kept, KeyKind, Renewal
from wms.core.models import User


def _rows() -> QuerySet[Session]:
    return Session.objects.filter(expire_date__gt=timezone.now())


@sensitive_variables()
def _renew(sessions: Sequence[Session]) -> Renewal:
    """Sign sessions by the first key, and what they hold of their users' passwords.

    One that no key opens is over, and no loss.
    """
    store = SessionStore()
    contents = {each.pk: store.decode(each.session_data) for each in sessions}
    ids = {content[SESSION_KEY] for content in contents.values() if SESSION_KEY in content}
    users = {str(pk): user for pk, user in User.objects.in_bulk(map(int, ids)).items()}
    changed = []
    for session in sessions:
        content = contents[session.pk]
        if not content:
            continue
        user = users.get(content.get(SESSION_KEY, ""))
        is_renewed = user is not None and _with_new_hash(content, user)
        if is_renewed or not _is_signed_by_first(session.session_data, store.key_salt):
            session.session_data = store.encode(content)
            changed.append(session)
    return Renewal(changed)


def _with_new_hash(content: dict[str, Any], user: User) -> bool:
    told = content.get(HASH_SESSION_KEY)
    if all(told != former for former in user.get_session_auth_fallback_hash()):
        return False
    content[HASH_SESSION_KEY] = user.get_session_auth_hash()
    return True


def _is_signed_by_first(data: str, salt: str) -> bool:
    try:
        signing.TimestampSigner(salt=salt, fallback_keys=[]).unsign(data)
    except signing.BadSignature:
        return False
    return True


SESSIONS: Final = Kept(
    "sessions", KeyKind.SECRET, _rows, ("session_data",), _renew, can_be_lost=False
)
