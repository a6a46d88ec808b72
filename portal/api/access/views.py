"""Endpoints that tell who is calling, and which version of the portal answers."""

from __future__ import annotations

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.access.shapes import MeSerializer, VersionSerializer
from portal.api.base import caller
from portal.config.instance import instance_of
from portal.config.version import product_version
from wms.accounting.selectors import names_of_own_groups
from wms.core.models import ApiToken, Role
from wms.core.policy import has_role
from wms.sites.selectors import names_of_administered_sites


class Me(APIView):
    """Account and token of the request."""

    @extend_schema(
        operation_id="me", summary="Who you are, and what you may do", responses={200: MeSerializer}
    )
    def get(self, request: Request) -> Response:
        """Account, roles, groups and token of the request."""
        user, token = caller(request), request.auth
        told = {
            "username": user.username,
            "full_name": user.get_full_name(),
            "email": user.email,
            "role": user.role,
            "permissions": [role for role in Role.values if has_role(user, Role(role))],
            "groups": names_of_own_groups(user),
            "administered_sites": names_of_administered_sites(user),
            "token": token if isinstance(token, ApiToken) else None,
        }
        return Response(MeSerializer(told).data)


class Version(APIView):
    """Version of the portal."""

    @extend_schema(
        operation_id="version", summary="Version of the portal", responses={200: VersionSerializer}
    )
    def get(self, request: Request) -> Response:
        """Product, version, and which portal it is."""
        told = {
            "product": "Pilotage",
            "version": product_version(),
            "api": "v1",
            "portal": instance_of(settings.SECRET_KEY),
        }
        return Response(VersionSerializer(told).data)
