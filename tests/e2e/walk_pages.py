"""Addresses of every page by the name of its screenshot, for the walk through them in a browser.

`pages_of` makes the objects that pages need; `admin_pages` has those of the administration.
`NO_PAGES` and `is_made_alike` tell which routes are left out.
"""

from __future__ import annotations

from django.contrib.admin import ModelAdmin
from django.test import RequestFactory
from django.urls import reverse
from django.utils import timezone

from portal.admin.admin_site import site as admin_site
from portal.web.dags.page import TABS
from tests.e2e.account_data import account_pages
from tests.e2e.archive_data import archive_pages
from tests.e2e.campaign_data import CAMPAIGN, campaign, schedules
from tests.e2e.cluster_data import clusters
from tests.e2e.gate_data import deciding_dag
from tests.e2e.pilot_data import tested_pilot
from tests.e2e.placement_data import placement_pages
from tests.e2e.production import Production, bulk_operations
from tests.e2e.trial_data import trial_pages
from tests.portal.furnishing import remarks
from wms.core.actors import Actor
from wms.core.models import AuditEntry
from wms.core.wallboards import make_wallboard
from wms.dags.models import NegotiationCycle, ScriptRun
from wms.failures.models import FailureGroup, FailureRule
from wms.jobs.models import RunningLimit
from wms.pilots.suspect_models import SuspectedNode
from wms.sites.downtimes.models import Downtime

#: Addresses of the portal that are no pages: what is posted to, files, data of drawings.
NO_PAGES = {
    "web:logout", "web:openid", "web:openid-callback",
    "web:openid-logout",
    "web:steer", "web:steer-cluster", "web:cluster-job", "web:steer-schedule",
    "web:campaign-deadline", "web:write-log", "web:revoke-wallboard",
    "web:steer-job", "web:steer-site", "web:steer-error",
    "web:test-queue", "web:connect-queue",
    "web:remove-placement", "web:drain-pilot", "web:remove-pilot",
    "web:retry-placement", "web:forget-placement-credential", "web:remove-logical-file",
    "web:forget-replica", "web:release-allocation", "web:efficiency-csv",
    "web:dag-compare-csv", "web:dag-file", "web:dag-picture", "web:dag-export",
    "web:attempt-stream", "web:attempt-file", "web:script-output", "web:pilot-log-file",
    "web:graph-places", "web:graph-states", "web:graph-changes", "web:graph-names",
    "web:graph-node", "web:history-data", "web:save-filter", "web:change-filter",
    "web:remove-filter", "web:columns", "web:preferences", "web:new-bulk", "web:confirm-bulk",
    "web:tell", "web:read-notices", "web:bell", "web:add-token", "web:revoke-token",
    "web:link-identity", "web:unlink-identity",
    "web:password", "web:start-filter", "web:subscribe", "web:unsubscribe", "web:add-channel",
    "web:change-channel", "web:stop-bulk", "web:stop-trial", "web:remove-archive",
    "web:retry-bulk",
    "web:change-downtime", "web:cancel-downtime", "web:clear-node", "admin:sites_site_export",
}  # fmt: skip
#: Of the administration: made of the same parts for every kind of thing, or leading elsewhere.
_ALIKE = (
    "_add", "_change", "_delete", "_history", "admin:login", "admin:logout", "admin:jsi18n",
    "admin:autocomplete", "admin:view_on_site", "admin:app_list", "admin:password_change",
    "admin:password_change_done",
)  # fmt: skip


def is_made_alike(name: str) -> bool:
    """True for an address of the administration of which one of a kind is looked at."""
    return name.startswith("admin:") and (name.endswith(_ALIKE) or name.startswith("admin:<"))


def pages_of(made: Production) -> dict[str, str]:
    """Every page that a person can open, by the name of its picture."""
    explain = reverse("web:explain")
    operations = bulk_operations(made.people)
    cluster, removed = clusters(made.people)
    campaign(made.people, made.failed, (cluster, removed))
    schedule = schedules(made.people.alice, made.running)
    deciding = deciding_dag(made.people.sam)
    remarks(made.people.sam, [made.failed], 2)
    script = ScriptRun.objects.filter(node__dag=made.rich).latest("pk")
    screen = make_wallboard(
        name="Control room", days=30, reason="shifts", actor=Actor.person(made.people.sam),
        now=timezone.now(),
    )  # fmt: skip
    return {
        "wallboard": f"{reverse('web:wallboard')}?token={screen.text}",
        "wallboards": reverse("web:wallboards"),
        "dashboard": reverse("web:dashboard"),
        "dags": reverse("web:dags"),
        "dags-filtered": reverse("web:dags") + "?state=held",
        "dags-none": reverse("web:dags") + "?name=nowhere",
        "dags-fault": reverse("web:dags") + "?state=lost",
        "dag-running": reverse("web:dag", args=[made.running.pk]),
        "dag-failed": reverse("web:dag", args=[made.failed.pk]),
        "dag-held": reverse("web:dag", args=[made.held.pk]),
        "dag-idle": reverse("web:dag", args=[made.idle.pk]),
        "dag-rich": reverse("web:dag", args=[made.rich.pk]),
        **{
            f"dag-rich-{tab}": reverse("web:dag", args=[made.rich.pk]) + f"?tab={tab}"
            for tab in TABS
            if tab != "overview"
        },
        "dag-running-graph": reverse("web:dag", args=[made.running.pk]) + "?tab=graph",
        "dag-running-blocking": reverse("web:dag", args=[made.running.pk])
        + "?tab=nodes&show=blocking",
        "dag-failed-rescue": reverse("web:dag", args=[made.failed.pk]) + "?tab=rescue",
        "dag-inner": reverse("web:dag", args=[made.inner.pk]),
        "dag-gates": reverse("web:dag", args=[deciding.pk]),
        "dag-gates-graph": reverse("web:dag", args=[deciding.pk]) + "?tab=graph",
        "dag-limits": reverse("web:dag-limits", args=[made.rich.pk]),
        "dag-compare": reverse("web:dag-compare", args=[made.running.pk]),
        "dag-compared": reverse("web:dag-compare", args=[made.failed.pk])
        + f"?with={made.running.pk}",
        "dag-grow": reverse("web:dag-grow", args=[made.rich.pk]),
        "dag-edit": reverse("web:dag-edit", args=[made.failed.pk]),
        "dag-edit-too-early": reverse("web:dag-edit", args=[made.rich.pk]),
        "rescue": reverse("web:rescue", args=[made.failed.pk]),
        "rescue-too-early": reverse("web:rescue", args=[made.rich.pk]),
        "node-done": reverse("web:node", args=[made.rich.pk, made.node("prepare").pk]),
        "node-ready": reverse("web:node", args=[made.rich.pk, made.node("scan2").pk]),
        "node-waiting": reverse("web:node", args=[made.rich.pk, made.node("merge").pk]),
        "node-data": reverse("web:node", args=[made.rich.pk, made.node("fetch").pk]),
        "node-inner": reverse("web:node", args=[made.rich.pk, made.node("calibrate").pk]),
        "nodes-rerun": _steered(made, "rerun", "prepare", "scan1"),
        "nodes-change": _steered(made, "change", "merge"),
        "nodes-none": reverse("web:steer-nodes", args=[made.rich.pk, "retry"]),
        "placements": reverse("web:placements"),
        "placement": reverse("web:placement", args=[made.placement.pk]),
        **placement_pages(made),
        "bulk": reverse("web:bulk"),
        "bulk-preview": reverse("web:bulk-operation", args=[operations["preview"].pk]),
        "bulk-destructive": reverse("web:bulk-operation", args=[operations["destructive"].pk]),
        "bulk-operation": reverse("web:bulk-operation", args=[operations["done"].pk]),
        "submit": reverse("web:submit"),
        "submit-jobs": reverse("web:submit-jobs"),
        **trial_pages(made),
        **archive_pages(made),
        "campaigns": reverse("web:campaigns"),
        "campaign": reverse("web:campaign", args=[CAMPAIGN]),
        "campaign-without-deadline": reverse("web:campaign", args=["data26"]),
        "schedules": reverse("web:schedules"),
        "schedule": reverse("web:schedule", args=[schedule.pk]),
        "change-schedule": reverse("web:change-schedule", args=[schedule.pk]),
        "submit-placements": reverse("web:submit-placements"),
        "clusters": reverse("web:clusters"),
        "clusters-none": reverse("web:clusters") + "?label=nothing",
        "cluster": reverse("web:cluster", args=[cluster.pk]),
        "cluster-removed": reverse("web:cluster", args=[removed.pk]),
        "jobs": reverse("web:jobs"),
        "job": reverse("web:job", args=[made.job.pk]),
        "task-queues": reverse("web:task-queues"),
        "task-queues-none": reverse("web:task-queues") + "?tag=nothing",
        "task-queue": reverse("web:task-queue", args=[made.task_queue.pk]),
        "sites": reverse("web:sites"),
        "site": reverse("web:site", args=[made.site.name]),
        "frontends": reverse("web:frontends"),
        "frontend": reverse("web:frontend", args=["icecube"]),
        "factory": reverse("web:factory", args=["north"]),
        "suspected-node": reverse(
            "web:suspected-node", args=[SuspectedNode.objects.latest("pk").pk]
        ),
        "pilots": reverse("web:pilots"),
        "pilot": reverse("web:pilot", args=[made.pilot.pk]),
        "pilot-tested": reverse("web:pilot", args=[tested_pilot(made).pk]),
        "pilot-log": reverse("web:pilot-log", args=[made.pilot.pk]),
        "explain": reverse("web:explain"),
        "explain-dag": f"{explain}?dag={made.idle.pk}",
        "explain-what-if": f"{explain}?dag={made.idle.pk}&change=Requirements+%3D+false",
        "explain-job": f"{explain}?job={made.job.pk}",
        "explain-task-queue": f"{explain}?task_queue={made.task_queue.pk}",
        "explain-site": f"{explain}?site={made.site.name}&site_change=MaxMatches+%3D+9",
        "what-if": reverse("web:what-if"),
        "what-if-jobs": reverse("web:what-if") + f"?task_queue={made.task_queue.pk}",
        "negotiation": reverse("web:negotiation"),
        "cycle": reverse("web:cycle", args=[NegotiationCycle.objects.latest("matches", "pk").pk]),
        "shares": reverse("web:shares"),
        "history": reverse("web:history"),
        "queue": reverse("web:queue", args=[made.site.name, "long"]),
        "queue-shared": reverse("web:queue", args=[made.site.name, "short"]),
        "errors": reverse("web:errors"),
        "errors-none": reverse("web:errors") + "?text=nothing+like+this",
        "error": reverse("web:error", args=[FailureGroup.objects.latest("total").pk]),
        "error-rules": reverse("web:error-rules"),
        "error-rule": reverse("web:error-rule", args=[FailureRule.objects.order_by("pk")[0].pk]),
        "error-rule-new": reverse("web:new-error-rule"),
        "history-table": reverse("web:history-table", args=["pilots"]) + "?range=1d",
        "efficiency": reverse("web:efficiency"),
        "efficiency-compared": reverse("web:efficiency") + "?by=label&compare=before",
        "downtimes": reverse("web:downtimes"),
        "downtime-calendar": reverse("web:downtime-calendar"),
        "downtime-new": reverse("web:new-downtime") + f"?site={made.site.name}",
        "downtime-import": reverse("web:import-downtimes"),
        "downtime": reverse("web:downtime", args=[Downtime.objects.latest("pk").pk]),
        "shift-log": reverse("web:remarks"),
        "shift-summary": reverse("web:shift-summary"),
        "notes": reverse("web:notes", args=["dag", made.failed.pk]),
        "audit": reverse("web:audit"),
        "audit-entry": reverse("web:audit-entry", args=[AuditEntry.objects.latest("pk").pk]),
        "log-job": reverse("web:attempt-log", args=[made.job.pk, 1, "stdout"]),
        "log-script": reverse("web:script-log", args=[made.rich.pk, script.pk]),
        "log-file": reverse("web:dag-file-log", args=[made.rich.pk, "tails.dag"]),
        **account_pages(made),
        "search": reverse("web:search") + "?q=t",
        "problems": reverse("web:problems"),
        "problem": reverse("web:problem", args=["not-found"]),
        "help": reverse("web:help"),
        "help-states": reverse("web:help-states"),
        "refusal": reverse("web:dag", args=[0]),
        "not-found": "/nowhere/",
    }


def _steered(made: Production, event: str, *names: str) -> str:
    """The page on which nodes of the rich DAG are steered."""
    chosen = "&".join(f"node={made.node(name).pk}" for name in names)
    return f"{reverse('web:steer-nodes', args=[made.rich.pk, event])}?{chosen}"


def admin_pages(made: Production) -> dict[str, str]:
    """The pages of the administration: each list with the form of one thing; the others once."""
    request = RequestFactory().get("/")
    request.user = made.people.ada
    pages = {"admin": reverse("admin:index")}
    for model, its in admin_site._registry.items():
        name = f"{model._meta.app_label}_{model._meta.model_name}"
        pages[f"admin-{name}"] = reverse(f"admin:{name}_changelist")
        first = _first(its)
        if first is not None:
            pages[f"admin-{name}-one"] = reverse(f"admin:{name}_change", args=[first])
        elif its.has_add_permission(request):
            pages[f"admin-{name}-new"] = reverse(f"admin:{name}_add")
    pages["admin-site-history"] = reverse("admin:sites_site_history", args=[made.site.pk])
    pages["admin-self-test"] = reverse("admin:self_test")
    pages["admin-site-import"] = reverse("admin:sites_site_import")
    limit = RunningLimit.objects.latest("pk")
    pages["admin-limit-delete"] = reverse("admin:jobs_runninglimit_delete", args=[limit.pk])
    return pages


def _first(its: ModelAdmin) -> object | None:
    return its.model._default_manager.order_by("pk").values_list("pk", flat=True).first()
