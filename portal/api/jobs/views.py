"""Endpoints of jobs: submit, list, detail, standard output and error, and actions such as kill.

Submitted jobs, even a single one, are stored as a cluster, which is the answer.
"""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponseBase
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.generics import RetrieveAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.actions import ActionView
from portal.api.base import AcceptsAnything, ListView, caller, refusals, wants_all
from portal.api.clusters.shapes import SubmittedClusterSerializer
from portal.api.clusters.views import BODIES, TakesJobs
from portal.api.downloads import CONTENT, send_blob
from portal.api.idempotency import IDEMPOTENCY_KEY
from portal.api.jobs import shapes
from portal.api.log_responses import PLACE_PARAMETERS, send_part
from portal.lists.job_filter import JobFilter
from portal.shared.ranged_downloads import send_in_pieces
from portal.shared.readable_logs import attempt_of, log_of_attempt
from wms.core.errors import NotFound
from wms.dags.reading.selectors import dags_of_jobs
from wms.jobs import selectors
from wms.jobs.models import AttemptFile, Job
from wms.jobs.output.streams import stream_text
from wms.jobs.sandboxes.leases import require_kept
from wms.pilots.selectors import pilots_of_attempts
from wms.placement.catalogue.locating import inputs_of


class JobList(TakesJobs, ListView):
    """Jobs, newest first."""

    queryset = Job.objects.none()
    serializer_class = shapes.JobSerializer
    filterset_class = JobFilter

    def get_queryset(self) -> QuerySet[Job]:
        """Everything that the caller may see."""
        return selectors.listed_jobs(caller(self.request))

    @extend_schema(
        summary="Submit jobs",
        request=BODIES,
        examples=[
            OpenApiExample(
                "A sweep of a hundred",
                {
                    "executable": "/bin/echo",
                    "arguments": "$(Process)",
                    "memory_mb": 500,
                    "queue": 100,
                },
                request_only=True,
                media_type="application/json",
            )
        ],
        parameters=[IDEMPOTENCY_KEY],
        responses={
            201: SubmittedClusterSerializer,
            200: SubmittedClusterSerializer,
            **refusals(400, 403, 409, 413, 429),
        },
    )
    def post(self, request: Request) -> Response:
        """Store one job or many as a cluster, or refuse them with every fault; then none is stored.

        The description is an object in JSON or a text in submit language. Files come with it in
        a form.
        """
        return self.store(request)


class JobDetail(RetrieveAPIView[Job]):
    """One job with its payload, attempts and events."""

    queryset = Job.objects.none()
    serializer_class = shapes.JobDetailSerializer
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
            "pilots": pilots_of_attempts(attempt.pilot_id for attempt in job.attempts.all()),
            "inputs": inputs_of(job),
        }
        return Response(self.get_serializer_class()(job, context=context).data)


class _JobLog(APIView):
    """Output of a job, as far as its pilot has sent it."""

    content_negotiation_class = AcceptsAnything
    kind: AttemptFile.Kind

    def send(self, request: Request, job_id: int) -> HttpResponseBase:
        """Send the end of it, another part, or all of it with `full=1`.

        Of an attempt that has not sent the file, what has come while it ran.
        """
        job = selectors.find_job(caller(request), job_id)
        number, is_full = _attempt_number(request), wants_all(request)
        if number is None:
            number = selectors.latest_printing(job, kind=self.kind)
        if number is None:
            require_kept(job)
            raise NotFound(f"Job {job.pk} has sent no {self.kind.label}.")
        if is_full:
            return self._send_all(request, job, number)
        log = log_of_attempt(attempt_of(job, number), self.kind.value, now=timezone.now())
        if log.missing:
            raise NotFound(log.missing)
        return send_part(request, log)

    def _send_all(self, request: Request, job: Job, number: int) -> HttpResponseBase:
        name = f"job-{job.pk}.{self.kind.value}"
        try:
            file = selectors.find_log(job, kind=self.kind, attempt=number)
        except NotFound:
            stream = selectors.find_stream(job, kind=self.kind, attempt=number)
            return send_in_pieces(request, stream_text(stream), name=name)
        return send_blob(request, file.blob, name=name)


def _attempt_number(request: Request) -> int | None:
    text = request.query_params.get("attempt")
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 4:
        raise ValidationError({"attempt": "must be the number of an attempt"})
    return int(text)


_log_schema = extend_schema(
    parameters=[
        *PLACE_PARAMETERS,
        OpenApiParameter(
            "attempt", OpenApiTypes.INT, description="default: the latest that has one"
        ),
    ],
    responses={
        (200, "text/plain"): OpenApiTypes.STR,
        **CONTENT,
        **refusals(400, 404),
    },
)


class JobStdout(_JobLog):
    """Standard output of a job."""

    kind = AttemptFile.Kind.STDOUT

    @_log_schema
    def get(self, request: Request, job_id: int) -> HttpResponseBase:
        """Send the last 64 KiB, another part, or all."""
        return self.send(request, job_id)


class JobStderr(_JobLog):
    """Standard error of a job."""

    kind = AttemptFile.Kind.STDERR

    @_log_schema
    def get(self, request: Request, job_id: int) -> HttpResponseBase:
        """Send the last 64 KiB, another part, or all."""
        return self.send(request, job_id)


class JobAction(ActionView):
    """One change of one job."""

    shape = shapes.JobSerializer

    def answer(self, request: Request, which: int, done: Job) -> Any:
        """The job."""
        return self.shape(done).data
