"""Form to change one's own password, for the account page and the administration.

A wrong old password counts for the login throttle.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.forms import PasswordChangeForm
from django.http import HttpRequest

from portal.middleware.login_throttle import throttled_check
from wms.core.accounts import change_password
from wms.core.actors import Actor
from wms.core.models import User


class OwnPasswordForm(PasswordChangeForm):
    """New password for oneself. A wrong old one counts for the login throttle."""

    required_css_class = "required"

    def __init__(self, user: User, *args: Any, request: HttpRequest | None = None, **others: Any):
        """A form with data needs the request."""
        super().__init__(user, *args, **others)
        self._request = request

    def clean_old_password(self) -> str:
        """Return the old password, if it is right. Raises TooManyWrongPasswords."""
        assert self._request is not None
        username = self.user.get_username()
        found: str = throttled_check(self._request, username, super().clean_old_password)
        return found

    def save(self, commit: bool = True) -> User:
        """Store it with an audit entry."""
        actor = Actor.person(self.user)
        change_password(self.user, self.cleaned_data["new_password1"], actor=actor)
        return self.user
