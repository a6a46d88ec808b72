"""Endpoint of the outputs of a cluster: all of them, or of some of its jobs, as one archive."""

from __future__ import annotations

from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.views import APIView

from portal.api.base import AcceptsAnything, caller, refusals
from portal.lists.job_filter import JobFilter
from portal.shared.sandbox_archives import send_archive_of_cluster
from wms.jobs.clusters.selectors import find_cluster, jobs_of_cluster
from wms.jobs.models import Job
from wms.jobs.states import JobState


class ClusterOutputArchive(APIView):
    """Outputs of a cluster."""

    content_negotiation_class = AcceptsAnything

    @extend_schema(
        operation_id="clusters_outputs_archive",
        summary="Download the outputs of a cluster as one tar",
        parameters=[
            OpenApiParameter(
                "state", str, enum=JobState.values, many=True,
                description="Only of jobs in these states. The other filters of the list of jobs "
                "are known too.",
            ),
        ],
        responses={(200, "application/x-tar"): OpenApiTypes.BINARY, **refusals(400, 404, 429)},
    )  # fmt: skip
    def get(self, request: Request, cluster_id: int) -> StreamingHttpResponse:
        """Send files as `PROCESS/name`, by number; the last is `MANIFEST.json`, or it was cut."""
        user = caller(request)
        cluster = find_cluster(user, cluster_id)
        jobs = _chosen(request, cluster_id, jobs_of_cluster(user, cluster))
        return send_archive_of_cluster(user, cluster, jobs)


def _chosen(request: Request, cluster_id: int, jobs: QuerySet[Job]) -> QuerySet[Job]:
    """Jobs of the cluster that pass the filters. Raises ValidationError."""
    known = set(JobFilter.base_filters) - {"sort"}
    if unknown := sorted(set(request.query_params) - known):
        hint = f"unknown; known are {', '.join(sorted(known))}"
        raise ValidationError(dict.fromkeys(unknown, hint))
    parameters = request.query_params.copy()
    # With it, names are looked for in all of its jobs.
    parameters["cluster"] = str(cluster_id)
    list_filter = JobFilter(parameters, queryset=jobs)
    if not list_filter.is_valid():
        raise ValidationError({name: list(texts) for name, texts in list_filter.errors.items()})
    found: QuerySet[Job] = list_filter.qs
    return found
