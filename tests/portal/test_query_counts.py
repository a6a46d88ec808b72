"""No page and no endpoint asks the database more often when there is more to show."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import pytest
from django.db import transaction
from django.test import Client

from portal.web.dags import page as dag_page
from tests.portal.outcomes import plain_pages, unlogged_refusals
from tests.portal.routes import Route, routes
from tests.portal.world import World, grown, small_world
from tests.query_counts import (
    compare_growth,
    compare_with_baseline,
    is_rewritten,
    known_counts,
    statements_of,
)

__all__ = ["plain_pages", "unlogged_refusals"]

#: Addresses without a number of their own, each with the reason.
EXEMPT = {
    "health-live": "asks nobody",
    "metrics": "is kept for some seconds; test_metrics.py counts what it asks",
    "admin:login": "leads elsewhere",
    "admin:logout": "is posted to",
    "admin:autocomplete": "is not used by any form",
    "admin:view_on_site": "leads nowhere: no object has an address of its own there",
    "admin:accounting_submitter_add": "nobody may",
    "admin:dags_matchmakingpolicy_add": "nobody may",
    "admin:dags_matchmakingpolicy_changelist": "leads to the policy",
    "admin:taskqueues_taskqueue_add": "nobody may",
    "admin:taskqueues_taskqueuepolicy_add": "nobody may",
    "admin:taskqueues_taskqueuepolicy_changelist": "leads to the policy",
    "admin:jsi18n": "asks nobody",
    "api:schema": "asks nobody",
    "api:docs": "asks nobody",
    "api:dags-check": "is posted to",
    "api:dag-halt": "is posted to",
    "api:dag-prioritise": "is posted to",
    "api:dag-label": "is posted to",
    "api:cluster-label": "is posted to",
    "api:campaign-deadline": "is posted to",
    "web:campaign-deadline": "is posted to",
    "api:schedule-change": "is posted to",
    "api:schedule-pause": "is posted to",
    "api:schedule-resume": "is posted to",
    "api:schedule-remove": "is posted to",
    "api:schedule-run": "is posted to",
    "api:schedule-label": "is posted to",
    "api:schedule-prioritise": "is posted to",
    "web:steer-schedule": "is posted to",
    "api:dag-rescue": "is posted to",
    "api:dag-resubmit": "is posted to",
    "api:dag-nodes-rerun": "is posted to",
    "api:dag-nodes-mark": "is posted to",
    "api:dag-nodes-change": "is posted to",
    "api:dag-nodes-open-gate": "is posted to",
    "api:dag-nodes-close-gate": "is posted to",
    "api:placement-remove": "is posted to",
    "api:placement-retry": "is posted to",
    "api:placement-allocation-release": "is posted to",
    "web:retry-placement": "is posted to",
    "web:release-allocation": "is posted to",
    "web:forget-placement-credential": "is posted to",
    "api:logical-file-remove": "is posted to",
    "api:logical-file-forget": "is posted to",
    "web:remove-logical-file": "is posted to",
    "web:forget-replica": "is posted to",
    "api:placement-credential": "is deleted",
    "web:remove-placement": "is posted to",
    "api:dag-hold": "is posted to",
    "api:dag-grow": "is posted to",
    "api:dag-release": "is posted to",
    "api:dag-remove": "is posted to",
    "api:dag-rematch": "is posted to",
    "api:site-ban": "is posted to",
    "api:site-drain": "is posted to",
    "api:site-commission": "is posted to",
    "api:site-unban": "is posted to",
    "api:jobs-check": "is posted to",
    "api:cluster-hold": "is posted to",
    "api:cluster-release": "is posted to",
    "api:cluster-prioritise": "is posted to",
    "api:cluster-change": "is posted to",
    "api:cluster-limits": "is posted to",
    "api:cluster-rerun": "is posted to",
    "api:cluster-prolong-outputs": "is posted to",
    "api:cluster-remove": "is posted to",
    "web:steer-cluster": "is posted to",
    "web:cluster-job": "leads elsewhere",
    "api:job-kill": "is posted to",
    "api:job-peek": "is posted to",
    "api:job-stop-after": "is posted to",
    "api:downtimes-import": "is posted to",
    "api:queue-test-pilots": "is posted to",
    "web:test-queue": "is posted to",
    "api:queue-connection-tests": "is posted to",
    "web:connect-queue": "is posted to",
    "api:pilot-drain": "is posted to",
    "api:pilot-remove": "is posted to",
    "api:suspected-node-clear": "is posted to",
    "api:bulk-stop": "is posted to",
    "api:trial-stop": "is posted to",
    "api:archive-remove": "is posted to",
    "web:remove-archive": "is posted to",
    "api:dag-archive": "the DAG there has not ended",
    "api:trials-check": "is posted to",
    "api:trials-dry-run": "is posted to",
    "api:dags-follow": "is posted to",
    "api:dag-followed-log": "no DAG there follows a log",
    "api:bulk-retry": "is posted to",
    "web:new-bulk": "is posted to",
    "web:confirm-bulk": "is posted to",
    "web:stop-bulk": "is posted to",
    "web:stop-trial": "is posted to",
    "web:retry-bulk": "is posted to",
    **{
        f"api:{kind}-{action}": "is posted to"
        for kind in ("dag", "site", "failure")
        for action in ("note", "acknowledge", "assign", "hand-back")
    },
    "web:write-log": "leads elsewhere",
    "web:wallboard": "is asked with a token of its own",
    "web:revoke-wallboard": "is posted to",
    "api:dag-compare": "is asked about two DAGs",
    "web:dag-compare-csv": "is asked about two DAGs",
    "api:failure-mute": "is posted to",
    "api:failure-resolve": "is posted to",
    "api:failure-reopen": "is posted to",
    "api:failure-categorise": "is posted to",
    "web:steer-error": "leads elsewhere",
    "web:steer-job": "is posted to",
    "web:drain-pilot": "is posted to",
    "web:remove-pilot": "is posted to",
    "api:ads": "is posted to",
    "api:explain": "is posted to",
    "web:login": "leads elsewhere for who is logged in",
    "web:openid": "leads to a provider",
    "web:openid-logout": "leads to a provider",
    "web:openid-callback": "is where a provider sends to",
    "web:logout": "is posted to",
    "web:steer": "is posted to",
    "web:save-filter": "is posted to",
    "web:change-filter": "is posted to",
    "web:remove-filter": "is posted to",
    "web:columns": "is posted to",
    "web:preferences": "is posted to",
    "web:tell": "is posted to",
    "web:read-notices": "is posted to",
    "web:add-token": "is posted to",
    "web:revoke-token": "is posted to",
    "web:link-identity": "is posted to",
    "web:unlink-identity": "is posted to",
    "web:password": "is posted to",
    "web:start-filter": "is posted to",
    "web:subscribe": "is posted to",
    "web:unsubscribe": "is posted to",
    "web:add-channel": "is posted to",
    "web:change-channel": "is posted to",
    "api:notices-read": "is posted to",
    "api:subscription": "is deleted",
    "api:upload": "is its owner's alone",
    "api:token-revoke": "is posted to",
    "api:remote-factory-token": "is posted to",
    "api:remote-frontend-token": "is posted to",
    "factory_api:exchange": "is posted to",
    "factory_api:report": "is posted to",
    "factory_api:orders": "is posted to",
    "web:steer-site": "is posted to",
    "web:change-downtime": "is posted to",
    "web:cancel-downtime": "is posted to",
    "web:clear-node": "is posted to",
}
#: What must be asked for.
QUERIES = {
    "api:history": {"series": ["jobs.running", "jobs.waiting"]},
    "web:explain": {"site": ["UW"]},
    "web:what-if": {"site": ["UW"], "site_change": ["MaxMatches = 9"]},
    "web:account": {"tab": ["notifications"]},
    "api:dag-graph-changes": {"since": ["0-0"]},
    "web:graph-changes": {"since": ["0-0"]},
    "web:graph-names": {"at": ["0"]},
}


#: Pages of which each tab has a number of its own.
TABS = {
    "web:dag": [name for name in dag_page.TABS if name != "overview"],
    "web:account": ["tokens", "identities"],
}


def _measured_routes() -> list[Route]:
    return [
        route
        for route in routes()
        if route.name not in EXEMPT
        and not route.name.startswith(("pilot_api:", "admin:<"))
        and not route.name.endswith("_delete")
        and route.name != "admin:core_auditentry_add"
    ]


def _measure(
    world: World, client: Client, known: Mapping[str, int], wanted: Collection[str] | None = None
) -> dict[str, list[str]]:
    """The statements of each address; one with another number than known is asked twice.

    The first time reads what is then kept in memory.
    """
    measured = {}
    for name, address, query in _asked(world):
        if wanted is not None and name not in wanted:
            continue

        def get(address: str = address, query: dict[str, list[str]] = query) -> None:
            answer = client.get(address, query)
            assert answer.status_code in {200, 503}, (address, answer.status_code)
            if answer.streaming:
                b"".join(answer.streaming_content)

        measured[name] = statements_of(get)
        if len(measured[name]) != known.get(name):
            measured[name] = statements_of(get)
    return measured


def _asked(world: World) -> Iterator[tuple[str, str, dict[str, list[str]]]]:
    for route in _measured_routes():
        address = world.address(route)
        yield route.name, address, QUERIES.get(route.name, {})
        for tab in TABS.get(route.name, ()):
            yield f"{route.name} {tab}", address, {"tab": [tab]}


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.usefixtures("plain_pages")
def test_the_number_of_queries_is_the_known_one_however_many_rows(db: None) -> None:
    """What has its known number with many rows need not be asked with few."""
    world, client = small_world(), Client()
    client.force_login(world.people.ada)
    known = {} if is_rewritten() else known_counts()

    with transaction.atomic():
        many = _measure(grown(world, 4), client, known)
        transaction.set_rollback(True)
    other = {name for name, sent in many.items() if len(sent) != known.get(name)}
    few = _measure(world, client, known, other)

    trouble = compare_growth(few, many) + compare_with_baseline({**many, **few})
    assert not trouble, "\n\n".join(trouble)
