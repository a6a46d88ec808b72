"""Who is logged in, read together with how pages look to them."""

from __future__ import annotations

from django.contrib.auth.backends import ModelBackend

from wms.core.models import User


class WithPreferences(ModelBackend):
    """Accounts with passwords; every page needs the preferences, so they cost no query more."""

    def get_user(self, user_id: int) -> User | None:
        """The user of a session, unless the account is switched off."""
        user = User.objects.select_related("preferences").filter(pk=user_id).first()
        return user if user is not None and self.user_can_authenticate(user) else None
