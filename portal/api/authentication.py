"""Token authentication of the REST API."""

from __future__ import annotations

from django.utils import timezone
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from wms.accounting.walls import told_of
from wms.core.errors import NotAuthenticated
from wms.core.models import User
from wms.core.tokens import authenticate_token


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Token plt_<prefix>_<secret>`; other schemes are left to other classes."""

    keyword = "Token"

    def authenticate(self, request: Request) -> tuple[User, str] | None:
        """Return the token's user; raise when a token was sent that is not good."""
        parts = get_authorization_header(request).split()
        if not parts or parts[0].lower() != self.keyword.lower().encode():
            return None
        if len(parts) != 2:
            raise AuthenticationFailed(
                f"Write the header as `Authorization: {self.keyword} <token>`."
            )
        text = parts[1].decode("ascii", errors="replace").replace("\0", "")
        try:
            return authenticate_token(text, now=timezone.now(), told=told_of("user")), text
        except NotAuthenticated as error:
            raise AuthenticationFailed(str(error)) from error

    def authenticate_header(self, request: Request) -> str:
        """Value of the WWW-Authenticate header of a 401."""
        return self.keyword
