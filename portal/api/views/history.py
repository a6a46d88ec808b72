"""What the round-robin archives hold."""

from __future__ import annotations

from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from matching.rings import ARCHIVES
from portal.api.history_serializers import HistorySerializer
from portal.api.views.base import refusals
from wms.core.errors import Finding, InvalidInput
from wms.history.selectors import read_series

_ARCHIVES = [archive.name for archive in ARCHIVES]
_MAX_SERIES = 50


class History(APIView):
    """Counts of DAGs, jobs and pilots by state over time."""

    @extend_schema(
        summary="Read series of an archive",
        parameters=[
            OpenApiParameter(
                "series",
                OpenApiTypes.STR,
                many=True,
                required=True,
                description="Name such as `jobs.running`; may be given several times.",
            ),
            OpenApiParameter("archive", OpenApiTypes.STR, enum=_ARCHIVES, default=_ARCHIVES[0]),
        ],
        responses={200: HistorySerializer, **refusals(400)},
    )
    def get(self, request: Request) -> Response:
        """Answer with the bins of each series, oldest first; gaps stay gaps."""
        names = list(dict.fromkeys(request.query_params.getlist("series")))
        archive = request.query_params.get("archive", _ARCHIVES[0])
        _check(request, names, archive)
        series = read_series(names, archive=archive, now=timezone.now())
        body = {
            "archive": archive,
            "series": [{"name": name, "bins": points} for name, points in series.items()],
        }
        return Response(HistorySerializer(body).data)


def _check(request: Request, names: list[str], archive: str) -> None:
    findings = [
        Finding("unknown; known are archive, series", field=name)
        for name in sorted(set(request.query_params) - {"archive", "series"})
    ]
    if not 1 <= len(names) <= _MAX_SERIES:
        findings.append(Finding(f"name 1 to {_MAX_SERIES} series", field="series"))
    if any("\0" in name for name in names):
        findings.append(Finding("contains a null character", field="series"))
    if archive not in _ARCHIVES:
        findings.append(Finding(f"must be one of {', '.join(_ARCHIVES)}", field="archive"))
    if findings:
        raise InvalidInput(findings)
