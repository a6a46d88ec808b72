"""The address `/metrics` in Prometheus' text format, and who may read it.

Numbers of sites and of everybody's jobs are no matter of the whole world: read by who has the token
of the settings, who asks from a network that they name, and by shifters.
"""

from __future__ import annotations

import hmac
from http import HTTPStatus
from ipaddress import ip_address
from itertools import chain

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from portal.metrics import counts, storage
from portal.metrics.installation import Installation
from portal.middleware.login_throttle import client_address
from portal.shared.problem_details import problem_without_view
from wms.core.errors import NotAuthenticated
from wms.core.models import Role, User
from wms.core.policy import has_role
from wms.core.tokens import authenticate_token

#: One for the process, since it keeps its answers for some seconds.
INSTALLATION = Installation()


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Figures of the installation, and counts of all processes of this host."""
    refusal = _refusal(request)
    if refusal is not None:
        return refusal
    installation = CollectorRegistry()
    installation.register(INSTALLATION)
    registries = (installation, storage.registry_of_all(counts.REGISTRY))
    text = b"".join(chain(generate_latest(registry) for registry in registries))
    return HttpResponse(text, content_type=CONTENT_TYPE_PLAIN_0_0_4)


def _refusal(request: HttpRequest) -> HttpResponse | None:
    if _has_token(request) or _is_near(request):
        return None
    try:
        user = _user(request)
    except NotAuthenticated as error:
        return _unknown(str(error))
    if user is None:
        return _unknown("Send the token of PILOTAGE_METRICS_TOKEN, or that of a shifter.")
    if user.limited_to is not None:
        return problem_without_view(
            HTTPStatus.FORBIDDEN, "The token is limited to a frontend, and these are all figures."
        )
    if not has_role(user, Role.SHIFTER):
        return problem_without_view(
            HTTPStatus.FORBIDDEN, f"This needs the role {Role.SHIFTER.label}."
        )
    return None


def _unknown(detail: str) -> HttpResponse:
    answer = problem_without_view(HTTPStatus.UNAUTHORIZED, detail)
    answer["WWW-Authenticate"] = "Bearer"
    return answer


def _has_token(request: HttpRequest) -> bool:
    scheme, token = _credential(request)
    sent, expected = token.encode(errors="replace"), settings.METRICS_TOKENS
    return scheme == "bearer" and any(hmac.compare_digest(sent, each.encode()) for each in expected)


def _is_near(request: HttpRequest) -> bool:
    if not settings.METRICS_FROM:
        return False
    try:
        address = ip_address(client_address(request))
    except ValueError:
        return False
    return any(address in network for network in settings.METRICS_FROM)


def _user(request: HttpRequest) -> User | None:
    """User by login or by a token of the API. Raises NotAuthenticated for a wrong one."""
    scheme, token = _credential(request)
    if scheme == "token":
        return authenticate_token(token.replace("\0", ""), now=timezone.now())
    return request.user if isinstance(request.user, User) else None


def _credential(request: HttpRequest) -> tuple[str, str]:
    scheme, _, credential = request.headers.get("Authorization", "").partition(" ")
    return scheme.lower(), credential.strip()
