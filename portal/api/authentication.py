"""Authentication of the REST API by tokens: of people, in headers or, to read, in addresses; of
other issuers; and of payloads.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.utils import timezone
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request

from portal.api.frontend_tokens import check_frontend
from portal.api.scopes import check_scopes
from portal.identity.foreign_tokens import ForeignToken
from portal.middleware.login_throttle import ip_address_of
from portal.shared.address_tokens import token_in_address
from wms.accounting.walls import told_of
from wms.core.models import ApiToken, User
from wms.core.tokens import authenticated_token
from wms.dags.reading.dag_jobs import dag_id_of
from wms.jobs.models import Job
from wms.jobs.payload_tokens import BEGINNING, authenticate_payload

#: Of a JSON object in base64: signed tokens begin so, and the portal's own do not.
_SIGNED_BEGINNING = "eyJ"


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer plt_<prefix>_<secret>`, or a signed token; or `Token` before it.

    Tokens of payloads, and other schemes, are left to other classes.
    """

    keyword = "Bearer"
    keywords = frozenset({b"bearer", b"token"})

    def authenticate(self, request: Request) -> tuple[User, ApiToken | ForeignToken] | None:
        """Return the token's user, and the token; raise when a token was sent that is not good."""
        parts = get_authorization_header(request).split()
        if not parts or parts[0].lower() not in self.keywords:
            return None
        if parts[0].lower() == b"bearer" and parts[-1].startswith(BEGINNING.encode()):
            return None
        if len(parts) != 2:
            raise AuthenticationFailed(
                f"Write the header as `Authorization: {self.keyword} <token>`."
            )
        text = parts[1].decode("ascii", errors="replace").replace("\0", "")
        token = _token(text, ip_address_of(request._request))
        check_scopes(token, request)
        if isinstance(token, ApiToken):
            check_frontend(token, request)
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        """Value of the WWW-Authenticate header of a 401."""
        return self.keyword


def _token(text: str, address: str | None) -> ApiToken | ForeignToken:
    now = timezone.now()
    if text.startswith(_SIGNED_BEGINNING):
        # With it come the libraries of signatures, which no other request needs.
        from portal.identity.bearers import accepted

        return accepted(text, now=now, address=address)
    return authenticated_token(text, now=now, told=told_of("user"), address=address)


class AddressTokenAuthentication(BaseAuthentication):
    """`?token=plt_...`, for programs that know an address only; it may do nothing but read."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        """Return the token's user, and the token; raise when a token was sent that is not good."""
        token = token_in_address(
            request.query_params, now=timezone.now(), address=ip_address_of(request._request)
        )
        if token is None:
            return None
        check_scopes(token, request)
        check_frontend(token, request)
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        """Value of the WWW-Authenticate header of a 401."""
        return TokenAuthentication.keyword


#: What is asked below an address for something that the address does not name.
_OF_OTHERS_TOO = frozenset({"dag-compare"})


class PayloadAuthentication(BaseAuthentication):
    """`Authorization: Bearer plj_...`: the token that a payload has of its job's owner.

    It reads what addresses below its own job, that one's DAG and its cluster tell.
    """

    keyword = b"bearer"

    def authenticate(self, request: Request) -> tuple[User, str] | None:
        """Return the job's owner; raise when the token is not good, or not for this request."""
        parts = get_authorization_header(request).split()
        if len(parts) != 2 or parts[0].lower() != self.keyword:
            return None
        text = parts[1].decode("ascii", errors="replace")
        if not text.startswith(BEGINNING):
            return None
        caller = authenticate_payload(text, now=timezone.now())
        if request.method not in SAFE_METHODS:
            raise PermissionDenied("The token of a payload reads, and changes nothing.")
        match = request.resolver_match
        tells_of_others = match is not None and match.url_name in _OF_OTHERS_TOO
        if tells_of_others or not _is_about(caller.job, request.parser_context["kwargs"]):
            raise PermissionDenied(
                f"This token is for what belongs to job {caller.job.pk}: the job, its DAG and its "
                "cluster."
            )
        return caller.user, text


def _is_about(job: Job, named: Mapping[str, object]) -> bool:
    """Whether an address names the job, its DAG or its cluster, and no other job."""
    own = {"job_id": job.pk, "dag_id": dag_id_of(job), "cluster_id": job.cluster_id}
    given = {name: value for name, value in named.items() if name in own}
    return bool(given) and all(value and own[name] == value for name, value in given.items())
