"""Addresses that a token reaches which is limited to a frontend.

What is of a frontend - its DAGs, clusters, jobs, pilots, and what hangs on them - is found as ever
(`wms.accounting.walls`); what all frontends share - sites, queues, the history - is read and not
changed. All else is out of reach: accounts, tokens, limits, and what a person has
for oneself and keeps no note of a token, such as bulk operations, trials, uploads and filters. A
name that begins otherwise is so too: a new address is closed to such tokens until it has its line.
"""

from __future__ import annotations

from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request

from portal.api.scopes import OPEN_NAMES, name_of
from wms.core.errors import BeyondFrontend
from wms.core.models import ApiToken

#: What has a frontend, and what is done to it: lists, single ones, and addresses below these.
_OF_FRONTENDS = (
    "dag", "cluster", "job", "pilot", "schedule", "placement", "logical-file", "task-queue",
)  # fmt: skip
#: Among those what is one person's or all frontends'; and requests of no DAG, which are so too.
_NOT_OF_FRONTENDS = frozenset({
    "placement-credential", "placement-credentials", "task-queue-policy", "placements",
})  # fmt: skip
#: What is shown of each frontend apart, or is of all, and not changed by such a token.
_READ = frozenset({
    "frontends", "frontend", "frontend-standing", "frontend-entries", "frontend-entry", "groups",
    "group", "submitters", "submitter", "campaigns", "campaign", "labels", "failures", "failure",
    "efficiency", "events", "negotiation-cycles", "negotiation-cycle",
    "sites", "site", "site-events", "site-downtimes", "site-failed-checks", "site-suspected-nodes",
    "ads", "ad", "downtimes", "downtime", "downtimes-calendar", "queue-pressure",
    "queue-pressure-history", "storages", "storage", "task-queue-policy",
    "placements",
    "history", "history-panes", "history-pane", "history-figure", "history-report", "docs",
})  # fmt: skip
#: What is asked by a body, and changes nothing.
_ASKED = frozenset({"explain"})


def check_frontend(token: ApiToken, request: Request) -> None:
    """Raise BeyondFrontend where the request concerns more than the token's frontend."""
    name = name_of(request)
    if token.frontend_id is None or _is_reached(request.method or "", name):
        return
    raise BeyondFrontend(
        f"The token {token.prefix} is limited to the frontend {token.frontend_name}, and this "
        "concerns more than that."
    )


def _is_reached(method: str, name: str) -> bool:
    if name in OPEN_NAMES or name in _ASKED:
        return True
    if method in SAFE_METHODS and name in _READ:
        return True
    return name.startswith(_OF_FRONTENDS) and name not in _NOT_OF_FRONTENDS
