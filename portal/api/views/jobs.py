"""Jobs: listed, read, and what they printed."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import FileResponse, HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.generics import RetrieveAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api import serializers
from portal.api.downloads import send_blob, send_tail
from portal.api.views.base import AcceptsAnything, ListView, caller, refusals
from portal.filters import JobFilter
from wms.dags.selectors import dags_of_jobs
from wms.jobs import selectors
from wms.jobs.models import AttemptFile, Job
from wms.pilots.selectors import pilot_uuids


class JobList(ListView):
    """Jobs, newest first."""

    queryset = Job.objects.none()
    serializer_class = serializers.JobSerializer
    filterset_class = JobFilter

    def get_queryset(self) -> QuerySet[Job]:
        """Everything that the caller may see."""
        return selectors.listed_jobs(caller(self.request))


class JobDetail(RetrieveAPIView[Job]):
    """One job with its payload, attempts and events."""

    queryset = Job.objects.none()
    serializer_class = serializers.JobDetailSerializer
    lookup_url_kwarg = "job_id"

    def get_queryset(self) -> QuerySet[Job]:
        """Jobs with all that belongs to them."""
        return selectors.jobs_with_all(caller(self.request))

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Answer with the job; its DAG and the names of its pilots are looked up once."""
        job = self.get_object()
        dag = dags_of_jobs([job]).get(job.pk)
        context = {
            "dag_id": dag.pk if dag is not None else None,
            "pilot_uuids": pilot_uuids(attempt.pilot_id for attempt in job.attempts.all()),
        }
        return Response(self.get_serializer_class()(job, context=context).data)


class _JobLog(APIView):
    """What a job printed, as far as a pilot sent it."""

    content_negotiation_class = AcceptsAnything
    kind: AttemptFile.Kind

    def send(self, request: Request, job_id: int) -> HttpResponse | FileResponse:
        """Send the end of it, or all of it with `full=1`."""
        job = selectors.find_job(caller(request), job_id)
        file = selectors.find_log(job, kind=self.kind, attempt=_attempt_number(request))
        if _is_full(request):
            return send_blob(file.blob, name=f"job-{job.pk}.{self.kind.value}")
        return send_tail(file.blob)


def _is_full(request: Request) -> bool:
    text = request.query_params.get("full", "0")
    if text not in {"0", "1"}:
        raise ValidationError({"full": "must be 0 or 1"})
    return text == "1"


def _attempt_number(request: Request) -> int | None:
    text = request.query_params.get("attempt")
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 4:
        raise ValidationError({"attempt": "must be the number of an attempt"})
    return int(text)


_log_schema = extend_schema(
    parameters=[
        OpenApiParameter("full", OpenApiTypes.INT, description="1: all of it, as a download"),
        OpenApiParameter(
            "attempt", OpenApiTypes.INT, description="default: the latest that has one"
        ),
    ],
    responses={
        (200, "text/plain"): OpenApiTypes.STR,
        (200, "application/octet-stream"): OpenApiTypes.BINARY,
        **refusals(400, 404),
    },
)


class JobStdout(_JobLog):
    """Standard output of a job."""

    kind = AttemptFile.Kind.STDOUT

    @_log_schema
    def get(self, request: Request, job_id: int) -> HttpResponse | FileResponse:
        """Send the last 64 KiB, or all."""
        return self.send(request, job_id)


class JobStderr(_JobLog):
    """Standard error of a job."""

    kind = AttemptFile.Kind.STDERR

    @_log_schema
    def get(self, request: Request, job_id: int) -> HttpResponse | FileResponse:
        """Send the last 64 KiB, or all."""
        return self.send(request, job_id)
