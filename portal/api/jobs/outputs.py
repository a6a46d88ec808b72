"""Endpoints and serializers of the outputs of a job: list, single files, and an archive of all."""

from __future__ import annotations

from django.http import HttpResponseBase, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from portal.api.base import AcceptsAnything, caller, refusals
from portal.api.downloads import CONTENT, send_content
from portal.shared.sandbox_archives import send_archive_of_job
from wms.jobs.models import AttemptFile
from wms.jobs.sandboxes.files import SandboxFile, find_sandbox_file, sandbox_files
from wms.jobs.sandboxes.leases import lease_of_job, require_kept
from wms.jobs.selectors import find_job


class OutputSerializer(serializers.Serializer[SandboxFile]):
    """A file of a job's sandbox."""

    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=AttemptFile.Kind.choices)
    size_bytes = serializers.IntegerField()
    sha256 = serializers.CharField()
    url = serializers.SerializerMethodField(help_text="Where to download it.")

    def get_url(self, file: SandboxFile) -> str:
        """Address of the file."""
        where = {"job_id": self.context["job_id"], "path": file.name}
        return reverse("api:job-output", kwargs=where, request=self.context["request"])


class OutputListSerializer(serializers.Serializer[None]):
    """The files of a job's sandbox."""

    state = serializers.CharField(help_text="Of the job: before its end there are no files.")
    kept_until = serializers.DateTimeField(
        allow_null=True, help_text="Null: for as long as the job itself, or its cluster runs."
    )
    size_bytes = serializers.IntegerField(help_text="Of all files.")
    files = OutputSerializer(many=True)


class JobOutputList(APIView):
    """The outputs of a job that has ended."""

    @extend_schema(
        operation_id="jobs_outputs_list",
        summary="List the outputs of a job",
        responses={200: OutputListSerializer, **refusals(404)},
    )
    def get(self, request: Request, job_id: int) -> Response:
        """Files of the attempt that ended the job, by name, its logs among them."""
        job = find_job(caller(request), job_id)
        require_kept(job)
        files, lease = sandbox_files(job), lease_of_job(job)
        shown = {
            "state": job.state,
            "kept_until": lease.kept_until if lease is not None else None,
            "size_bytes": sum(file.size_bytes for file in files),
            "files": files,
        }
        context = {"job_id": job.pk, "request": request}
        return Response(OutputListSerializer(shown, context=context).data)


class JobOutput(APIView):
    """One output of a job."""

    content_negotiation_class = AcceptsAnything

    @extend_schema(
        operation_id="jobs_outputs_download",
        summary="Download an output of a job",
        responses={**CONTENT, **refusals(404)},
    )
    def get(self, request: Request, job_id: int, path: str) -> HttpResponseBase:
        """Send the content as it is, to be saved and not shown."""
        job = find_job(caller(request), job_id)
        require_kept(job)
        file = find_sandbox_file(job, path)
        return send_content(request, file.sha256, size_bytes=file.size_bytes, name=file.name)


class JobOutputArchive(APIView):
    """All outputs of a job."""

    content_negotiation_class = AcceptsAnything

    @extend_schema(
        operation_id="jobs_outputs_archive",
        summary="Download the outputs of a job as one tar",
        responses={(200, "application/x-tar"): OpenApiTypes.BINARY, **refusals(404, 429)},
    )
    def get(self, request: Request, job_id: int) -> StreamingHttpResponse:
        """Send a tar with a folder named after the job's process; its last file is the manifest."""
        user = caller(request)
        return send_archive_of_job(user, find_job(user, job_id))
