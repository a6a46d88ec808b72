"""Endpoint and serializers that export and import sites as YAML or JSON, with a preview."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.base import caller, refusals
from portal.api.shapes import FindingSerializer
from portal.api.uploads import TextBody, refuse_large_body
from wms.core.actors import Actor
from wms.core.heavy import heavy_place
from wms.exchange.site_import import import_sites, preview_import
from wms.exchange.yaml_reader import MAX_BYTES
from wms.exchange.yaml_writer import export_sites
from wms.sites.policy import require_configuring_some

MEDIA_TYPE = "application/yaml"


class FieldChangeSerializer(serializers.Serializer[Any]):
    """A field with its value before and after."""

    name = serializers.CharField()
    old = serializers.JSONField(allow_null=True)
    new = serializers.JSONField(allow_null=True)


class ImportStepSerializer(serializers.Serializer[Any]):
    """Change of one row by the document."""

    kind = serializers.CharField()
    title = serializers.CharField()
    line = serializers.IntegerField()
    outcome = serializers.CharField(help_text="created, changed, unchanged or refused.")
    changes = FieldChangeSerializer(many=True)
    faults = FindingSerializer(many=True)


class ImportPlanSerializer(serializers.Serializer[Any]):
    """Plan of an import; `token` names exactly this plan."""

    is_stored = serializers.BooleanField()
    token = serializers.CharField()
    counts = serializers.DictField(child=serializers.IntegerField())
    steps = ImportStepSerializer(many=True)


class YamlText(TextBody):
    """Parser of a YAML document."""

    media_type = MEDIA_TYPE
    name = "document"
    most_bytes = MAX_BYTES
    location = {"file": "YAML"}


class JsonText(YamlText):
    """JSON is YAML, too."""

    media_type = "application/json"


class AnyAnswer(DefaultContentNegotiation):
    """Reads what is sent by its type; answers as it does, whatever was asked for."""

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> tuple[Any, str]:
        """Choose the first renderer."""
        return renderers[0], renderers[0].media_type


class SiteDocument(APIView):
    """Sites with their queues and limits, as YAML."""

    content_negotiation_class = AnyAnswer
    parser_classes = (YamlText, JsonText)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse what is too large by its announced length."""
        refuse_large_body(request._request, limit_bytes=MAX_BYTES)
        super().initial(request, *args, **kwargs)

    @extend_schema(
        summary="Export sites as YAML",
        operation_id="sites_export",
        tags=["sites"],
        parameters=[
            OpenApiParameter("site", str, many=True, description="Only the sites of these names.")
        ],
        responses={
            (200, MEDIA_TYPE): OpenApiResponse(OpenApiTypes.OBJECT, "The document."),
            **refusals(403),
        },
    )
    def get(self, request: Request) -> HttpResponse:
        """Sites that the caller may configure, without credentials."""
        names = request.query_params.getlist("site")
        text = export_sites(Actor.person(caller(request)), names)
        return HttpResponse(text, content_type=f"{MEDIA_TYPE}; charset=utf-8")

    @extend_schema(
        summary="Import sites from YAML, after a preview",
        operation_id="sites_import",
        tags=["sites"],
        parameters=[
            OpenApiParameter("dry_run", bool, description="Store nothing: tell what would be."),
            OpenApiParameter("token", str, description="That of the preview: store what it told."),
            OpenApiParameter("reason", str, description="It stands in the history of each site."),
        ],
        request={MEDIA_TYPE: OpenApiTypes.OBJECT, "application/json": OpenApiTypes.OBJECT},
        responses={200: ImportPlanSerializer, **refusals(400, 403, 409, 413, 429)},
    )
    def post(self, request: Request) -> Response:
        """First with `dry_run=true`, then with the `token` of that answer.

        All of it is stored or nothing. What was changed since the preview is not overwritten: 409.
        """
        user = caller(request)
        actor = Actor.person(user)
        require_configuring_some(actor, "import sites")
        text = request.data if isinstance(request.data, str) else ""
        is_dry = request.query_params.get("dry_run", "false").lower() in {"true", "1"}
        token = request.query_params.get("token", "")
        if is_dry == bool(token):
            raise ValidationError({"token": "give dry_run=true, or the token that it told"})
        with heavy_place(user):
            if is_dry:
                plan = preview_import(text, actor=actor)
            else:
                reason = request.query_params.get("reason", "")[:2000]
                plan = import_sites(text, token=token, actor=actor, reason=reason)
        payload = {
            "is_stored": not is_dry, "token": plan.token, "counts": plan.counts,
            "steps": plan.steps,
        }  # fmt: skip
        return Response(ImportPlanSerializer(payload).data)
