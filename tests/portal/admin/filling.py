"""Form data of the administration as a browser sends it: what is shown, and `TYPED` by route."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.test import Client

_TIMES = {
    "start_0": "2100-01-01", "start_1": "00:00:00", "end_0": "2100-01-02", "end_1": "00:00:00",
}  # fmt: skip
_DELETED = {"post": "yes"}
#: What is typed into the form of each route, by which something is changed.
TYPED: Mapping[str, Mapping[str, Any]] = {
    "admin:sites_site_add": {"name": "New"},
    "admin:sites_site_change": {"max_matches": "55"},
    "admin:sites_queue_add": {"name": "new", "element": "host"},
    "admin:sites_queue_change": {"max_pilots": "55"},
    "admin:sites_downtime_add": _TIMES,
    "admin:sites_downtime_change": _TIMES,
    "admin:accounting_frontend_add": {"name": "new"},
    "admin:accounting_frontend_change": {"description": "whom to ask"},
    "admin:accounting_frontend_delete": _DELETED,
    "admin:sites_frontendentry_add": {"share": "5"},
    "admin:sites_frontendentry_change": {"share": "55"},
    "admin:sites_frontendentry_delete": _DELETED,
    "admin:pilots_credential_add": {
        "name": "new",
        "kind": "htcondor-token",
        "secret": "e30.e30.c2ln",
        "is_enabled": "on",
    },
    "admin:pilots_credential_change": {"valid_until_0": "2100-01-01", "valid_until_1": "00:00:00"},
    "admin:pilots_credential_delete": _DELETED,
    "admin:factories_remotefactory_add": {"name": "new"},
    "admin:factories_remotefactory_change": {"description": "whom to ask"},
    "admin:factories_remotefactory_delete": _DELETED,
    "admin:pilots_remotefrontend_add": {
        "url": "https://new.example.org",
        "factory_name": "here",
    },
    "admin:pilots_remotefrontend_change": {"url": "https://new.example.org"},
    "admin:pilots_remotefrontend_delete": _DELETED,
    "admin:accounting_accountinggroup_add": {"name": "new", "quota": "0.5"},
    "admin:accounting_accountinggroup_change": {"quota": "0.55"},
    "admin:accounting_accountinggroup_delete": _DELETED,
    "admin:accounting_concurrencylimit_add": {"name": "new", "maximum": "5"},
    "admin:accounting_concurrencylimit_change": {"maximum": "55"},
    "admin:accounting_concurrencylimit_delete": _DELETED,
    "admin:accounting_quota_add": {"max_clusters": "5"},
    "admin:accounting_quota_change": {"max_clusters": "55"},
    "admin:accounting_quota_delete": _DELETED,
    "admin:accounting_submitter_change": {"factor": "55"},
    "admin:dags_matchmakingpolicy_change": {"avoid_s": "55"},
    "admin:dags_sharedlimit_add": {"category": "new", "max_jobs": "5"},
    "admin:dags_sharedlimit_change": {"max_jobs": "55"},
    "admin:dags_sharedlimit_delete": _DELETED,
    "admin:placement_storage_add": {
        "name": "new",
        "endpoints": "s3://new/",
        "is_enabled": "on",
    },
    "admin:placement_storage_change": {"max_transfers": "55"},
    "admin:placement_storage_delete": _DELETED,
    "admin:jobs_runninglimit_add": {"job_type": "new", "maximum": "5"},
    "admin:jobs_runninglimit_change": {"maximum": "55"},
    "admin:jobs_runninglimit_delete": _DELETED,
    "admin:pilots_pilotlimit_add": {"scope": "whole", "max_pilots": "5"},
    "admin:pilots_pilotlimit_change": {"max_pilots": "55"},
    "admin:pilots_pilotlimit_delete": _DELETED,
    "admin:pilots_nodecheck_add": {"name": "new", "script": "#!/bin/sh\n"},
    "admin:pilots_nodecheck_change": {"position": "55"},
    "admin:taskqueues_taskqueuepolicy_change": {"default_share": "55"},
    "admin:core_user_add": {"username": "new", "new_password": "a purple staple"},
    "admin:core_user_change": {"first_name": "Alice"},
    "admin:core_serviceaccount_add": {"username": "new-robot", "role": "user"},
    "admin:core_serviceaccount_change": {"email": "who@example.org"},
    "admin:core_apitoken_add": {"name": "new"},
    "admin:core_identity_add": {"issuer": "https://iam.example.org/", "subject": "new"},
    "admin:core_identity_delete": _DELETED,
}


def filled(client: Client, address: str, route: str) -> dict[str, Any]:
    """What the form of an address sends when that was typed into it, with a reason."""
    context = client.get(address).context_data
    form = context["adminform"].form if "adminform" in context else None
    shown = {name: form[name].value() for name in form.fields} if form else {}
    fields = {name: value for name, value in shown.items() if not _is_left_out(value)}
    is_reasoned = form is None or "reason" in form.fields
    return fields | ({"reason": "look"} if is_reasoned else {}) | dict(TYPED[route])


def _is_left_out(value: Any) -> bool:
    return value is None or value is False or value == ""
