"""Addresses of the pilot API; to be included under `pilot/v1/`."""

from __future__ import annotations

from django.urls import path

from portal.pilot_api import views

app_name = "pilot_api"

_ATTEMPT = "jobs/<int:job>/<int:attempt>"

urlpatterns = [
    path("agent.pyz", views.agent, name="agent"),
    path("register", views.register, name="register"),
    path("heartbeat", views.heartbeat, name="heartbeat"),
    path("claim", views.claim, name="claim"),
    path(f"{_ATTEMPT}/inputs/<path:path>", views.input_file, name="input-file"),
    path(f"{_ATTEMPT}/files/<slug:kind>/<path:path>", views.sent_file, name="sent-file"),
    path(f"{_ATTEMPT}/report", views.report, name="report"),
    path("end", views.end, name="end"),
]
