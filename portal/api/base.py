"""Base classes of API endpoints: filtered list, and content negotiation of file downloads.

Also the calling user, `reason` and `full` in a query string, and refusals in the schema.
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.exceptions import ValidationError
from rest_framework.generics import ListAPIView
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.serializers import CharField

from portal.api.filtering import StrictFilters
from portal.api.problems import CONTENT_TYPE
from portal.api.shapes import ProblemSerializer
from wms.core.models import User

_REFUSALS = {
    400: "Faults of the input; nothing was changed.",
    403: "You may not do this; the detail says why.",
    404: "No such object, or you may not see it.",
    409: "Its state, or another content under the same `Idempotency-Key`, forbids it.",
    429: "You ask for too much at once; `Retry-After` tells when it may be asked again.",
    413: "The upload is larger than allowed.",
}


def refusals(*statuses: int) -> dict[tuple[int, str], OpenApiResponse]:
    """Schema entries of refusals with these statuses."""
    return {
        (status, CONTENT_TYPE): OpenApiResponse(ProblemSerializer, _REFUSALS[status])
        for status in statuses
    }


class ListView(ListAPIView[Any]):
    """A list, one page at a time, with strict filters."""

    filter_backends = (StrictFilters,)


class AcceptsAnything(BaseContentNegotiation):
    """Content negotiation of endpoints that send a file; errors are JSON whatever was asked for."""

    def select_renderer(
        self, request: Request, renderers: list[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """Choose the first renderer."""
        return renderers[0], renderers[0].media_type or ""


def caller(request: Request) -> User:
    """User of the session or token; permission classes let nobody else in."""
    user = request.user
    assert isinstance(user, User)
    return user


#: For what has no room for a reason in its body.
WHY = OpenApiParameter("reason", str, description="Why; it stands in the audit trail.")


def why_of(request: Request) -> str:
    """Reason in the query string; empty without one. Raises ValidationError."""
    field = CharField(required=False, allow_blank=True, max_length=2000)
    try:
        return str(field.run_validation(request.query_params.get("reason", "")))
    except ValidationError as error:
        raise ValidationError({"reason": error.detail}) from error


def wants_all(request: Request) -> bool:
    """Whether the whole text is requested, not only its end. Raises ValidationError."""
    text = request.query_params.get("full", "0")
    if text not in {"0", "1"}:
        raise ValidationError({"full": "must be 0 or 1"})
    return text == "1"
