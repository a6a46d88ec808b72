"""Bodies of requests by route, for tests that walk through all addresses that take something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile

from tests import factories
from wms.dags.models import Dag


def _dag_parts(files: str) -> dict[str, Any]:
    return {
        "dag": SimpleUploadedFile("new.dag", b"JOB A job.sub\n"),
        files: [
            SimpleUploadedFile("job.sub", factories.SUBMIT_FILE.encode()),
            SimpleUploadedFile("run.sh", b"#!/bin/sh\n"),
        ],
    }


def _rule_form(name: str) -> dict[str, Any]:
    return {"position": 5, "name": name, "pattern": "x", "version": 1, "action": "save"}


#: A fragment of a DAG file that needs nothing else.
_FRAGMENT = "JOB Grown {\nexecutable = /bin/true\n}\n"
_CREDENTIAL = {"name": "new", "site": "Pool0of1", "kind": "htcondor-token"}
_DOWNTIME = {"start": "2100-01-01T00:00", "end": "2100-01-02T00:00", "reason": "look"}
#: The same as programs send it, with its zone.
_SENT_DOWNTIME = {
    name: f"{value}Z" if name in ("start", "end") else value for name, value in _DOWNTIME.items()
}


def _dag_ids() -> list[int]:
    return list(Dag.objects.values_list("pk", flat=True))


def _remote_frontend(name: str) -> dict[str, Any]:
    return {"frontend": name, "url": "https://new.example.org", "factory_name": "here"}


_STAGE = '[ dap_type = "stage"; src_url = "http://storage.example.org/x" ]'
#: Bodies without which a request is refused before its permission is looked at.
BODIES: dict[str, Callable[[], dict[str, Any]]] = {
    "api:dags": lambda: _dag_parts("file"),
    "api:dags-check": lambda: _dag_parts("file"),
    "api:trials-check": lambda: _dag_parts("file"),
    "api:trials-dry-run": lambda: _dag_parts("file"),
    "api:dags-follow": lambda: {**_dag_parts("file"), "log": "new.dag.nodes.log"},
    "web:submit": lambda: _dag_parts("files"),
    "web:new-trial": lambda: _dag_parts("files"),
    "api:jobs": lambda: {"executable": "/bin/true"},
    "api:jobs-check": lambda: {"executable": "/bin/true"},
    "web:submit-jobs": lambda: {"executable": "/bin/true"},
    "api:cluster-hold": lambda: {"reason": "look"},
    "api:cluster-prioritise": lambda: {"reason": "look", "priority": 2},
    "api:cluster-change": lambda: {"reason": "look", "memory_mb": 100},
    "api:cluster-limits": lambda: {"reason": "look", "max_idle": 5},
    "api:cluster-rerun": lambda: {"reason": "look"},
    "api:cluster-prolong-outputs": lambda: {"reason": "look", "days": 90},
    "api:cluster-remove": lambda: {"reason": "look"},
    "web:steer-cluster": lambda: {"reason": "look"},
    "api:filters": lambda: {"list": "jobs", "name": "new", "parameters": {"state": ["held"]}},
    "api:filter": lambda: {"name": "renamed"},
    "web:save-filter": lambda: {"list": "jobs", "name": "new", "query": "state=held"},
    "web:change-filter": lambda: {"name": "renamed", "is_shared": "on"},
    "web:columns": lambda: {"list": "jobs", "column": ["state"]},
    "web:preferences": lambda: {"theme": "dark"},
    "web:unlink-identity": lambda: {"password": factories.PASSWORD},
    "web:add-token": lambda: {"name": "nightly", "days": "30"},
    "web:password": lambda: {
        "old_password": factories.PASSWORD,
        "new_password1": "a purple staple",
        "new_password2": "a purple staple",
    },
    "web:start-filter": lambda: {"list": "jobs", "filter": ""},
    "web:subscribe": lambda: {"rule": "site"},
    "web:add-channel": lambda: {
        "kind": "webhook",
        "url": "https://hooks.example.org/new",
        "pace": "now",
    },
    "web:change-channel": lambda: {"action": "renew"},
    "api:subscriptions": lambda: {"rule": "site"},
    "api:dag-prioritise": lambda: {"reason": "look", "priority": 2},
    "api:dag-label": lambda: {"reason": "look", "add": ["new"]},
    "api:cluster-label": lambda: {"reason": "look", "add": ["new"]},
    "api:campaign-deadline": lambda: {"reason": "look", "deadline": "2100-01-01T00:00:00Z"},
    "web:campaign-deadline": lambda: {"reason": "look", "deadline": "2100-01-01T00:00"},
    "api:schedules": lambda: {**_dag_parts("file"), "name": "new", "cron": "0 6 * * mon"},
    "api:schedule-change": lambda: {"reason": "look", "cron": "0 7 * * mon"},
    "web:change-schedule": lambda: {"reason": "look", "cron": "0 7 * * mon"},
    "api:schedule-pause": lambda: {"reason": "look"},
    "api:schedule-resume": lambda: {"reason": "look"},
    "api:schedule-remove": lambda: {"reason": "look"},
    "api:schedule-run": lambda: {"reason": "look"},
    "api:schedule-label": lambda: {"reason": "look", "add": ["new"]},
    "api:schedule-prioritise": lambda: {"reason": "look", "priority": 2},
    "web:steer-schedule": lambda: {"reason": "look"},
    "api:dag-halt": lambda: {"reason": "look"},
    "api:dag-rescue": lambda: {"reason": "look"},
    "api:dag-resubmit": lambda: {"reason": "look", "resume": "afresh"},
    "api:dag-limits": lambda: {"reason": "look", "options": {"max_jobs": 5}},
    "api:dag-grow": lambda: {"reason": "look", "text": _FRAGMENT},
    "api:dag-nodes-rerun": lambda: {"reason": "look", "nodes": ["A1"]},
    "api:dag-nodes-mark": lambda: {"reason": "look", "nodes": ["A1"], "as_done": True},
    "api:dag-nodes-change": lambda: {"reason": "look", "nodes": ["A1"], "priority": 5},
    "api:dag-nodes-open-gate": lambda: {"reason": "look", "nodes": ["A1"]},
    "api:dag-nodes-close-gate": lambda: {"reason": "look", "nodes": ["A1"]},
    "api:placements": lambda: {"requests": _STAGE},
    "web:submit-placements": lambda: {"requests": _STAGE},
    "api:uploads": lambda: {"sha256": "1" * 64, "size_bytes": 7},
    "api:placement-credentials": lambda: {"endpoint": "https://s.example", "token": "abc"},
    "api:placement-remove": lambda: {"reason": "look"},
    "api:placement-retry": lambda: {"reason": "look"},
    "api:placement-allocation-release": lambda: {"reason": "look"},
    "web:placement-credentials": lambda: {"endpoint": "https://s.example", "token": "abc"},
    "web:retry-placement": lambda: {"reason": "look"},
    "web:release-allocation": lambda: {"reason": "look"},
    "api:logical-file-remove": lambda: {"reason": "look"},
    "api:logical-file-forget": lambda: {"reason": "look", "storage": "storage0"},
    "web:remove-logical-file": lambda: {"reason": "look"},
    "web:forget-replica": lambda: {"reason": "look", "storage": "storage0"},
    "api:storages": lambda: {"name": "new", "endpoints": ["s3://new/"]},
    "api:storage": lambda: {"name": "bare", "endpoints": ["s3://new/"]},
    "api:shared-limits": lambda: {"max_jobs": 1},
    "api:shared-limit": lambda: {"max_jobs": 1},
    "web:wallboards": lambda: {"name": "screen", "days": "1", "reason": "look"},
    "web:revoke-wallboard": lambda: {"reason": "look"},
    "web:dag-limits": lambda: {"reason": "look", "max_jobs": "5"},
    "web:dag-grow": lambda: {"reason": "look", "text": _FRAGMENT},
    "web:rescue": lambda: {"reason": "look"},
    "web:dag-edit": lambda: {"reason": "look"},
    "web:steer-nodes": lambda: {"reason": "look", "nodes": "A1"},
    "web:remove-placement": lambda: {"reason": "look"},
    "api:dag-hold": lambda: {"reason": "look"},
    "api:dag-remove": lambda: {"reason": "look"},
    "api:dag-rematch": lambda: {"reason": "look"},
    "api:job-kill": lambda: {"reason": "look"},
    "api:job-stop-after": lambda: {"reason": "look"},
    "api:queue-connection-tests": lambda: {"reason": "look"},
    "web:connect-queue": lambda: {"reason": "look"},
    "api:queue-test-pilots": lambda: {"reason": "look"},
    "web:test-queue": lambda: {"reason": "look"},
    "api:pilot-drain": lambda: {"reason": "look"},
    "api:pilot-remove": lambda: {"reason": "look"},
    "web:steer-job": lambda: {"reason": "look"},
    "web:drain-pilot": lambda: {"reason": "look"},
    "web:remove-pilot": lambda: {"reason": "look"},
    "api:failure-mute": lambda: {"reason": "look"},
    **{
        f"api:{kind}-{action}": lambda: {"reason": "look"}
        for kind in ("dag", "site", "failure")
        for action in ("note", "acknowledge", "assign", "hand-back")
    },
    "api:remarks": lambda: {"text": "look"},
    "web:write-log": lambda: {"text": "look"},
    "web:notes": lambda: {"text": "look", "event": "note"},
    "api:failure-resolve": lambda: {"reason": "look"},
    "api:failure-reopen": lambda: {"reason": "look"},
    "api:failure-categorise": lambda: {"reason": "look", "category": "data"},
    "web:steer-error": lambda: {"reason": "look"},
    "web:new-error-rule": lambda: _rule_form("New"),
    "web:error-rule": lambda: _rule_form("Changed"),
    "api:site-ban": lambda: {"reason": "look"},
    "api:site-drain": lambda: {"reason": "look"},
    "api:site-commission": lambda: {"reason": "look"},
    "api:site-unban": lambda: {"reason": "look"},
    "api:site-downtimes": lambda: {
        "start": "2100-01-01T00:00:00Z",
        "end": "2100-01-02T00:00:00Z",
        "reason": "look",
    },
    "api:ads": lambda: {"Name": "UW"},
    "api:groups": lambda: {"name": "new"},
    "api:group": lambda: {"name": "physics", "share": 7},
    "api:limits": lambda: {"name": "new", "maximum": 1},
    "api:concurrency-limit": lambda: {"name": "physics", "maximum": 7},
    "api:submitter": lambda: {"factor": 7},
    "api:quotas": lambda: {"user": "bob", "max_clusters": 1},
    "api:quota": lambda: {"max_clusters": 1},
    "api:credentials": lambda: _CREDENTIAL | {"frontend": "bare1", "secret": "e30.e30.c2ln"},
    "api:credential": lambda: (
        _CREDENTIAL | {"name": "token0of1", "valid_until": "2100-01-01T00:00:00Z"}
    ),
    "api:remote-factories": lambda: {"name": "new"},
    "api:remote-factory": lambda: {"name": "factory0of1", "sites": ["UW"]},
    "api:remote-frontends": lambda: _remote_frontend("bare1"),
    "api:remote-frontend": lambda: _remote_frontend("remote0of1"),
    "api:frontends": lambda: {"name": "new"},
    "api:frontend": lambda: {"name": "bare1", "description": "look"},
    "api:frontend-entries": lambda: {"frontend": "bare1", "queue": "UW/short"},
    "api:frontend-entry": lambda: {"frontend": "frontend0of1", "queue": "UW/short", "share": 2},
    "api:running-limits": lambda: {"maximum": 1},
    "api:running-limit": lambda: {"maximum": 1},
    "api:task-queue-policy": lambda: {
        "cpu_segments_s": [500],
        "law": "uniform",
        "default_share": 1,
        "uses_feedback": False,
        "max_correction": 3,
    },
    "api:tokens": lambda: {"name": "new"},
    "api:token-revoke": lambda: {"reason": "look"},
    "api:identities": lambda: {
        "user": "bob",
        "issuer": "https://iam.example.org/",
        "subject": "new",
        "reason": "look",
    },
    "api:service-accounts": lambda: {"username": "new-robot"},
    "api:service-account": lambda: {"username": "robot", "role": "viewer"},
    "api:explain": lambda: {"ad": "Requirements = true"},
    "web:steer": lambda: {"reason": "look"},
    "web:steer-site": lambda: {"reason": "look"},
    "web:clear-node": lambda: {"reason": "look"},
    "api:suspected-node-clear": lambda: {"reason": "look"},
    "web:new-downtime": lambda: {"site": ["UW"], **_DOWNTIME},
    "web:change-downtime": lambda: _DOWNTIME,
    "web:cancel-downtime": lambda: {"reason": "look"},
    "api:downtimes": lambda: {"sites": ["UW"], **_SENT_DOWNTIME},
    "api:downtime": lambda: _SENT_DOWNTIME,
    "web:explain": lambda: {"ad": "Requirements = true"},
    "web:what-if": lambda: {"ad": "Requirements = true"},
    "web:new-bulk": lambda: {"list": "dags", "action": "hold", "pick": _dag_ids()},
    "web:confirm-bulk": lambda: {"reason": "look"},
    "api:bulk": lambda: {"list": "dags", "action": "hold", "ids": _dag_ids(), "dry_run": True},
    "admin:core_identity_delete": lambda: {"post": "yes", "reason": "look"},
    "admin:accounting_accountinggroup_delete": lambda: {"post": "yes"},
    "admin:accounting_frontend_delete": lambda: {"post": "yes"},
    "admin:sites_frontendentry_delete": lambda: {"post": "yes"},
    "admin:pilots_credential_delete": lambda: {"post": "yes"},
    "admin:factories_remotefactory_delete": lambda: {"post": "yes"},
    "admin:pilots_remotefrontend_delete": lambda: {"post": "yes"},
    "admin:accounting_quota_delete": lambda: {"post": "yes"},
    "admin:accounting_concurrencylimit_delete": lambda: {"post": "yes"},
    "admin:jobs_runninglimit_delete": lambda: {"post": "yes"},
    "admin:pilots_pilotlimit_delete": lambda: {"post": "yes"},
    "admin:dags_sharedlimit_delete": lambda: {"post": "yes"},
    "admin:placement_storage_delete": lambda: {"post": "yes"},
}
