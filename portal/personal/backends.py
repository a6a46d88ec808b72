"""Authentication backend: password with login throttle; user read with what every page needs.

One query reads the user with preferences, the number of unread notices, and the groups that decide
what the user may see.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.db.models import QuerySet
from django.http import HttpRequest

from portal.middleware.login_throttle import throttled_check
from wms.accounting.walls import with_groups
from wms.core.models import User
from wms.notices.selectors import count_unread, with_unread


@cache
def _users_of_requests() -> QuerySet[User]:
    """Users with all of that. Made once: to make it takes longer than to ask for a user."""
    return with_groups(with_unread(User.objects.select_related("preferences")))


class WithPreferences(ModelBackend):
    """Accounts with passwords.

    Every page needs preferences, the number of unread notices, and the groups that make walls: they
    take no further query.
    """

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **others: Any,
    ) -> User | None:
        """The user with this name and password. Raises TooManyWrongPasswords."""

        def check() -> User | None:
            found: User | None = super(WithPreferences, self).authenticate(
                request, username, password, **others
            )
            return found

        return check() if request is None else throttled_check(request, username or "", check)

    def get_user(self, user_id: int) -> User | None:
        """The user of a session, unless the account is switched off."""
        user = _users_of_requests().filter(pk=user_id).first()
        if user is None or not self.user_can_authenticate(user):
            return None
        # Only whole pages ask, and walls make it a long query.
        user.unread_notices = cache(partial(count_unread, user))
        return user
