"""The OpenAPI schema and its page, which works without a network and under the strict CSP."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.permissions import IsAuthenticated


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How a token is sent, in the schema's words."""

    target_class = "portal.api.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        """Describe the header."""
        return {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "description": "`Token plt_<prefix>_<secret>`",
        }


@extend_schema(exclude=True)
class Schema(SpectacularAPIView):
    """The schema as YAML or JSON, for who is logged in or holds a token."""

    permission_classes = (IsAuthenticated,)


@extend_schema(exclude=True)
class Docs(SpectacularSwaggerSplitView):
    """Swagger UI from our own static files; its script has an address of its own."""

    url_name = "api:schema"
