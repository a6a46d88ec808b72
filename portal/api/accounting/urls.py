"""URL patterns of accounts in the API: use, submitters, groups, limits, negotiation cycles."""

from __future__ import annotations

from django.urls import path, re_path

from portal.api.accounting import concurrency_limits, efficiency, groups, views
from portal.api.negotiation import views as negotiation

urlpatterns = [
    path("efficiency/", efficiency.Efficiency.as_view(), name="efficiency"),
    path("submitters/", views.SubmitterList.as_view(), name="submitters"),
    path("submitters/<int8:submitter_id>/", views.SubmitterDetail.as_view(), name="submitter"),
    path("groups/", groups.GroupList.as_view(), name="groups"),
    re_path("^groups/(?P<group>[A-Za-z0-9_.-]+)/$", groups.GroupDetail.as_view(), name="group"),
    path("limits/", concurrency_limits.LimitList.as_view(), name="limits"),
    re_path(
        "^limits/(?P<limit>[a-z0-9_.*]+)/$",
        concurrency_limits.LimitDetail.as_view(),
        name="concurrency-limit",
    ),
    path("negotiation-cycles/", negotiation.CycleList.as_view(), name="negotiation-cycles"),
    path(
        "negotiation-cycles/<int8:cycle_id>/",
        negotiation.CycleDetail.as_view(),
        name="negotiation-cycle",
    ),
]
