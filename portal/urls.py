"""URL patterns of the whole portal, with its error handlers and its converter of numbers."""

from __future__ import annotations

from django.urls import include, path, register_converter

from portal.admin.admin_site import site as admin_site
from portal.metrics.views import metrics
from portal.middleware.storable import Int8
from portal.shared import health_views

register_converter(Int8, "int8")

handler400 = "portal.middleware.errors.bad_request"
handler403 = "portal.middleware.errors.forbidden"
handler404 = "portal.middleware.errors.not_found"
handler500 = "portal.middleware.errors.server_error"

urlpatterns = [
    path("health/live", health_views.live, name="health-live"),
    path("health/ready", health_views.ready, name="health-ready"),
    path("metrics", metrics, name="metrics"),
    path("admin/", admin_site.urls),
    path("api/v1/", include("portal.api.urls")),
    path("pilot/v1/", include("portal.pilot_api.urls")),
    path("factory/v1/", include("portal.factory_api.urls")),
    path("", include("portal.web.urls")),
]
