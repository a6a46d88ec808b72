"""Views of the OpenAPI schema and of Swagger UI, which works offline and under the strict CSP.

Also the schema's form of token authentication, and the refusals that every operation may answer.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from django.http import HttpResponse
from django.utils.http import content_disposition_header
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.settings import spectacular_settings
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.permissions import IsAuthenticated
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from portal.api.chosen_fields import FIELDS
from portal.api.idempotency import IDEMPOTENCY_KEY
from portal.shared.address_tokens import PARAMETER
from portal.shared.problem_details import CONTENT_TYPE


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Authentication by token, in the schema's form."""

    target_class = "portal.api.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        """Describe the header."""
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "`Bearer plt_<prefix>_<secret>`; `Token` before it does as well.",
        }


class AddressTokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Authentication by a token in the address, in the schema's form."""

    target_class = "portal.api.authentication.AddressTokenAuthentication"
    name = "address-token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        """Describe the parameter."""
        return {
            "type": "apiKey",
            "in": "query",
            "name": PARAMETER,
            "description": "A token whose only scope is `read`.",
        }


class PayloadScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Authentication by the token of a payload, in the schema's form."""

    target_class = "portal.api.authentication.PayloadAuthentication"
    name = "payload"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        """Describe the header."""
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "The token in the file that BEARER_TOKEN_FILE names to a payload.",
        }


#: What every request may be answered, and those for one object.
_ALWAYS = {
    "400": "The request cannot be read, or a parameter is none; the findings name it.",
    "401": "Nobody is logged in, and no good token was sent; `type` tells what is wrong with it.",
    "403": "You may not do this, or your token may not; the detail says why.",
    "429": "More requests than the rate allows, or too much at once; ask again after "
    "`Retry-After` seconds.",
    "503": "The portal has too much to do, or its database is away; nothing was begun. Send the "
    "same again after `Retry-After` seconds.",
}
_OF_PATHS = {"404": "No such object, or you may not see it."}
_OF_BODIES = {"413": "The request is larger than allowed, or has too many parts."}

#: As `drf_spectacular.hooks.postprocess_schema_enums` names it.
_NULL_NAME = "NullEnum"
_NULL = {"$ref": f"#/components/schemas/{_NULL_NAME}"}

_FIELDS = {
    "name": FIELDS,
    "in": "query",
    "description": "Members of each object to be answered, separated by commas: then the others "
    "are missing, also those that are required.",
    "schema": {"type": "string"},
}


def tell_refusals(
    result: dict[str, Any], generator: Any, request: Any, public: bool
) -> dict[str, Any]:
    """Add to each operation the refusals that are not its own; a hook of the schema's generator."""
    for path, operations in result["paths"].items():
        usual = _ALWAYS | (_OF_PATHS if "{" in path else {})
        for method, operation in operations.items():
            answers = operation["responses"]
            if method == "get":
                answers["304"] = {"description": "It is as `If-None-Match` says."}
            if _takes_key(operation):
                _tell_replay(answers)
            possible = usual | (_OF_BODIES if "requestBody" in operation else {})
            for status in possible.keys() - answers.keys():
                answers[status] = _refusal(possible[status])
            operation["responses"] = dict(sorted(answers.items()))
    return result


def tell_null(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """Say of a value that it may be null, without the enumeration of null alone.

    Of that, generators make code that no compiler takes; a hook of the schema's generator.
    """
    schemas = result["components"]["schemas"]
    if schemas.pop(_NULL_NAME, None) is not None:
        for schema in schemas.values():
            for member in schema.get("properties", {}).values():
                if _NULL in member.get("oneOf", ()):
                    _let_be_null(member)
    return result


def tell_fields(
    result: dict[str, Any], generator: Any, request: Any, public: bool
) -> dict[str, Any]:
    """Add `fields` to each operation that answers with objects; a hook of the generator."""
    for operations in result["paths"].values():
        found = operations.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
        schema = found.get("application/json", {}).get("schema", {})
        if "$ref" in schema or schema.get("type") == "array":
            operation = operations["get"]
            parameters = [*operation.get("parameters", ()), _FIELDS]
            operation["parameters"] = sorted(parameters, key=lambda each: str(each["name"]))
    return result


def _let_be_null(member: dict[str, Any]) -> None:
    kinds = [each for each in member.pop("oneOf") if each != _NULL]
    member["allOf" if len(kinds) == 1 else "oneOf"] = kinds
    member["nullable"] = True


def _takes_key(operation: dict[str, Any]) -> bool:
    parameters = operation.get("parameters", ())
    return any(each["name"] == IDEMPOTENCY_KEY.name for each in parameters)


def _tell_replay(answers: dict[str, Any]) -> None:
    """Add what an equal request is answered, and the refusal of another content."""
    if made := answers.get("201") or answers.get("202"):
        answers.setdefault("200", {**made, "description": "An equal request made it before."})
    answers.setdefault("409", _refusal("Another content was sent under the same key before."))


def _refusal(description: str) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"content": {CONTENT_TYPE: {"schema": schema}}, "description": description}


@extend_schema(exclude=True)
class Schema(SpectacularAPIView):
    """The schema as YAML or JSON, for who is logged in or holds a token.

    It is the same for everybody, and made once in the life of a process: that takes half a second.
    """

    permission_classes = (IsAuthenticated,)

    def get(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponse:
        renderer = request.accepted_renderer
        name = f"{spectacular_settings.TITLE}.{renderer.format}"
        return HttpResponse(
            _rendered(type(renderer)),
            content_type=f"{renderer.media_type}; charset=utf-8",
            headers={"Content-Disposition": content_disposition_header(False, name) or "inline"},
        )


@cache
def described() -> dict[str, Any]:
    """The schema as a document, which nobody may change: it is kept."""
    document: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return document


@cache
def _rendered(renderer: type[BaseRenderer]) -> bytes:
    content: bytes = renderer().render(described(), renderer_context={})
    return content


@extend_schema(exclude=True)
class Docs(SpectacularSwaggerSplitView):
    """Swagger UI from our own static files; its script has an address of its own."""

    url_name = "api:schema"
