"""The addresses of the pages."""

from __future__ import annotations

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

from portal.web.views import (
    dags,
    dashboard,
    downtimes,
    efficiency,
    explain,
    files,
    history,
    jobs,
    negotiation,
    nodes,
    pilots,
    placements,
    queues,
    rematch,
    runs,
    shares,
    sites,
    submission,
    task_queues,
)

app_name = "web"
urlpatterns = [
    path(
        "login/",
        LoginView.as_view(template_name="web/login.html", redirect_authenticated_user=True),
        name="login",
    ),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("", dashboard.dashboard, name="dashboard"),
    path("dags/", dags.dag_list, name="dags"),
    path("dags/submit/", submission.submit, name="submit"),
    path("dags/rematch/", rematch.rematch, name="rematch"),
    path("dags/<int:dag_id>/", dags.dag_page, name="dag"),
    path("dags/<int:dag_id>/steer/<slug:event>/", dags.steer, name="steer"),
    path("dags/<int:dag_id>/files/<path:path>", files.dag_file, name="dag-file"),
    path("dags/<int:dag_id>/pictures/<path:path>", files.dag_picture, name="dag-picture"),
    path("dags/<int:dag_id>/exports/<slug:kind>/", runs.dag_export, name="dag-export"),
    path("dags/<int:dag_id>/limits/", runs.limits, name="dag-limits"),
    path("dags/<int:dag_id>/rescue/", runs.rescue, name="rescue"),
    path("dags/<int:dag_id>/nodes/<int:node_id>/", nodes.node_page, name="node"),
    path("dags/<int:dag_id>/nodes/<slug:event>/", nodes.steer_nodes, name="steer-nodes"),
    path(
        "dags/<int:dag_id>/scripts/<int:run_id>/output", nodes.script_output, name="script-output"
    ),
    path("placements/", placements.placement_list, name="placements"),
    path("placements/<int:request_id>/", placements.placement_page, name="placement"),
    path("placements/<int:request_id>/remove/", placements.remove, name="remove-placement"),
    path("jobs/", jobs.job_list, name="jobs"),
    path("jobs/<int:job_id>/", jobs.job_page, name="job"),
    path("jobs/<int:job_id>/steer/<slug:event>/", jobs.steer, name="steer-job"),
    path(
        "jobs/<int:job_id>/attempts/<int:number>/streams/<slug:kind>",
        files.attempt_stream,
        name="attempt-stream",
    ),
    path(
        "jobs/<int:job_id>/attempts/<int:number>/<slug:kind>/<path:path>",
        files.attempt_file,
        name="attempt-file",
    ),
    path("task-queues/", task_queues.task_queue_list, name="task-queues"),
    path("task-queues/<int:task_queue_id>/", task_queues.task_queue_page, name="task-queue"),
    path("sites/", sites.site_list, name="sites"),
    path("sites/<str:name>/", sites.site_page, name="site"),
    path("sites/<str:name>/queues/<str:queue>/", queues.queue_page, name="queue"),
    path("sites/<str:name>/downtimes/", downtimes.add, name="site-downtimes"),
    path(
        "sites/<str:name>/downtimes/<int:downtime_id>/cancel/",
        downtimes.cancel,
        name="cancel-downtime",
    ),
    path("sites/<str:name>/steer/<slug:event>/", sites.steer, name="steer-site"),
    path("pilots/", pilots.pilot_list, name="pilots"),
    path("pilots/<int:pilot_id>/", pilots.pilot_page, name="pilot"),
    path("pilots/<int:pilot_id>/log/", pilots.pilot_log, name="pilot-log"),
    path("pilots/<int:pilot_id>/log/file", pilots.pilot_log_file, name="pilot-log-file"),
    path("pilots/<int:pilot_id>/drain/", pilots.drain, name="drain-pilot"),
    path("explain/", explain.explain, name="explain"),
    path("negotiation/", negotiation.negotiation, name="negotiation"),
    path("shares/", shares.shares, name="shares"),
    path("efficiency/", efficiency.efficiency, name="efficiency"),
    path("history/", history.history, name="history"),
    path("history/<slug:panel>.json", history.history_data, name="history-data"),
    path("history/<slug:panel>/", history.history_table, name="history-table"),
]
