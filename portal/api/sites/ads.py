"""Endpoints of a site's ad: advertise, read it merged with the configuration, withdraw."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from matching.ads.classads import MAX_AD_BYTES
from portal.api.base import caller, refusals
from portal.api.idempotency import once
from portal.api.sites import shapes
from portal.api.uploads import AdText, JsonAdText, refuse_large_body
from wms.core.actors import Actor
from wms.sites.ads import current_ad
from wms.sites.advertising import advertise, invalidate
from wms.sites.selectors import find_visible_site


class Advertise(APIView):
    """Advertise a site."""

    parser_classes = (AdText, JsonAdText)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse what is too large by its announced length."""
        refuse_large_body(request._request, limit_bytes=MAX_AD_BYTES)
        super().initial(request, *args, **kwargs)

    @once()
    @extend_schema(
        request={"text/plain": OpenApiTypes.STR, "application/json": OpenApiTypes.OBJECT},
        responses={
            200: shapes.AdvertisementSerializer,
            201: shapes.AdvertisementSerializer,
            **refusals(400, 403, 409, 413),
        },
    )
    def post(self, request: Request) -> Response:
        """Merge an ad into that of the site it names, until its lifetime is over.

        The ad is in the old line format, the new `[ ... ]` format, or JSON. 201 when the site did
        not advertise before, 200 when it renewed or changed what it said.
        """
        text = request.data if isinstance(request.data, str) else ""
        actor = Actor.person(caller(request))
        advertised = advertise(text, actor=actor, now=timezone.now())
        body = shapes.AdvertisementSerializer(advertised.advertisement).data
        is_new = advertised.is_new
        return Response(body, status=status.HTTP_201_CREATED if is_new else status.HTTP_200_OK)


class Ad(APIView):
    """The ad of a site."""

    @extend_schema(
        summary="The ad of a site, and where each attribute comes from",
        responses={200: shapes.MergedAdSerializer, **refusals(404, 409)},
    )
    def get(self, request: Request, name: str) -> Response:
        """Merge configuration and advertisement anew, with the counts last published."""
        site = find_visible_site(caller(request), name)
        attributes = [
            {"name": attribute_name, "expression": each.expression, "source": each.source}
            for attribute_name, each in current_ad(site).items()
        ]
        ad = {
            "name": site.name,
            "advertisement": getattr(site, "advertisement", None),
            "attributes": attributes,
        }
        return Response(shapes.MergedAdSerializer(ad).data)

    @extend_schema(
        summary="Take back what a site advertises", responses={204: None, **refusals(403, 404)}
    )
    def delete(self, request: Request, name: str) -> Response:
        """Leave the site to its configuration; the old ad cannot be sent again."""
        invalidate(name, actor=Actor.person(caller(request)), now=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)
