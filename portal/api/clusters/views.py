"""Endpoints of clusters: list, detail, jobs, faulty rows, events, description; check of jobs.

Also the base of endpoints to which jobs are submitted, with its bodies and key in the schema.
"""

from __future__ import annotations

from dataclasses import asdict

from django.db.models import QuerySet
from django.http import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.generics import RetrieveAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.base import AcceptsAnything, ListView, caller, refusals
from portal.api.clusters import shapes
from portal.api.clusters.submissions import PARSERS, read_submission
from portal.api.downloads import CONTENT, send_blob
from portal.api.idempotency import created
from portal.api.jobs.shapes import JobSerializer
from portal.api.pagination import ByProcess
from portal.api.uploads import TakesFiles
from portal.lists.cluster_filter import ClusterFilter
from portal.lists.job_filter import JobFilter
from wms.core.actors import Actor
from wms.core.heavy import heavy_place
from wms.core.models import Role
from wms.core.policy import require_role
from wms.jobs.clusters import selectors
from wms.jobs.clusters.submit import check_submission, submit_cluster
from wms.jobs.models import Cluster, ClusterEvent, ClusterFault, Job

#: What a submission may be sent as.
BODIES = {
    "application/json": shapes.DescriptionSerializer,
    "multipart/form-data": shapes.JobSubmissionSerializer,
    "text/plain": OpenApiTypes.STR,
}


class TakesJobs(TakesFiles):
    """An endpoint that is sent jobs."""

    parser_classes = PARSERS

    def store(self, request: Request) -> Response:
        """Store the cluster of the request and answer with it."""
        user = caller(request)
        # Before anything is read.
        require_role(Actor.person(user), Role.USER, "submit jobs")
        submission = read_submission(request)
        with heavy_place(user):
            submitted = submit_cluster(submission, owner=user, actor=Actor.person(user))
        cluster = selectors.find_cluster(user, submitted.cluster.pk)
        body = shapes.SubmittedClusterSerializer(cluster).data
        return created(body, at=body["url"], is_new=submitted.is_new)


class CheckJobs(TakesJobs):
    """Check jobs."""

    @extend_schema(
        operation_id="jobs_check",
        summary="Check a description of jobs; nothing is stored",
        request=BODIES,
        responses={200: shapes.JobsCheckSerializer, **refusals(400, 403, 413, 429)},
    )
    def post(self, request: Request) -> Response:
        """All faults and warnings, and how many jobs it makes."""
        user = caller(request)
        require_role(Actor.person(user), Role.USER, "check jobs")
        submission = read_submission(request)
        with heavy_place(user):
            checked = check_submission(submission, owner=user)
        findings = [asdict(finding) for finding in checked.findings]
        return Response(
            {
                "is_faultless": not findings,
                "size": 0 if findings else checked.size,
                "findings": findings,
                "warnings": [asdict(warning) for warning in checked.warnings],
            }
        )


class ClusterList(ListView):
    """Clusters, latest first."""

    queryset = Cluster.objects.none()
    serializer_class = shapes.ClusterSerializer
    filterset_class = ClusterFilter

    def get_queryset(self) -> QuerySet[Cluster]:
        """Everything that the caller may see."""
        return selectors.listed_clusters(caller(self.request))


class ClusterDetail(RetrieveAPIView[Cluster]):
    """One cluster with its progress."""

    queryset = Cluster.objects.none()
    serializer_class = shapes.ClusterDetailSerializer
    lookup_url_kwarg = "cluster_id"

    def get_queryset(self) -> QuerySet[Cluster]:
        """Everything that the caller may see."""
        return selectors.listed_clusters(caller(self.request))


class ClusterJobList(ListView):
    """The jobs that were made of a cluster, by their numbers in it."""

    queryset = Job.objects.none()
    serializer_class = JobSerializer
    filterset_class = JobFilter
    pagination_class = ByProcess

    def get_queryset(self) -> QuerySet[Job]:
        """The cluster's jobs with what a list shows."""
        user = caller(self.request)
        cluster = selectors.find_cluster(user, self.kwargs["cluster_id"])
        return selectors.jobs_of_cluster(user, cluster).select_related("owner")


class ClusterFaultList(ListView):
    """Rows of a cluster that no job could be made of, by number; the first of very many."""

    queryset = ClusterFault.objects.none()
    serializer_class = shapes.ClusterFaultSerializer
    pagination_class = ByProcess

    def get_queryset(self) -> QuerySet[ClusterFault]:
        """The faults with their reasons."""
        user = caller(self.request)
        return selectors.faults_of(selectors.find_cluster(user, self.kwargs["cluster_id"]))


class ClusterEventList(ListView):
    """Events of a cluster, newest first."""

    queryset = ClusterEvent.objects.none()
    serializer_class = shapes.ClusterEventSerializer

    def get_queryset(self) -> QuerySet[ClusterEvent]:
        """The cluster's events."""
        user = caller(self.request)
        return selectors.events_of_cluster(selectors.find_cluster(user, self.kwargs["cluster_id"]))


class ClusterDescription(APIView):
    """The description of a cluster."""

    content_negotiation_class = AcceptsAnything

    @extend_schema(
        summary="Download the description of a cluster as it was submitted",
        responses={**CONTENT, **refusals(404)},
    )
    def get(self, request: Request, cluster_id: int) -> HttpResponseBase:
        """Send the text, in submit language or JSON; rows sent in JSON are not in it."""
        cluster = selectors.find_cluster(caller(request), cluster_id)
        name = "description.json" if cluster.language == Cluster.Language.JSON else "job.sub"
        return send_blob(request, cluster.description, name=name)
