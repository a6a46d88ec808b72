"""URL patterns of placements in the API: requests, credentials, storages, space, links,
files, the feeder."""

from __future__ import annotations

from django.urls import path, re_path

from portal.api.actions import view_of
from portal.api.placements import credentials, feeder, files, links, space, storages, views
from wms.actions.allocations import ALLOCATIONS
from wms.actions.sites_and_pilots import PLACEMENTS

_STORAGE = "(?P<storage>[A-Za-z0-9_.-]+)"

urlpatterns = [
    path(
        "placement-credentials/",
        credentials.PlacementCredentialList.as_view(),
        name="placement-credentials",
    ),
    path(
        "placement-credentials/<int8:placement_credential_id>/",
        credentials.PlacementCredentialDetail.as_view(),
        name="placement-credential",
    ),
    path("placement-links/", links.PlacementLinks.as_view(), name="placement-links"),
    path("placement-feeder/", feeder.PlacementFeeder.as_view(), name="placement-feeder"),
    path("placement-allocations/", space.AllocationList.as_view(), name="placement-allocations"),
    *(
        path(
            f"placement-allocations/<int8:allocation_id>/{action.name}/",
            view_of(action, space.AllocationAction),
            name=f"placement-allocation-{action.name}",
        )
        for action in ALLOCATIONS.in_api
    ),
    path("storages/", storages.StorageList.as_view(), name="storages"),
    re_path(f"^storages/{_STORAGE}/$", storages.StorageDetail.as_view(), name="storage"),
    path("logical-files/", files.LogicalFileList.as_view(), name="logical-files"),
    path(
        "logical-files/<int8:file_id>/",
        files.LogicalFileDetail.as_view(),
        name="logical-file",
    ),
    path(
        "logical-files/<int8:file_id>/remove/",
        files.LogicalFileRemoval.as_view(),
        name="logical-file-remove",
    ),
    path(
        "logical-files/<int8:file_id>/forget/",
        files.ReplicaForgetting.as_view(),
        name="logical-file-forget",
    ),
    path("placement-requests/", views.PlacementList.as_view(), name="placements"),
    path(
        "placement-requests/<int8:request_id>/",
        views.PlacementDetail.as_view(),
        name="placement",
    ),
    *(
        path(
            f"placement-requests/<int8:request_id>/{action.name}/",
            view_of(action, views.PlacementAction),
            name=f"placement-{action.name}",
        )
        for action in PLACEMENTS.in_api
    ),
]
