"""URL patterns of the factory API, included under `factory/v1/`."""

from __future__ import annotations

from django.urls import path

from portal.factory_api.views import exchange, orders, report

app_name = "factory_api"

urlpatterns = [
    path("exchange", exchange, name="exchange"),
    path("report", report, name="report"),
    path("orders", orders, name="orders"),
]
