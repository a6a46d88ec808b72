"""All addresses of the portal."""

from __future__ import annotations

from django.urls import include, path, register_converter

from portal import health
from portal.admin.site import site as admin_site
from portal.storable import Int8

register_converter(Int8, "int8")

handler400 = "portal.errors.bad_request"
handler403 = "portal.errors.forbidden"
handler404 = "portal.errors.not_found"
handler500 = "portal.errors.server_error"

urlpatterns = [
    path("health/live", health.live, name="health-live"),
    path("health/ready", health.ready, name="health-ready"),
    path("admin/", admin_site.urls),
    path("api/v1/", include("portal.api.urls")),
    path("pilot/v1/", include("portal.pilot_api.urls")),
    path("", include("portal.web.urls")),
]
