"""URL patterns of the web pages, with login, logout, downloads and the data that browsers fetch."""

from __future__ import annotations

from django.urls import path

from portal.web.account import identity_views as identities
from portal.web.account import notice_views as notices
from portal.web.account import openid_views as openid
from portal.web.account import personal_views as personal
from portal.web.account import views as account
from portal.web.archives import views as archives
from portal.web.bulk import views as bulk
from portal.web.campaigns import views as campaigns
from portal.web.clusters import submission_views as job_submission
from portal.web.clusters import views as clusters
from portal.web.dags import comparing, edit_views
from portal.web.dags import growth_views as growth
from portal.web.dags import run_views as runs
from portal.web.dags import submission_views as submission
from portal.web.dags import views as dags
from portal.web.dashboard import help_views as help
from portal.web.dashboard import problem_views as problems
from portal.web.dashboard import views as dashboard
from portal.web.explain import views as explain
from portal.web.failures import rule_views as failure_rules
from portal.web.failures import views as errors
from portal.web.frontends import views as frontends
from portal.web.graph import views as dag_graph
from portal.web.history import views as history
from portal.web.jobs import views as jobs
from portal.web.lists import views as lists
from portal.web.logs import file_views as files
from portal.web.logs import views as logs
from portal.web.matching import share_views as shares
from portal.web.matching import task_queue_views as task_queues
from portal.web.matching import views as negotiation
from portal.web.nodes import views as nodes
from portal.web.pilots import allocation_views as allocations
from portal.web.pilots import link_views as links
from portal.web.pilots import logical_file_views as logical_files
from portal.web.pilots import placement_credential_views as placement_credentials
from portal.web.pilots import placement_submission_views as placement_submission
from portal.web.pilots import placement_views as placements
from portal.web.pilots import storage_views as storages
from portal.web.pilots import views as pilots
from portal.web.records import efficiency_views as efficiency
from portal.web.records import views as audit
from portal.web.remarks import summary_views as shift_summary
from portal.web.remarks import views as remarks
from portal.web.schedules import views as schedules
from portal.web.search import views as search
from portal.web.sites import downtime_import_views as downtime_imports
from portal.web.sites import downtime_views as downtimes
from portal.web.sites import queue_views as queues
from portal.web.sites import suspect_views as suspects
from portal.web.sites import views as sites
from portal.web.trials import views as trials
from portal.web.wallboards import managing as wallboard_pages
from portal.web.wallboards import screen as wallboard_screen
from wms.actions.allocations import ALLOCATIONS
from wms.actions.archives import ARCHIVES
from wms.actions.queues import QUEUES
from wms.actions.sites_and_pilots import PILOTS, PLACEMENTS

app_name = "web"
urlpatterns = [
    path("login/", openid.Login.as_view(), name="login"),
    path("login/openid/<slug:provider>/", openid.begin, name="openid"),
    path("login/openid/<slug:provider>/callback/", openid.come_back, name="openid-callback"),
    path("login/openid/<slug:provider>/logout/", openid.leave, name="openid-logout"),
    path("problems/", problems.problem_types, name="problems"),
    path("problems/<slug:code>/", problems.problem_type, name="problem"),
    path("logout/", openid.Logout.as_view(), name="logout"),
    path("", dashboard.dashboard, name="dashboard"),
    path("search/", search.search, name="search"),
    path("dags/", lists.dag_list, name="dags"),
    path("dags/submit/", submission.submit, name="submit"),
    path("dags/<int8:dag_id>/", dags.dag_page, name="dag"),
    path("dags/<int8:dag_id>/steer/<slug:event>/", dags.steer, name="steer"),
    path("dags/<int8:dag_id>/files/<path:path>", files.dag_file, name="dag-file"),
    path("dags/<int8:dag_id>/pictures/<path:path>", files.dag_picture, name="dag-picture"),
    path("dags/<int8:dag_id>/exports/<slug:kind>/", runs.dag_export, name="dag-export"),
    path("dags/<int8:dag_id>/compare/", comparing.comparison, name="dag-compare"),
    path("dags/<int8:dag_id>/compare.csv", comparing.comparison_csv, name="dag-compare-csv"),
    path("dags/<int8:dag_id>/limits/", runs.limits, name="dag-limits"),
    path("dags/<int8:dag_id>/edit/", edit_views.edit, name="dag-edit"),
    path("dags/<int8:dag_id>/grow/", growth.grow, name="dag-grow"),
    path("dags/<int8:dag_id>/graph/places", dag_graph.places, name="graph-places"),
    path("dags/<int8:dag_id>/graph/states", dag_graph.states, name="graph-states"),
    path("dags/<int8:dag_id>/graph/changes", dag_graph.changes, name="graph-changes"),
    path("dags/<int8:dag_id>/graph/names", dag_graph.names, name="graph-names"),
    path("dags/<int8:dag_id>/graph/nodes/<int8:index>", dag_graph.node, name="graph-node"),
    path("dags/<int8:dag_id>/rescue/", runs.rescue, name="rescue"),
    path("dags/<int8:dag_id>/nodes/<int8:node_id>/", nodes.node_page, name="node"),
    path("dags/<int8:dag_id>/nodes/<slug:event>/", nodes.steer_nodes, name="steer-nodes"),
    path(
        "dags/<int8:dag_id>/scripts/<int8:run_id>/output", nodes.script_output, name="script-output"
    ),
    path("dags/<int8:dag_id>/scripts/<int8:run_id>/log/", logs.script_log, name="script-log"),
    path("dags/<int8:dag_id>/logs/<path:path>", logs.file_log, name="dag-file-log"),
    path("placements/", lists.placement_list, name="placements"),
    path("placements/submit/", placement_submission.submit_placements, name="submit-placements"),
    path(
        "placements/credentials/",
        placement_credentials.credentials,
        name="placement-credentials",
    ),
    path(
        "placements/credentials/<int8:placement_credential_id>/forget/",
        placement_credentials.forget,
        name="forget-placement-credential",
    ),
    path("placements/links/", links.link_list, name="placement-links"),
    path("placements/allocations/", allocations.allocation_list, name="allocations"),
    path(
        "placements/allocations/<int8:allocation_id>/",
        allocations.allocation_page,
        name="allocation",
    ),
    *(
        path(
            f"placements/allocations/<int8:allocation_id>/{action.page_name}/",
            allocations.steer,
            {"action": action},
            name=f"{action.page_name}-allocation",
        )
        for action in ALLOCATIONS.on_page
    ),
    path("placements/<int8:request_id>/", placements.placement_page, name="placement"),
    *(
        path(
            f"placements/<int8:request_id>/{action.page_name}/",
            placements.steer,
            {"action": action},
            name=f"{action.page_name}-placement",
        )
        for action in PLACEMENTS.on_page
    ),
    path("storages/", storages.storage_list, name="storages"),
    path("storages/<str:storage>/", storages.storage_page, name="storage"),
    path("files/", logical_files.file_list, name="logical-files"),
    path("files/<int8:file_id>/", logical_files.file_page, name="logical-file"),
    path("files/<int8:file_id>/remove/", logical_files.remove, name="remove-logical-file"),
    path("files/<int8:file_id>/forget/", logical_files.forget, name="forget-replica"),
    path("clusters/", lists.cluster_list, name="clusters"),
    path("clusters/<int8:cluster_id>/", clusters.cluster_page, name="cluster"),
    path("clusters/<int8:cluster_id>/job/", clusters.cluster_job, name="cluster-job"),
    path("clusters/<int8:cluster_id>/steer/<slug:event>/", clusters.steer, name="steer-cluster"),
    path("schedules/", schedules.schedule_list, name="schedules"),
    path("schedules/<int8:schedule_id>/", schedules.schedule_page, name="schedule"),
    path("schedules/<int8:schedule_id>/change/", schedules.change, name="change-schedule"),
    path(
        "schedules/<int8:schedule_id>/steer/<slug:event>/", schedules.steer, name="steer-schedule"
    ),
    path("campaigns/", campaigns.campaign_list, name="campaigns"),
    path("campaigns/<path:campaign>/deadline/", campaigns.set_deadline, name="campaign-deadline"),
    path("campaigns/<path:campaign>/", campaigns.campaign_page, name="campaign"),
    path("jobs/", lists.job_list, name="jobs"),
    path("jobs/submit/", job_submission.submit_jobs, name="submit-jobs"),
    path("jobs/<int8:job_id>/", jobs.job_page, name="job"),
    path("jobs/<int8:job_id>/steer/<slug:event>/", jobs.steer, name="steer-job"),
    path(
        "jobs/<int8:job_id>/attempts/<int8:number>/streams/<slug:kind>",
        files.attempt_stream,
        name="attempt-stream",
    ),
    path(
        "jobs/<int8:job_id>/attempts/<int8:number>/logs/<slug:kind>/",
        logs.attempt_log,
        name="attempt-log",
    ),
    path(
        "jobs/<int8:job_id>/attempts/<int8:number>/<slug:kind>/<path:path>",
        files.attempt_file,
        name="attempt-file",
    ),
    path("taskqueues/", task_queues.task_queue_list, name="task-queues"),
    path("taskqueues/<int8:task_queue_id>/", task_queues.task_queue_page, name="task-queue"),
    path("sites/", lists.site_list, name="sites"),
    path("sites/<str:name>/", sites.site_page, name="site"),
    path("suspected-nodes/<int8:suspect_id>/", suspects.suspect_page, name="suspected-node"),
    path("suspected-nodes/<int8:suspect_id>/clear/", suspects.clear, name="clear-node"),
    path("sites/<str:name>/queues/<str:queue>/", queues.queue_page, name="queue"),
    *(
        path(
            f"sites/<str:name>/queues/<str:queue>/{action.page_name}/",
            queues.steer_queue,
            {"action": action},
            name=f"{action.page_name}-queue",
        )
        for action in QUEUES.on_page
    ),
    path("sites/<str:name>/steer/<slug:event>/", sites.steer, name="steer-site"),
    path("frontends/", frontends.frontend_list, name="frontends"),
    path("frontends/<str:frontend>/", frontends.frontend_page, name="frontend"),
    path("factories/<str:factory>/", frontends.factory_page, name="factory"),
    path("pilots/", lists.pilot_list, name="pilots"),
    path("pilots/<int8:pilot_id>/", pilots.pilot_page, name="pilot"),
    path("pilots/<int8:pilot_id>/log/", logs.pilot_log, name="pilot-log"),
    path("pilots/<int8:pilot_id>/log/file", pilots.pilot_log_file, name="pilot-log-file"),
    *(
        path(
            f"pilots/<int8:pilot_id>/{action.page_name}/",
            pilots.steer_pilot,
            {"action": action},
            name=f"{action.page_name}-pilot",
        )
        for action in PILOTS.on_page
    ),
    path("archives/", archives.archive_list, name="archives"),
    path("archives/<int8:archive_id>/", archives.archive_page, name="archive"),
    *(
        path(
            f"archives/<int8:archive_id>/{action.page_name}/",
            archives.steer,
            {"action": action},
            name=f"{action.page_name}-archive",
        )
        for action in ARCHIVES.on_page
    ),
    path("trials/", trials.trial_list, name="trials"),
    path("trials/new/", trials.new_trial, name="new-trial"),
    path("trials/<int8:trial_id>/", trials.trial_page, name="trial"),
    path("trials/<int8:trial_id>/stop/", trials.stop_trial, name="stop-trial"),
    path("bulk/", bulk.bulk_list, name="bulk"),
    path("bulk/new/", bulk.new_bulk, name="new-bulk"),
    path("bulk/<int8:operation_id>/", bulk.bulk_page, name="bulk-operation"),
    path("bulk/<int8:operation_id>/confirm/", bulk.confirm_bulk, name="confirm-bulk"),
    path("bulk/<int8:operation_id>/stop/", bulk.stop_bulk, name="stop-bulk"),
    path("bulk/<int8:operation_id>/retry/", bulk.retry_bulk, name="retry-bulk"),
    path("filters/save/", personal.save, name="save-filter"),
    path("filters/<int8:filter_id>/", personal.change, name="change-filter"),
    path("filters/<int8:filter_id>/remove/", personal.remove, name="remove-filter"),
    path("columns/", personal.columns, name="columns"),
    path("preferences/", personal.preferences, name="preferences"),
    path("notices/", notices.notice_list, name="notices"),
    path("notices/bell/", notices.bell, name="bell"),
    path("notices/read/", notices.read, name="read-notices"),
    path("dags/<int8:dag_id>/tell/", notices.tell, name="tell"),
    path("account/", account.account, name="account"),
    path("account/tokens/", account.add_token, name="add-token"),
    path("account/tokens/<int8:token_id>/revoke/", account.revoke_token, name="revoke-token"),
    path("account/identities/", identities.link_identity, name="link-identity"),
    path(
        "account/identities/<int8:identity_id>/unlink/",
        identities.unlink_identity,
        name="unlink-identity",
    ),
    path("account/password/", account.password, name="password"),
    path("account/start-filters/", account.start_filter, name="start-filter"),
    path("account/subscriptions/", account.subscribe, name="subscribe"),
    path(
        "account/subscriptions/<int8:subscription_id>/remove/",
        account.unsubscribe,
        name="unsubscribe",
    ),
    path("account/channels/", account.add_channel, name="add-channel"),
    path("account/channels/<int8:channel_id>/", account.change_channel, name="change-channel"),
    path("errors/", errors.error_list, name="errors"),
    path("errors/rules/", failure_rules.rule_list, name="error-rules"),
    path("errors/rules/new/", failure_rules.new_rule, name="new-error-rule"),
    path("errors/rules/<int8:rule_id>/", failure_rules.rule_page, name="error-rule"),
    path("errors/<int8:group_id>/", errors.error_page, name="error"),
    path("errors/<int8:group_id>/steer/<slug:event>/", errors.steer, name="steer-error"),
    path("downtimes/", downtimes.downtime_list, name="downtimes"),
    path("downtimes/calendar/", downtimes.calendar, name="downtime-calendar"),
    path("downtimes/new/", downtimes.new, name="new-downtime"),
    path("downtimes/import/", downtime_imports.import_page, name="import-downtimes"),
    path("downtimes/<int8:downtime_id>/", downtimes.downtime_page, name="downtime"),
    path("downtimes/<int8:downtime_id>/change/", downtimes.change, name="change-downtime"),
    path("downtimes/<int8:downtime_id>/cancel/", downtimes.cancel, name="cancel-downtime"),
    path("help/", help.help_page, name="help"),
    path("help/states/", help.states, name="help-states"),
    path("shift-log/", remarks.shift_log, name="remarks"),
    path("shift-log/write/", remarks.write, name="write-log"),
    path("wallboard/", wallboard_screen.screen, name="wallboard"),
    path("wallboards/", wallboard_pages.wallboards, name="wallboards"),
    path("wallboards/<int8:token_id>/revoke/", wallboard_pages.revoke, name="revoke-wallboard"),
    path("shift-log/summary/", shift_summary.summary, name="shift-summary"),
    path("shift-log/<slug:kind>/<str:key>/", remarks.notes, name="notes"),
    path("audit/", audit.audit_list, name="audit"),
    path("audit/<int8:entry_id>/", audit.audit_entry, name="audit-entry"),
    path("matches/", negotiation.negotiation, name="negotiation"),
    path("matches/cycles/<int8:cycle_id>/", negotiation.cycle_page, name="cycle"),
    path("matches/explain/", explain.explain, name="explain"),
    path("matches/what-if/", explain.what_if, name="what-if"),
    path("shares/", shares.shares, name="shares"),
    path("efficiency/", efficiency.efficiency, name="efficiency"),
    path("efficiency/accounts.csv", efficiency.efficiency_csv, name="efficiency-csv"),
    path("history/", history.history, name="history"),
    path("history/<slug:panel>.json", history.history_data, name="history-data"),
    path("history/<slug:panel>/", history.history_table, name="history-table"),
]
