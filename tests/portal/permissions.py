"""Permissions by route and role: the tables that the tests of permissions go by.

An outcome is one letter: `o` let in, `L` sent to the login or told to authenticate, `f` forbidden,
`m` method not allowed, `n` not found, `b` bad request, `c` conflict, `u` unavailable. A rule has
one for each of ROLES. The first name that fits a route decides.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from tests.portal.routes import Route

#: Alice owns the DAG; Bob is another user.
ROLES = ("anonymous", "vera", "bob", "alice", "sam", "olga", "ada")

OPEN = "ooooooo"
READ = "Loooooo"
SUBMIT = "Lfooooo"
STEER = "Lffoooo"
OPERATE = "Lffffoo"
ADMINISTER = "Lfffffo"
NOBODY = "Lffffff"
SHIFT = "Lfffooo"
POSTED_TO = "Lmmmmmm"
NO_GET = "mmmmmmm"
#: Alice's own tokens, subscriptions and ways to be told: nobody else knows of them.
MINE = "Lnnonnn"
#: What Alice shares: hers, and that of operators.
OWN = "Lffofoo"
#: Alice's bulk operations: users see their own ones only.
SEEN = "Lnnoooo"
#: What only operators know of.
SECRET = "Lnnnnoo"
#: Alice's token: hers, and those of all are the administrators'.
HERS = "Lnnonno"
#: What only administrators know of.
ADMINS = "Lnnnnno"
#: What belongs to a frontend that none of the users is in: shifters see all, operators change it.
WALLED = "Lnnnooo"
WALLED_OFF = "Lnnnfoo"

GET = {
    "health-ready": "uuuuuuu",  # no control loop has run in a test
    "health-live": OPEN,
    "metrics": SHIFT,
    "web:login": OPEN,
    "web:openid*": "nnnnnnn",  # tests have no provider unless they start one
    "web:problems": OPEN,
    "web:problem": OPEN,
    "web:logout": NO_GET,
    "web:steer": READ,  # leads to the DAG and changes nothing
    "web:wallboard": "LLLLLLL",  # by a token of its own
    "web:wallboards": SHIFT,
    "web:revoke-wallboard": "Lfffnnn",  # the token is none of a wallboard
    "web:dag-compare-csv": "Lbbbbbb",  # asked without another DAG
    "api:dag-compare": "Lbbbbbb",
    "web:dag-limits": STEER,
    "web:dag-grow": STEER,
    "web:change-schedule": STEER,
    "web:steer-nodes": STEER,
    "web:graph-changes": "Lbbbbbb",  # asked without naming a version
    "web:retry-placement": READ,
    "web:forget-placement-credential": MINE,
    "web:remove-placement": READ,  # leads to the request and changes nothing
    "web:allocation": SEEN,
    "web:release-allocation": SEEN,  # leads to the allocation and changes nothing
    "web:remove-logical-file": READ,  # leads to the file and changes nothing
    "web:forget-replica": READ,
    "web:save-filter": NO_GET,
    "web:change-filter": NO_GET,
    "web:remove-filter": NO_GET,
    "web:columns": NO_GET,
    "web:campaign-deadline": NO_GET,
    "web:write-log": READ,  # leads to the log and changes nothing
    "web:preferences": NO_GET,
    "web:tell": NO_GET,
    "web:read-notices": NO_GET,
    "web:add-token": NO_GET,
    "web:revoke-token": NO_GET,
    "web:link-identity": NO_GET,
    "web:unlink-identity": NO_GET,
    "web:password": NO_GET,
    "web:start-filter": NO_GET,
    "web:subscribe": NO_GET,
    "web:unsubscribe": NO_GET,
    "web:add-channel": NO_GET,
    "web:change-channel": NO_GET,
    "api:login": OPEN,
    "api:notices-read": POSTED_TO,
    "api:remote-factory-token": POSTED_TO,
    "api:remote-frontend-token": POSTED_TO,
    "factory_api:*": NO_GET,
    "api:subscription": POSTED_TO,
    "web:new-downtime": SHIFT,
    "web:import-downtimes": SHIFT,
    "web:bulk-operation": SEEN,
    "web:confirm-bulk": SEEN,  # leads to the preview and changes nothing
    "web:archive": SECRET,
    "web:remove-archive": SECRET,  # leads to the archive and changes nothing
    "web:trial": SEEN,
    "web:stop-trial": SEEN,  # leads to the trial and changes nothing
    "web:cluster-job": "Lnnnnnn",  # asked without a number
    "web:frontend": WALLED,
    "web:*": READ,
    "api:docs": READ,
    "api:token": HERS,
    "api:token-revoke": POSTED_TO,
    "api:service-account": ADMINS,
    "api:identity": HERS,
    "api:credential": SECRET,
    "api:remote-frontend": WALLED,
    "api:frontend": WALLED,
    "api:frontend-standing": WALLED,
    "api:frontend-entry": WALLED,
    "api:jobs-check": POSTED_TO,
    "api:cluster-output-archive": READ,
    "api:cluster-jobs": READ,
    "api:cluster-faults": READ,
    "api:cluster-events": READ,
    "api:cluster-description": READ,
    "api:cluster-*": POSTED_TO,
    "api:sites-yaml": OPERATE,
    "api:dags-check": POSTED_TO,
    "api:dag-graph-changes": "Lbbbbbb",  # asked without naming a version
    "api:dag-halt": POSTED_TO,
    "api:dag-prioritise": POSTED_TO,
    "api:dag-label": POSTED_TO,
    "api:*-note": POSTED_TO,
    "api:*-acknowledge": POSTED_TO,
    "api:*-assign": POSTED_TO,
    "api:*-hand-back": POSTED_TO,
    "api:campaign-deadline": POSTED_TO,
    "api:schedule-runs": READ,
    "api:schedule-*": POSTED_TO,
    "api:dag-rescue": POSTED_TO,
    "api:dag-grow": POSTED_TO,
    "api:dag-resubmit": POSTED_TO,
    "api:dag-nodes-*": POSTED_TO,
    "api:placement-remove": POSTED_TO,
    "api:placement-retry": POSTED_TO,
    "api:placement-allocation-release": POSTED_TO,
    "api:logical-file-remove": POSTED_TO,
    "api:logical-file-forget": POSTED_TO,
    "api:placement-credential": POSTED_TO,
    "api:placement-feeder": OPERATE,
    "api:upload": MINE,
    "api:dag-hold": "Lmmmmmm",
    "api:dag-release": "Lmmmmmm",
    "api:dag-remove": "Lmmmmmm",
    "api:dag-rematch": "Lmmmmmm",
    "api:site-ban": POSTED_TO,
    "api:site-drain": POSTED_TO,
    "api:site-commission": POSTED_TO,
    "api:site-unban": POSTED_TO,
    "api:suspected-node-clear": POSTED_TO,
    "api:job-kill": POSTED_TO,
    "api:job-peek": POSTED_TO,
    "api:job-stop-after": POSTED_TO,
    "api:downtimes-import": POSTED_TO,
    "api:queue-test-pilots": POSTED_TO,
    "api:queue-connection-tests": POSTED_TO,
    "api:pilot-drain": POSTED_TO,
    "api:pilot-remove": POSTED_TO,
    "api:failure-*": POSTED_TO,
    "api:bulk-operation": SEEN,
    "api:bulk-items": SEEN,
    "api:bulk-stop": POSTED_TO,
    "api:bulk-retry": POSTED_TO,
    "api:archive": SECRET,
    "api:archive-file": SECRET,
    "api:archive-member*": SECRET,
    "api:archive-remove": POSTED_TO,
    "api:dag-archive": "Lcccccc",  # the DAG has not ended
    "api:trial": SEEN,
    "api:trial-stop": POSTED_TO,
    "api:trials-*": POSTED_TO,
    "api:dags-follow": POSTED_TO,
    "api:dag-followed-log": "Lnnnnnn",  # the DAG follows none
    "api:ads": POSTED_TO,
    "api:explain": POSTED_TO,
    "api:history": "Lbbbbbb",  # asked without naming a series
    "api:*": READ,
    "pilot_api:manifest": OPEN,
    "pilot_api:file": OPEN,
    "pilot_api:input-file": "LLLLLLL",
    "pilot_api:*": NO_GET,
    "admin:logout": "Lffffmm",
    "admin:self_test": ADMINISTER,
    "admin:core_user_*_delete": NOBODY,
    "admin:core_user_delete": NOBODY,
    "admin:core_user_*": ADMINISTER,
    "admin:core_identity_*": ADMINISTER,
    "admin:core_serviceaccount_delete": NOBODY,
    "admin:core_serviceaccount_*": ADMINISTER,
    "admin:pilots_nodecheck_*delete": NOBODY,
    "admin:pilots_nodecheck_*": ADMINISTER,
    "admin:core_auditentry_add": NOBODY,
    "admin:accounting_submitter_add": NOBODY,
    "admin:accounting_submitter_delete": NOBODY,
    "admin:accounting_*_delete": OPERATE,
    "admin:dags_matchmakingpolicy_add": NOBODY,
    "admin:taskqueues_*_add": NOBODY,
    "admin:jobs_runninglimit_delete": OPERATE,
    "admin:pilots_pilotlimit_delete": OPERATE,
    "admin:factories_remotefactory_delete": OPERATE,
    "admin:pilots_remotefrontend_delete": OPERATE,
    "admin:sites_frontendentry_delete": OPERATE,
    "admin:pilots_credential_delete": OPERATE,
    "admin:dags_sharedlimit_delete": OPERATE,
    "admin:placement_storage_delete": OPERATE,
    "admin:*_delete": NOBODY,
    "admin:autocomplete": NOBODY,
    "admin:view_on_site": "Lffffnn",
    "admin:<<*": OPERATE,
    "admin:<(*": "Lffffnn",
    "admin:*": OPERATE,
}

#: Requests that change something. All others must not be let through by any method but GET.
POST = {
    "api:dags": SUBMIT,
    "api:dag-hold": STEER,
    "api:dag-release": "Lffcccc",  # the DAG is not held
    "api:dag-remove": STEER,
    "api:dag-rematch": STEER,
    "api:dags-check": SUBMIT,
    "api:dag-halt": STEER,
    "api:dag-prioritise": STEER,
    "api:dag-label": STEER,
    "api:remarks": SHIFT,
    "web:write-log": SHIFT,
    "web:notes": STEER,
    "api:dag-note": STEER,
    "api:dag-acknowledge": STEER,
    "api:dag-assign": STEER,
    "api:dag-hand-back": "Lffcccc",  # nobody looks after the DAG
    "api:*-note": SHIFT,
    "api:*-acknowledge": SHIFT,
    "api:*-assign": SHIFT,
    "api:*-hand-back": "Lfffccc",  # nobody looks after it
    "api:cluster-label": STEER,
    "api:campaign-deadline": STEER,
    "web:campaign-deadline": STEER,
    "api:schedules": SUBMIT,
    "api:schedule-resume": "Lffcccc",  # the schedule is active
    "api:schedule-pause": STEER,
    "api:schedule-change": STEER,
    "web:change-schedule": STEER,
    "api:schedule-remove": STEER,
    "api:schedule-run": STEER,
    "api:schedule-label": STEER,
    "api:schedule-prioritise": STEER,
    "web:steer-schedule": STEER,
    "api:dag-rescue": "Lffcccc",  # the DAG has not ended
    "api:dag-limits": STEER,
    "api:dag-grow": STEER,
    "api:dag-resubmit": SUBMIT,
    "api:dag-nodes-open-gate": "Lfbbbbb",  # the node is no gate
    "api:dag-nodes-close-gate": "Lfbbbbb",  # the node is no gate
    "api:dag-nodes-*": "Lffbbbb",  # the node is under way
    "api:jobs": SUBMIT,
    "api:jobs-check": SUBMIT,
    "web:submit-jobs": SUBMIT,
    "api:cluster-prolong-outputs": STEER,
    "api:cluster-hold": "Lffcccc",  # the cluster was removed
    "api:cluster-release": "Lffcccc",  # the cluster was removed
    "api:cluster-prioritise": "Lffcccc",  # the cluster was removed
    "api:cluster-change": "Lffcccc",  # the cluster was removed
    "api:cluster-limits": "Lffcccc",  # the cluster was removed
    "api:cluster-rerun": STEER,
    "api:cluster-remove": "Lffcccc",  # the cluster was removed
    "web:steer-cluster": "Lffcccc",
    "api:placement-remove": STEER,
    "api:placement-allocation-release": SEEN,
    "api:placement-retry": "Lffcccc",  # the request waits
    "api:placements": SUBMIT,
    "api:placement-credentials": SUBMIT,
    "api:uploads": SUBMIT,
    "api:storages": OPERATE,
    "api:logical-file-remove": STEER,
    "api:logical-file-forget": STEER,
    "web:submit-placements": SUBMIT,
    "api:shared-limits": OPERATE,
    "api:site-ban": SHIFT,
    "api:site-drain": SHIFT,
    "api:site-commission": "Lfffccc",  # the site is open
    "api:site-unban": "Lfffccc",  # the site is open
    "api:job-kill": "Lffcccc",  # the job has ended
    "api:job-peek": "Lffcccc",
    "api:job-stop-after": "Lfffccc",
    "api:queue-test-pilots": SHIFT,
    "api:queue-connection-tests": SHIFT,
    "api:pilot-drain": SHIFT,
    "api:pilot-remove": SHIFT,
    "api:failure-mute": SHIFT,
    "api:failure-resolve": SHIFT,
    "api:failure-reopen": "Lfffccc",  # the group is active
    "api:failure-categorise": SHIFT,
    "api:site-downtimes": SHIFT,
    "api:suspected-node-clear": SHIFT,
    "api:ads": OPERATE,
    "api:running-limits": OPERATE,
    "api:quotas": OPERATE,
    "api:groups": OPERATE,
    "api:limits": OPERATE,
    "api:credentials": OPERATE,
    "api:remote-factories": OPERATE,
    "api:remote-factory-token": "Lffffbb",  # without a reason
    "api:remote-frontends": OPERATE,
    "api:remote-frontend-token": "Lnnnfbb",  # without a reason
    "api:frontends": OPERATE,
    "api:frontend-entries": OPERATE,
    "api:tokens": READ,  # everybody makes tokens of their own
    "api:token-revoke": HERS,
    "api:service-accounts": ADMINISTER,
    "api:identities": ADMINISTER,
    "api:explain": READ,
    "api:filters": READ,  # everybody keeps filters of their own
    "web:save-filter": READ,
    "web:change-filter": OWN,
    "web:remove-filter": OWN,
    "web:columns": READ,
    "web:preferences": READ,
    "web:tell": READ,
    "web:read-notices": READ,
    "web:add-token": READ,
    "web:link-identity": "Lnnnnnn",  # there is no provider
    "web:unlink-identity": MINE,
    "web:revoke-token": MINE,
    "web:password": READ,
    "web:start-filter": READ,
    "web:subscribe": READ,
    "web:unsubscribe": MINE,
    "web:add-channel": READ,
    "web:change-channel": MINE,
    "api:notices-read": READ,
    "api:subscriptions": READ,
    "web:submit": SUBMIT,
    "web:remove-archive": "Lnnnnbb",  # without a reason
    "api:archive-remove": "Lnnnnbb",
    "web:new-trial": SUBMIT,
    "web:stop-trial": "Lfnoooo",
    "web:steer": STEER,
    "web:new-bulk": SUBMIT,
    "web:confirm-bulk": "Lnnofff",  # only who made the preview
    "web:stop-bulk": "Lfnoooo",
    "web:retry-bulk": "Lfnoooo",
    "api:bulk": SUBMIT,
    "api:bulk-stop": "Lfnoooo",
    "api:bulk-retry": "Lfnoooo",
    "api:trials-check": SUBMIT,
    "api:trials-dry-run": SUBMIT,
    "api:trial-stop": "Lfnoooo",
    "api:dags-follow": SUBMIT,
    "api:dag-followed-log": "Lbbbbbb",  # asked without an offset
    "web:dag-limits": STEER,
    "web:dag-grow": STEER,
    "web:rescue": "Lffcccc",  # the DAG has not ended
    "web:dag-edit": SUBMIT,
    "web:steer-nodes": "Lffbbbb",  # the node is under way
    "web:remove-placement": STEER,
    "web:release-allocation": SEEN,
    "web:retry-placement": "Lffcccc",  # the request waits
    "web:placement-credentials": SUBMIT,
    "web:forget-placement-credential": "Lfnonnn",
    "web:remove-logical-file": STEER,
    "web:forget-replica": STEER,
    "web:steer-job": "Lffcccc",  # the job has ended
    "web:test-queue": SHIFT,
    "web:connect-queue": SHIFT,
    "web:drain-pilot": SHIFT,
    "web:remove-pilot": SHIFT,
    "web:steer-site": SHIFT,
    "web:clear-node": SHIFT,
    "web:import-downtimes": "Lfffbbb",  # without a document
    "api:downtimes-import": "Lfffbbb",  # neither a dry run nor a token
    "web:wallboards": SHIFT,
    "web:revoke-wallboard": "Lfffnnn",
    "web:new-downtime": SHIFT,
    "web:change-downtime": SHIFT,
    "web:cancel-downtime": SHIFT,
    "api:downtimes": SHIFT,
    "web:steer-error": SHIFT,
    "web:new-error-rule": OPERATE,
    "web:error-rule": OPERATE,
    "web:explain": READ,  # writes nothing
    "web:what-if": READ,  # writes nothing
    "web:login": OPEN,
    "web:logout": OPEN,
    "api:login": "bbbbbbb",  # what a provider gave is missing
    "pilot_api:register": "bbbbbbb",
    "pilot_api:unfit": "bbbbbbb",
    "pilot_api:checks": "LLLLLLL",
    "pilot_api:heartbeat": "LLLLLLL",
    "pilot_api:claim": "LLLLLLL",
    "pilot_api:report": "LLLLLLL",
    "pilot_api:stream": "LLLLLLL",
    "pilot_api:log": "LLLLLLL",
    "pilot_api:end": "LLLLLLL",
    "admin:logout": "Lffffoo",
    "admin:password_change": OPERATE,
    "admin:accounting_submitter_add": NOBODY,
    "admin:accounting_submitter_delete": NOBODY,
    "admin:accounting_*_add": OPERATE,
    "admin:accounting_*_change": OPERATE,
    "admin:accounting_*_delete": OPERATE,
    "admin:dags_matchmakingpolicy_change": OPERATE,
    "admin:taskqueues_taskqueuepolicy_change": OPERATE,
    "admin:taskqueues_taskqueue_change": NOBODY,
    "factory_api:*": "LLLLLLL",
    "admin:factories_remotefactory_add": OPERATE,
    "admin:factories_remotefactory_change": OPERATE,
    "admin:factories_remotefactory_delete": OPERATE,
    "admin:pilots_remotefrontend_add": OPERATE,
    "admin:pilots_remotefrontend_change": OPERATE,
    "admin:pilots_remotefrontend_delete": OPERATE,
    "admin:placement_storage_add": OPERATE,
    "admin:placement_storage_change": OPERATE,
    "admin:placement_storage_delete": OPERATE,
    "admin:sites_frontendentry_add": OPERATE,
    "admin:sites_frontendentry_change": OPERATE,
    "admin:sites_frontendentry_delete": OPERATE,
    "admin:pilots_credential_add": OPERATE,
    "admin:pilots_credential_change": OPERATE,
    "admin:pilots_credential_delete": OPERATE,
    "admin:jobs_runninglimit_add": OPERATE,
    "admin:pilots_pilotlimit_add": OPERATE,
    "admin:jobs_runninglimit_change": OPERATE,
    "admin:pilots_pilotlimit_change": OPERATE,
    "admin:jobs_runninglimit_delete": OPERATE,
    "admin:pilots_pilotlimit_delete": OPERATE,
    "admin:dags_sharedlimit_add": OPERATE,
    "admin:dags_sharedlimit_change": OPERATE,
    "admin:dags_sharedlimit_delete": OPERATE,
    "api:sites-yaml": "Lffffbb",  # neither a dry run nor a token
    "admin:sites_site_import": "Lffffbb",  # without a document
    "admin:sites_*_add": OPERATE,
    "admin:sites_*_change": OPERATE,
    "admin:*_changelist": OPERATE,
    "admin:pilots_nodecheck_add": ADMINISTER,
    "admin:pilots_nodecheck_change": ADMINISTER,
    "admin:core_user_add": ADMINISTER,
    "admin:core_user_change": ADMINISTER,
    "admin:core_identity_add": ADMINISTER,
    "admin:core_identity_delete": ADMINISTER,
    "admin:core_serviceaccount_add": ADMINISTER,
    "admin:core_serviceaccount_change": ADMINISTER,
    "admin:core_apitoken_add": OPERATE,
}
#: Lists of the administration that only administrators see.
POST = {
    "admin:core_user_changelist": ADMINISTER,
    "admin:core_serviceaccount_changelist": ADMINISTER,
    "admin:core_identity_changelist": ADMINISTER,
    "admin:pilots_nodecheck_changelist": ADMINISTER,
    **POST,
}

DELETE = {
    "api:identity": "Lnnfnnb",  # without a reason
    "api:group": OPERATE,
    "api:concurrency-limit": OPERATE,
    "api:subscription": MINE,
    "api:filter": OWN,
    "api:ad": OPERATE,
    "api:downtime": SHIFT,
    "api:quota": OPERATE,
    "api:remote-factory": OPERATE,
    "api:remote-factory-token": "Lffffbb",  # without a reason
    "api:remote-frontend": WALLED_OFF,
    "api:remote-frontend-token": "Lnnnfbb",  # without a reason
    "api:frontend": WALLED_OFF,
    "api:frontend-entry": WALLED_OFF,
    "api:running-limit": OPERATE,
    "api:shared-limit": OPERATE,
    "api:credential": SECRET,
    "api:placement-credential": "Lfnonnn",
    "api:upload": "Lfnonnn",
    "api:storage": OPERATE,
}
PUT = {
    "api:group": OPERATE,
    "api:concurrency-limit": OPERATE,
    "api:submitter": OPERATE,
    "api:service-account": ADMINS,
    "api:downtime": SHIFT,
    "api:filter": OWN,
    "api:quota": OPERATE,
    "api:remote-factory": OPERATE,
    "api:remote-frontend": WALLED_OFF,
    "api:frontend": WALLED_OFF,
    "api:frontend-entry": WALLED_OFF,
    "api:running-limit": OPERATE,
    "api:shared-limit": OPERATE,
    "api:credential": SECRET,
    "api:storage": OPERATE,
    "api:task-queue-policy": OPERATE,
}


def rule_of(rules: dict[str, str], route: Route) -> str | None:
    """What a table says about a route, if it does."""
    return next((rules[name] for name in rules if fnmatchcase(route.name, name)), None)
