"""URL patterns of the REST API, included under `api/v1/`."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.urls import path, re_path

from portal.api import schema
from portal.api.access import identities, login, service_accounts, tokens
from portal.api.access import views as access
from portal.api.accounting import urls as accounting
from portal.api.actions import view_of
from portal.api.archives import views as archives
from portal.api.audit import views as audit
from portal.api.bulk import views as bulk
from portal.api.campaigns import views as campaigns
from portal.api.clusters import outputs as cluster_outputs
from portal.api.clusters import steering as cluster_steering
from portal.api.clusters import views as clusters
from portal.api.credentials import views as credentials
from portal.api.dags import comparing, following, graph, steering
from portal.api.dags import views as dags
from portal.api.events import views as events
from portal.api.explain import views as explain
from portal.api.factories import frontends as remote_frontends
from portal.api.factories import views as factories
from portal.api.failures import views as failures
from portal.api.frontends import entries as frontend_entries
from portal.api.frontends import views as frontends
from portal.api.history import views as history
from portal.api.jobs import outputs as job_outputs
from portal.api.jobs import views as jobs
from portal.api.limits import quotas, running_limits, shared_limits
from portal.api.lists import views as lists
from portal.api.nodes import views as nodes
from portal.api.notices import views as notices
from portal.api.pilots import views as pilots
from portal.api.placements import urls as placements
from portal.api.remarks import views as remarks
from portal.api.resumable_uploads import views as uploads
from portal.api.schedules import views as schedules
from portal.api.sites import (
    ads,
    downtime_calendar,
    downtime_import,
    downtimes,
    exchange,
    pressure,
    worker_nodes,
)
from portal.api.sites import views as sites
from portal.api.task_queues import views as task_queues
from portal.api.trials import views as trials
from wms.actions.archives import ARCHIVES
from wms.actions.clusters import CLUSTERS
from wms.actions.dags import DAGS
from wms.actions.failures import FAILURES
from wms.actions.jobs import JOBS
from wms.actions.nodes import NODE_ACTIONS
from wms.actions.queues import QUEUES
from wms.actions.schedules import SCHEDULES
from wms.actions.sites_and_pilots import PILOTS, SITES, SUSPECTED_NODES

app_name = "api"

_ARCHIVE = "archives/<int8:archive_id>"
_CLUSTER = "clusters/<int8:cluster_id>"
_DAG = "dags/<int8:dag_id>"
_SCHEDULE = "schedules/<int8:schedule_id>"
_NODE = f"{_DAG}/nodes/<int8:node_id>"
_NAME = "(?P<name>[A-Za-z0-9_.-]+)"
_SITE = f"^sites/{_NAME}"
_QUEUE = _NAME.replace("<name>", "<queue>")
_FACTORY = _NAME.replace("<name>", "<factory>")
_FRONTEND = _NAME.replace("<name>", "<frontend>")

urlpatterns = [
    path("schema/", schema.Schema.as_view(), name="schema"),
    path("docs/", login_required(schema.Docs.as_view()), name="docs"),
    path("events/", events.EventStream.as_view(), name="events"),
    path("login/", login.Login.as_view(), name="login"),
    path("me/", access.Me.as_view(), name="me"),
    path("me/identities/", identities.OwnIdentities.as_view(), name="me-identities"),
    path("identities/", identities.IdentityList.as_view(), name="identities"),
    path("identities/<int8:identity_id>/", identities.IdentityDetail.as_view(), name="identity"),
    path("version/", access.Version.as_view(), name="version"),
    path("tokens/", tokens.TokenList.as_view(), name="tokens"),
    path("tokens/<int8:token_id>/", tokens.TokenDetail.as_view(), name="token"),
    path("tokens/<int8:token_id>/revoke/", tokens.RevokeToken.as_view(), name="token-revoke"),
    path(
        "service-accounts/", service_accounts.ServiceAccountList.as_view(), name="service-accounts"
    ),
    path(
        "service-accounts/<int8:account_id>/",
        service_accounts.ServiceAccountDetail.as_view(),
        name="service-account",
    ),
    path("dags/", dags.DagList.as_view(), name="dags"),
    path("dags/check/", dags.CheckDag.as_view(), name="dags-check"),
    path("dags/follow/", following.FollowDag.as_view(), name="dags-follow"),
    path(f"{_DAG}/", dags.DagDetail.as_view(), name="dag"),
    path(f"{_DAG}/followed-log/", following.FollowedLogOfDag.as_view(), name="dag-followed-log"),
    path(f"{_DAG}/compare/", comparing.CompareDag.as_view(), name="dag-compare"),
    path(f"{_DAG}/events/", dags.DagEventList.as_view(), name="dag-events"),
    path(f"{_DAG}/files/", dags.DagFileList.as_view(), name="dag-files"),
    path(f"{_DAG}/files/<path:path>", dags.DagFile.as_view(), name="dag-file"),
    path(f"{_DAG}/exports/", dags.ExportList.as_view(), name="dag-exports"),
    path(f"{_DAG}/exports/<slug:kind>/", dags.Export.as_view(), name="dag-export"),
    path(f"{_DAG}/archive/", archives.DagArchive.as_view(), name="dag-archive"),
    path(f"{_DAG}/rescues/", dags.RescueList.as_view(), name="dag-rescues"),
    path(f"{_DAG}/matches/", dags.MatchList.as_view(), name="dag-matches"),
    path(f"{_DAG}/graph/", graph.DagGraph.as_view(), name="dag-graph"),
    path(f"{_DAG}/graph/changes/", graph.DagGraphChanges.as_view(), name="dag-graph-changes"),
    path(f"{_DAG}/nodes/", nodes.NodeList.as_view(), name="dag-nodes"),
    *(
        path(
            f"{_DAG}/nodes/{each.action.name}/",
            view_of(each.action, nodes.NodesAction),
            name=f"dag-nodes-{each.action.name}",
        )
        for each in NODE_ACTIONS.values()
        if each.action.api
    ),
    path(f"{_NODE}/", nodes.NodeDetail.as_view(), name="dag-node"),
    path(f"{_NODE}/events/", nodes.OneNodesEventList.as_view(), name="dag-one-nodes-events"),
    path(f"{_NODE}/jobs/", nodes.OneNodesJobList.as_view(), name="dag-node-jobs"),
    path(f"{_DAG}/node-events/", nodes.NodeEventList.as_view(), name="dag-node-events"),
    path(f"{_DAG}/scripts/", nodes.ScriptRunList.as_view(), name="dag-scripts"),
    path(
        f"{_DAG}/scripts/<int8:run_id>/output",
        nodes.ScriptOutput.as_view(),
        name="dag-script-output",
    ),
    *(
        path(
            f"{_DAG}/{action.api_path}/",
            view_of(
                action, {**steering.VIEWS, **remarks.ACTIONS}.get(action.name, steering.DagAction)
            ),
            name=f"dag-{action.api_path}",
        )
        for action in DAGS.in_api
    ),
    path("archives/", archives.ArchiveList.as_view(), name="archives"),
    path(f"{_ARCHIVE}/", archives.ArchiveDetail.as_view(), name="archive"),
    path(f"{_ARCHIVE}/file/", archives.ArchiveFile.as_view(), name="archive-file"),
    path(f"{_ARCHIVE}/members/", archives.ArchiveMemberList.as_view(), name="archive-members"),
    path(
        f"{_ARCHIVE}/members/<path:path>", archives.ArchiveMember.as_view(), name="archive-member"
    ),
    *(
        path(
            f"{_ARCHIVE}/{action.api_path}/",
            view_of(action, archives.ArchiveAction),
            name=f"archive-{action.api_path}",
        )
        for action in ARCHIVES.in_api
    ),
    path("trials/", trials.TrialList.as_view(), name="trials"),
    path("trials/check/", trials.CheckTrial.as_view(), name="trials-check"),
    path("trials/dry-run/", trials.DryRunTrial.as_view(), name="trials-dry-run"),
    path("trials/<int8:trial_id>/", trials.TrialDetail.as_view(), name="trial"),
    path("trials/<int8:trial_id>/stop/", trials.StopTrial.as_view(), name="trial-stop"),
    path("jobs/", jobs.JobList.as_view(), name="jobs"),
    path("jobs/check/", clusters.CheckJobs.as_view(), name="jobs-check"),
    path("jobs/<int8:job_id>/", jobs.JobDetail.as_view(), name="job"),
    *(
        path(
            f"jobs/<int8:job_id>/{action.name}/",
            view_of(action, jobs.JobAction),
            name=f"job-{action.name}",
        )
        for action in JOBS.in_api
    ),
    path("jobs/<int8:job_id>/stdout", jobs.JobStdout.as_view(), name="job-stdout"),
    path("jobs/<int8:job_id>/stderr", jobs.JobStderr.as_view(), name="job-stderr"),
    path("uploads/", uploads.UploadList.as_view(), name="uploads"),
    path("uploads/<int8:upload_id>/", uploads.UploadDetail.as_view(), name="upload"),
    path("schedules/", schedules.ScheduleList.as_view(), name="schedules"),
    path(f"{_SCHEDULE}/", schedules.ScheduleDetail.as_view(), name="schedule"),
    path(f"{_SCHEDULE}/runs/", schedules.ScheduleRunList.as_view(), name="schedule-runs"),
    *(
        path(
            f"{_SCHEDULE}/{action.api_path}/",
            view_of(action, schedules.ScheduleAction),
            name=f"schedule-{action.api_path}",
        )
        for action in SCHEDULES.in_api
    ),
    path("labels/", campaigns.LabelList.as_view(), name="labels"),
    path("campaigns/", campaigns.CampaignList.as_view(), name="campaigns"),
    path(
        "campaigns/<path:campaign>/deadline/",
        campaigns.CampaignDeadlineView.as_view(),
        name="campaign-deadline",
    ),
    path("campaigns/<path:campaign>/", campaigns.CampaignDetail.as_view(), name="campaign"),
    path("clusters/", clusters.ClusterList.as_view(), name="clusters"),
    path(f"{_CLUSTER}/", clusters.ClusterDetail.as_view(), name="cluster"),
    path(f"{_CLUSTER}/jobs/", clusters.ClusterJobList.as_view(), name="cluster-jobs"),
    path(f"{_CLUSTER}/faults/", clusters.ClusterFaultList.as_view(), name="cluster-faults"),
    path(f"{_CLUSTER}/events/", clusters.ClusterEventList.as_view(), name="cluster-events"),
    path(
        f"{_CLUSTER}/description",
        clusters.ClusterDescription.as_view(),
        name="cluster-description",
    ),
    *(
        path(
            f"{_CLUSTER}/{action.api_path}/",
            view_of(
                action, cluster_steering.VIEWS.get(action.name, cluster_steering.ClusterAction)
            ),
            name=f"cluster-{action.api_path}",
        )
        for action in CLUSTERS.in_api
    ),
    path("jobs/<int8:job_id>/outputs/", job_outputs.JobOutputList.as_view(), name="job-outputs"),
    path(
        "jobs/<int8:job_id>/outputs/<path:path>", job_outputs.JobOutput.as_view(), name="job-output"
    ),
    path(
        "jobs/<int8:job_id>/outputs.tar",
        job_outputs.JobOutputArchive.as_view(),
        name="job-output-archive",
    ),
    path(
        "clusters/<int8:cluster_id>/outputs.tar",
        cluster_outputs.ClusterOutputArchive.as_view(),
        name="cluster-output-archive",
    ),
    path("task-queues/", task_queues.TaskQueueList.as_view(), name="task-queues"),
    path(
        "task-queues/<int8:task_queue_id>/",
        task_queues.TaskQueueDetail.as_view(),
        name="task-queue",
    ),
    path("task-queue-policy/", task_queues.Policy.as_view(), name="task-queue-policy"),
    path("sites.yaml", exchange.SiteDocument.as_view(), name="sites-yaml"),
    path("sites/", sites.SiteList.as_view(), name="sites"),
    re_path(f"{_SITE}/$", sites.SiteDetail.as_view(), name="site"),
    re_path(f"{_SITE}/events/$", sites.SiteEventList.as_view(), name="site-events"),
    re_path(
        f"{_SITE}/queues/{_QUEUE}/pressure/$",
        pressure.QueuePressure.as_view(),
        name="queue-pressure",
    ),
    re_path(
        f"{_SITE}/queues/{_QUEUE}/pressure/history/$",
        pressure.QueuePressureHistory.as_view(),
        name="queue-pressure-history",
    ),
    *(
        re_path(
            f"{_SITE}/queues/{_QUEUE}/{action.api_path}/$",
            view_of(action, pressure.QueueAction),
            name=f"queue-{action.api_path}",
        )
        for action in QUEUES.in_api
    ),
    *(
        re_path(
            f"{_SITE}/{action.name}/$",
            view_of(action, remarks.ACTIONS.get(action.name, sites.SiteAction)),
            name=f"site-{action.name}",
        )
        for action in SITES.in_api
    ),
    re_path(
        f"{_SITE}/failed-checks/$",
        worker_nodes.SiteFailedCheckList.as_view(),
        name="site-failed-checks",
    ),
    re_path(
        f"{_SITE}/suspected-nodes/$",
        worker_nodes.SiteSuspectedNodeList.as_view(),
        name="site-suspected-nodes",
    ),
    *(
        path(
            f"suspected-nodes/<int8:suspect_id>/{action.name}/",
            view_of(action, worker_nodes.SuspectedNodeAction),
            name=f"suspected-node-{action.name}",
        )
        for action in SUSPECTED_NODES.in_api
    ),
    re_path(f"{_SITE}/downtimes/$", downtimes.DowntimeList.as_view(), name="site-downtimes"),
    path("downtimes/", downtimes.EveryDowntime.as_view(), name="downtimes"),
    path("downtimes.ics", downtime_calendar.DowntimeCalendar.as_view(), name="downtimes-calendar"),
    path("downtimes/import/", downtime_import.DowntimeImport.as_view(), name="downtimes-import"),
    path("downtimes/<int8:downtime_id>/", downtimes.DowntimeDetail.as_view(), name="downtime"),
    path("ads/", ads.Advertise.as_view(), name="ads"),
    re_path(f"^ads/{_NAME}/$", ads.Ad.as_view(), name="ad"),
    path("pilots/", pilots.PilotList.as_view(), name="pilots"),
    path("pilots/<uuid:uuid>/", pilots.PilotDetail.as_view(), name="pilot"),
    path("pilots/<uuid:uuid>/events/", pilots.PilotEventList.as_view(), name="pilot-events"),
    path("pilots/<uuid:uuid>/attempts/", pilots.PilotAttemptList.as_view(), name="pilot-attempts"),
    path("pilots/<uuid:uuid>/checks/", pilots.PilotCheckList.as_view(), name="pilot-checks"),
    path("pilots/<uuid:uuid>/log", pilots.PilotLogText.as_view(), name="pilot-log"),
    *(
        path(
            f"pilots/<uuid:uuid>/{action.name}/",
            view_of(action, pilots.PilotAction),
            name=f"pilot-{action.name}",
        )
        for action in PILOTS.in_api
    ),
    *accounting.urlpatterns,
    path("running-limits/", running_limits.RunningLimitList.as_view(), name="running-limits"),
    path(
        "running-limits/<int8:limit_id>/",
        running_limits.RunningLimitDetail.as_view(),
        name="running-limit",
    ),
    path("remote-factories/", factories.FactoryList.as_view(), name="remote-factories"),
    re_path(
        f"^remote-factories/{_FACTORY}/$", factories.FactoryDetail.as_view(), name="remote-factory"
    ),
    re_path(
        f"^remote-factories/{_FACTORY}/token/$",
        factories.FactoryToken.as_view(),
        name="remote-factory-token",
    ),
    path("frontends/", frontends.FrontendList.as_view(), name="frontends"),
    re_path(f"^frontends/{_FRONTEND}/$", frontends.FrontendDetail.as_view(), name="frontend"),
    re_path(
        f"^frontends/{_FRONTEND}/entries/$",
        frontends.FrontendStandingList.as_view(),
        name="frontend-standing",
    ),
    path(
        "frontend-entries/", frontend_entries.FrontendEntryList.as_view(), name="frontend-entries"
    ),
    path(
        "frontend-entries/<int8:frontend_entry_id>/",
        frontend_entries.FrontendEntryDetail.as_view(),
        name="frontend-entry",
    ),
    path(
        "remote-frontends/",
        remote_frontends.RemoteFrontendList.as_view(),
        name="remote-frontends",
    ),
    re_path(
        f"^remote-frontends/{_FRONTEND}/$",
        remote_frontends.RemoteFrontendDetail.as_view(),
        name="remote-frontend",
    ),
    re_path(
        f"^remote-frontends/{_FRONTEND}/token/$",
        remote_frontends.RemoteFrontendToken.as_view(),
        name="remote-frontend-token",
    ),
    path("quotas/", quotas.QuotaList.as_view(), name="quotas"),
    path("quotas/<int8:quota_id>/", quotas.QuotaDetail.as_view(), name="quota"),
    path("my-quotas/", quotas.OwnQuotas.as_view(), name="my-quotas"),
    path("credentials/", credentials.CredentialList.as_view(), name="credentials"),
    path(
        "credentials/<int8:credential_id>/",
        credentials.CredentialDetail.as_view(),
        name="credential",
    ),
    path("shared-limits/", shared_limits.SharedLimitList.as_view(), name="shared-limits"),
    path(
        "shared-limits/<int8:limit_id>/",
        shared_limits.SharedLimitDetail.as_view(),
        name="shared-limit",
    ),
    *placements.urlpatterns,
    re_path(
        r"^lists/(?P<list_name>[a-z-]+)\.(?P<form>csv|json)$",
        lists.ExportOfList.as_view(),
        name="list-export",
    ),
    path("bulk/", bulk.BulkOperationList.as_view(), name="bulk"),
    path("bulk/<int8:operation_id>/", bulk.BulkOperationDetail.as_view(), name="bulk-operation"),
    path("bulk/<int8:operation_id>/items/", bulk.BulkItemList.as_view(), name="bulk-items"),
    path("bulk/<int8:operation_id>/stop/", bulk.StopBulkOperation.as_view(), name="bulk-stop"),
    path("bulk/<int8:operation_id>/retry/", bulk.RetryBulkOperation.as_view(), name="bulk-retry"),
    path("filters/", lists.SavedFilterList.as_view(), name="filters"),
    path("filters/<int8:filter_id>/", lists.SavedFilterDetail.as_view(), name="filter"),
    path("audit/", audit.AuditList.as_view(), name="audit"),
    path("remarks/", remarks.RemarkList.as_view(), name="remarks"),
    path("remarks/<int8:remark_id>/", remarks.RemarkDetail.as_view(), name="remark"),
    path("failures/", failures.FailureGroupList.as_view(), name="failures"),
    path("failures/<int8:group_id>/", failures.FailureGroupDetail.as_view(), name="failure"),
    *(
        path(
            f"failures/<int8:group_id>/{action.name}/",
            view_of(action, remarks.ACTIONS.get(action.name, failures.FailureAction)),
            name=f"failure-{action.name}",
        )
        for action in FAILURES.in_api
    ),
    path("notices/", notices.NoticeList.as_view(), name="notices"),
    path("notices/read/", notices.MarkNoticesRead.as_view(), name="notices-read"),
    path("subscriptions/", notices.SubscriptionList.as_view(), name="subscriptions"),
    path(
        "subscriptions/<int8:subscription_id>/",
        notices.SubscriptionDetail.as_view(),
        name="subscription",
    ),
    path("explain/", explain.Explain.as_view(), name="explain"),
    path("history/", history.History.as_view(), name="history"),
    path("history/panes/", history.PaneList.as_view(), name="history-panes"),
    re_path(
        r"^history/panes/(?P<panel>[a-z]+)\.(?P<form>json|csv)$",
        history.PaneData.as_view(),
        name="history-pane",
    ),
    re_path(
        r"^history/panes/(?P<panel>[a-z]+)\.figure\.json$",
        history.PaneFigure.as_view(),
        name="history-figure",
    ),
    re_path(
        r"^history/panes/(?P<panel>[a-z]+)\.html$",
        history.PaneReport.as_view(),
        name="history-report",
    ),
]
