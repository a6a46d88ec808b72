"""Who is logged in, read together with how pages look to them and how much they have to read."""

from __future__ import annotations

from django.contrib.auth.backends import ModelBackend

from wms.core.models import User
from wms.notices.selectors import with_unread


class WithPreferences(ModelBackend):
    """Accounts with passwords.

    Every page needs the preferences and the number of unread notices: they cost no query more.
    """

    def get_user(self, user_id: int) -> User | None:
        """The user of a session, unless the account is switched off."""
        users = with_unread(User.objects.select_related("preferences"))
        user = users.filter(pk=user_id).first()
        return user if user is not None and self.user_can_authenticate(user) else None
