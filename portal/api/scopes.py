"""Scopes that a token needs for a request: one table, by the name of the address.

To read needs `read`, to change what stands here. A name that is missing needs every scope, so that
a new address is closed to narrow tokens until it has its line. Which addresses a token reaches that
is limited to a frontend stands in `portal.api.frontend_tokens`.
"""

from __future__ import annotations

from collections.abc import Mapping

from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request

from portal.identity.foreign_tokens import ForeignToken
from wms.core.models import ApiToken, Scope
from wms.core.tokens import ScopedToken, require_scopes

#: Addresses that tell a program about itself, with any token.
OPEN_NAMES = frozenset({"login", "me", "version", "schema"})
_READ, _SUBMIT, _CONTROL = {Scope.READ}, {Scope.SUBMIT}, {Scope.CONTROL}
_SITE, _ADMIN = {Scope.SITE}, {Scope.ADMIN}
#: What posts, and changes nothing; what makes work; what steers it; what concerns sites and pilots;
#: what holds for all.
OF_WRITES: Mapping[str, set[Scope]] = {
    **dict.fromkeys(["explain", "dags-check", "jobs-check"], _READ),
    **dict.fromkeys(
        [
            "dags", "dags-follow", "dag-followed-log", "dag-rescue", "dag-grow",
            "dag-resubmit", "jobs",
            "cluster-rerun", "schedules", "schedule-run", "trials-check", "trials-dry-run",
            "trial-stop", "placements", "placement-credentials", "placement-credential",
            "uploads", "upload",
        ],
        _SUBMIT,
    ),
    "sites-yaml": _SITE | _ADMIN,
    # Also those of the action, which only the body tells (`require_scopes_of_bulk`).
    **dict.fromkeys(["bulk", "bulk-stop", "bulk-retry"], _CONTROL),
    **dict.fromkeys(
        [
            "filters", "filter", "notices-read", "subscriptions", "subscription",
            "campaign-deadline", "remarks",
        ],
        _CONTROL,
    ),
    **dict.fromkeys(["ads", "ad", "downtimes", "downtime", "downtimes-import"], _SITE),
    **dict.fromkeys(
        [
            "credentials", "credential", "frontends", "frontend", "frontend-entries",
            "frontend-entry", "quotas", "quota", "running-limits", "running-limit",
            "shared-limits", "shared-limit", "remote-factories", "remote-factory",
            "remote-factory-token", "remote-frontends", "remote-frontend", "remote-frontend-token",
            "task-queue-policy", "storages", "storage", "tokens", "token-revoke",
            "service-accounts", "service-account", "groups", "group", "limits", "concurrency-limit",
            "submitter", "identities", "identity", "archive-remove",
        ],
        _ADMIN,
    ),
}  # fmt: skip
#: Actions on one object, whose names begin so.
_OF_ACTIONS: Mapping[str, set[Scope]] = {
    **dict.fromkeys(
        ["dag-", "job-", "cluster-", "schedule-", "placement-", "logical-file-", "failure-"],
        _CONTROL,
    ),
    **dict.fromkeys(["site-", "queue-", "pilot-", "suspected-node-"], _SITE),
}


#: What a token of another issuer may do that is for cancelling only.
_CANCELS = frozenset({"dag-remove", "cluster-remove", "job-kill"})


def scopes_for(method: str, name: str) -> set[Scope]:
    """Scopes that a request needs, by its method and the name of its address."""
    if name in OPEN_NAMES:
        return set()
    if method in SAFE_METHODS:
        return _READ
    if name in OF_WRITES:
        return OF_WRITES[name]
    found = (scopes for begin, scopes in _OF_ACTIONS.items() if name.startswith(begin))
    return next(found, set(Scope))


def scopes_of(request: Request) -> set[Scope]:
    """Scopes that a request needs."""
    return scopes_for(request.method or "", name_of(request))


def check_scopes(token: ScopedToken, request: Request) -> None:
    """Raise ScopeMissing where the token does not reach as far as the request."""
    is_canceller = isinstance(token, ForeignToken) and token.may_cancel
    if is_canceller and name_of(request) in _CANCELS:
        return
    require_scopes(token, scopes_of(request))


def require_scopes_of_bulk(request: Request, list_name: str, action: str) -> None:
    """Raise ScopeMissing where the token may not do this with one object of the list."""
    if isinstance(request.auth, ApiToken | ForeignToken):
        name = f"{list_name.removesuffix('s')}-{action}".replace("_", "-")
        require_scopes(request.auth, scopes_for("POST", name))


def name_of(request: Request) -> str:
    """Name of the address that a request is sent to; empty for none."""
    match = request._request.resolver_match
    return match.url_name or "" if match is not None else ""
