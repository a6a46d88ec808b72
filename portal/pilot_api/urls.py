"""URL patterns of the pilot API, included under `pilot/v1/`."""

from __future__ import annotations

from django.urls import path

from portal.pilot_api import provision, views

app_name = "pilot_api"

_ATTEMPT = "jobs/<int8:job>/<int8:attempt>"

urlpatterns = [
    path("manifests/<slug:sha256>", provision.manifest, name="manifest"),
    path("files/<slug:sha256>", provision.file, name="file"),
    path("unfit", provision.unfit, name="unfit"),
    path("checks", provision.checks, name="checks"),
    path("register", views.register, name="register"),
    path("heartbeat", views.heartbeat, name="heartbeat"),
    path("claim", views.claim, name="claim"),
    path(f"{_ATTEMPT}/inputs/<path:path>", views.input_file, name="input-file"),
    path(f"{_ATTEMPT}/files/<slug:kind>/<path:path>", views.sent_file, name="sent-file"),
    path(f"{_ATTEMPT}/links/<slug:kind>/<path:path>", views.link, name="link"),
    path(f"{_ATTEMPT}/streams/<slug:kind>", views.stream, name="stream"),
    path(f"{_ATTEMPT}/report", views.report, name="report"),
    path("log", views.pilot_log, name="log"),
    path("end", views.end, name="end"),
]
