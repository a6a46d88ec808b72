"""Endpoint of the calendar of downtimes, to which programs subscribe by its address."""

from __future__ import annotations

from datetime import timedelta

from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.settings import api_settings
from rest_framework.views import APIView

from portal.api.authentication import AddressTokenAuthentication
from portal.api.base import AcceptsAnything, caller, refusals
from portal.shared.address_tokens import PARAMETER
from wms.core.errors import Finding, InvalidInput, NotFound
from wms.core.models import User
from wms.exchange.downtimes.calendar_export import calendar_of
from wms.sites.downtimes.models import Downtime
from wms.sites.selectors import visible_downtimes, visible_sites

#: Downtimes that ended longer ago are left out, and so are those beyond so many.
_KEPT_FOR = timedelta(days=30)
_MOST = 2000
_MOST_SITES = 50


class DowntimeCalendar(APIView):
    """Downtimes as a calendar: those to come, those now, and those of the last 30 days."""

    content_negotiation_class = AcceptsAnything
    authentication_classes = (
        AddressTokenAuthentication,
        *api_settings.DEFAULT_AUTHENTICATION_CLASSES,
    )

    @extend_schema(
        summary="Take the downtimes as a calendar",
        description="iCalendar (RFC 5545). A program that cannot send a header may have the token "
        "in the address, if that may do nothing but read.",
        parameters=[
            OpenApiParameter("site", OpenApiTypes.STR, many=True, description="Of these sites."),
            OpenApiParameter(
                PARAMETER, OpenApiTypes.STR,
                description="A token whose only scope is `read`, instead of a header.",
            ),
        ],
        responses={
            (200, "text/calendar"): OpenApiResponse(OpenApiTypes.STR),
            **refusals(400, 403, 404),
        },
    )  # fmt: skip
    def get(self, request: Request) -> HttpResponse:
        """Answer with the calendar; the names of its events stay the same."""
        user, now = caller(request), timezone.now()
        _check(request)
        rows = visible_downtimes(user).filter(end__gt=now - _KEPT_FOR)
        if names := request.query_params.getlist("site"):
            rows = rows.filter(site__name__in=_visible(user, names))

        def address_of(downtime: Downtime) -> str:
            return request.build_absolute_uri(reverse("web:downtime", args=[downtime.pk]))

        host = request.get_host().partition(":")[0]
        body = calendar_of(rows.order_by("-start", "-pk")[:_MOST], host=host, address_of=address_of)
        answer = HttpResponse(body, content_type="text/calendar; charset=utf-8")
        answer["Content-Disposition"] = 'attachment; filename="downtimes.ics"'
        # The address may have a token in it.
        answer["Referrer-Policy"] = "no-referrer"
        answer["Cache-Control"] = "private, no-cache"
        return answer


def _visible(user: User, names: list[str]) -> list[str]:
    """Names as given, if each is of a site that the user may see. Raises NotFound."""
    found = set(visible_sites(user).filter(name__in=names).values_list("name", flat=True))
    if missing := sorted(set(names) - found):
        raise NotFound(f"There is no site {', '.join(missing)}.")
    return names


def _check(request: Request) -> None:
    unknown = sorted(set(request.query_params) - {"site", PARAMETER})
    findings = [Finding("unknown; known are site and token", field=name) for name in unknown]
    names = request.query_params.getlist("site")
    if len(names) > _MOST_SITES:
        findings.append(Finding(f"name {_MOST_SITES} sites at most", field="site"))
    findings += [
        Finding("contains a null character", field="site") for name in names if "\0" in name
    ]
    if findings:
        raise InvalidInput(findings)
