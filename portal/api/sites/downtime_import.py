"""Endpoint and serializers that import downtimes from a calendar or GOCDB, with a preview."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.base import caller, refusals
from portal.api.sites.exchange import AnyAnswer
from portal.api.uploads import TextBody, refuse_large_body
from wms.core.actors import Actor
from wms.core.heavy import heavy_place
from wms.exchange.downtimes.entries import MAX_BYTES, ImportOptions, site_names
from wms.exchange.downtimes.importing import (
    DowntimeOutcome,
    import_downtimes,
    preview_downtimes,
    require_importing,
)


class DowntimeStepSerializer(serializers.Serializer[Any]):
    """Outcome of one entry of the document at one site."""

    uid = serializers.CharField(help_text="Its name in its source.")
    place = serializers.CharField(help_text="Its place as the source names it.")
    site = serializers.CharField(help_text="Empty where none of ours is meant.")
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    reason = serializers.CharField()
    outcome = serializers.ChoiceField([(each.value, each.value) for each in DowntimeOutcome])
    note = serializers.CharField(help_text="Why it is skipped or cancelled, or what it was.")


class DowntimePlanSerializer(serializers.Serializer[Any]):
    """Plan of an import of downtimes; `token` names exactly this plan."""

    is_stored = serializers.BooleanField()
    token = serializers.CharField()
    counts = serializers.DictField(child=serializers.IntegerField())
    steps = DowntimeStepSerializer(many=True)


class OptionsSerializer(serializers.Serializer[Any]):
    """Options of an import, as parameters of the address."""

    source = serializers.CharField()
    site = serializers.ListField(child=serializers.CharField(), default=list)
    default_site = serializers.CharField(default="", allow_blank=True)
    zone = serializers.CharField(default="UTC")
    lead_time_s = serializers.IntegerField(default=0)
    is_complete = serializers.BooleanField(default=False)
    overwrites = serializers.BooleanField(default=False)
    dry_run = serializers.BooleanField(default=False)
    token = serializers.CharField(default="", allow_blank=True)
    reason = serializers.CharField(default="", allow_blank=True, max_length=2000)


class CalendarText(TextBody):
    """Parser of a calendar."""

    media_type = "text/calendar"
    name = "document"
    most_bytes = MAX_BYTES
    location = {"file": "document"}


class XmlText(CalendarText):
    """Parser of GOCDB's XML."""

    media_type = "application/xml"


_PARAMETERS = [
    OpenApiParameter("source", str, required=True, description="Where it is from: gocdb."),
    OpenApiParameter("site", str, many=True, description="A name as `CERN-PROD=CERN`."),
    OpenApiParameter("default_site", str, description="Of entries that name no known place."),
    OpenApiParameter("zone", str, description="Of times without a zone, and of whole days."),
    OpenApiParameter("lead_time_s", int),
    OpenApiParameter("is_complete", bool, description="Cancel what the source has no more."),
    OpenApiParameter("overwrites", bool, description="Also what people have changed since."),
    OpenApiParameter("dry_run", bool, description="Tell the plan, and store nothing."),
    OpenApiParameter("token", str, description="That of the plan which shall be stored."),
    OpenApiParameter("reason", str, description="Why; needed to store."),
]


class DowntimeImport(APIView):
    """Import of downtimes from a document that is sent."""

    content_negotiation_class = AnyAnswer
    parser_classes = (CalendarText, XmlText)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse what is too large by its announced length."""
        refuse_large_body(request._request, limit_bytes=MAX_BYTES)
        super().initial(request, *args, **kwargs)

    @extend_schema(
        summary="Import downtimes from a calendar or GOCDB",
        operation_id="downtimes_import",
        tags=["downtimes"],
        parameters=_PARAMETERS,
        request={
            "text/calendar": OpenApiTypes.STR,
            "application/xml": OpenApiTypes.STR,
        },
        responses={200: DowntimePlanSerializer, **refusals(400, 403, 409)},
    )
    def post(self, request: Request) -> Response:
        """Tell the plan with `dry_run=true`; store it, whole or not at all, with its `token`.

        Where anything else would be done by now, nothing is stored: 409.
        """
        require_importing(Actor.person(caller(request)))
        asked = OptionsSerializer(data=_of_address(request))
        asked.is_valid(raise_exception=True)
        given = dict(asked.validated_data)
        is_dry, token, reason = (given.pop(name) for name in ("dry_run", "token", "reason"))
        if is_dry == bool(token):
            raise ValidationError({"token": "give dry_run=true, or the token that it told"})
        options = ImportOptions(sites=site_names(given.pop("site")), **given)
        text = request.data if isinstance(request.data, str) else ""
        user, content, now = caller(request), text.encode(), timezone.now()
        actor = Actor.person(user)
        with heavy_place(user):
            if is_dry:
                plan = preview_downtimes(content, options, actor=actor, now=now)
            else:
                plan = import_downtimes(
                    content, options, token=token, actor=actor, reason=reason, now=now
                )
        payload = {
            "is_stored": not is_dry, "token": plan.token, "counts": plan.counts,
            "steps": plan.steps,
        }  # fmt: skip
        return Response(DowntimePlanSerializer(payload).data)


def _of_address(request: Request) -> dict[str, Any]:
    given: dict[str, Any] = request.query_params.dict()
    return {**given, "site": request.query_params.getlist("site")}
