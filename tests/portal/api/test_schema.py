"""The OpenAPI schema: complete, without warnings, and unchanged unless it was meant to change."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.renderers import OpenApiYamlRenderer
from drf_spectacular.validation import validate_schema
from jsonschema import Draft4Validator
from rest_framework.test import APIClient

SNAPSHOT = Path(settings.BASE_DIR, "docs/reference/openapi.yaml")
REWRITE = "Run with UPDATE_OPENAPI=1 to rewrite docs/reference/openapi.yaml, and look at its diff."


@pytest.mark.slow
def test_the_schema_is_made_without_warnings(schema: dict[str, Any]) -> None:
    assert dict(GENERATOR_STATS._error_cache) == {}
    assert dict(GENERATOR_STATS._warn_cache) == {}


@pytest.mark.slow
def test_the_schema_is_valid(schema: dict[str, Any]) -> None:
    validate_schema(schema)


def test_the_schema_is_the_documented_one(schema: dict[str, Any]) -> None:
    text = OpenApiYamlRenderer().render(schema, renderer_context={}).decode()
    if os.environ.get("UPDATE_OPENAPI") == "1":
        SNAPSHOT.write_text(text, encoding="utf-8")

    assert SNAPSHOT.read_text(encoding="utf-8") == text, REWRITE


@pytest.mark.slow
def test_the_schema_is_served_to_who_is_logged_in(alice: APIClient) -> None:
    answer = alice.get("/api/v1/schema/?format=json")

    assert answer.status_code == 200
    assert "/api/v1/dags/" in answer.json()["paths"]


def test_the_page_of_the_schema_needs_no_inline_script_and_no_other_host(
    people: SimpleNamespace, client: Client
) -> None:
    client.force_login(people.alice)

    page = client.get("/api/v1/docs/").content.decode()
    script = client.get("/api/v1/docs/?script=")

    assert "<script>" not in page
    assert "//" not in page.replace("<!--", "").split("<body>")[1]
    assert page.count("/static/drf_spectacular_sidecar/") >= 3
    assert script["Content-Type"].startswith("application/javascript")


def test_a_visitor_of_the_page_is_sent_to_the_login(client: Client, db: None) -> None:
    answer = client.get("/api/v1/docs/")

    assert answer.status_code == 302
    assert answer["Location"] == f"{reverse('web:login')}?next=/api/v1/docs/"


def test_problems_are_described_for_every_refusal(schema: dict[str, Any]) -> None:
    answers = schema["paths"]["/api/v1/dags/"]["post"]["responses"]

    assert set(answers) == {"200", "201", "400", "401", "403", "409", "413", "429", "503"}
    assert answers["400"]["content"]["application/problem+json"]["schema"] == {
        "$ref": "#/components/schemas/FaultyDag"
    }


def test_files_are_bytes_and_pages_have_cursors(schema: dict[str, Any]) -> None:
    schemas = schema["components"]["schemas"]

    parts = schemas["SubmissionRequest"]["properties"]
    assert parts["archive"] == {**parts["archive"], "type": "string", "format": "binary"}
    assert parts["file"]["items"] == {"type": "string", "format": "binary"}
    assert "next_cursor" in schemas["PaginatedDagList"]["required"]


def test_every_operation_may_be_refused_for_the_caller(schema: dict[str, Any]) -> None:
    operations = [each for path in schema["paths"].values() for each in path.values()]

    assert [
        o["operationId"] for o in operations if not {"400", "401", "403"} <= set(o["responses"])
    ] == []


def test_examples_of_requests_are_taken(alice: APIClient, schema: dict[str, Any]) -> None:
    """At the addresses that check and change nothing."""
    body = schema["paths"]["/api/v1/jobs/"]["post"]["requestBody"]["content"]["application/json"]
    [example] = body["examples"].values()

    answer = alice.post("/api/v1/jobs/check/", example["value"], format="json")

    assert (answer.status_code, answer.json()["size"]) == (200, 100), answer.content


def test_defaults_of_parameters_are_taken(schema: dict[str, Any]) -> None:
    """Generated clients send them."""
    refused = [
        (operation["operationId"], parameter["name"])
        for path in schema["paths"].values()
        for operation in path.values()
        for parameter in operation.get("parameters", ())
        if "default" in (told := parameter["schema"])
        and not Draft4Validator(told).is_valid(told["default"])
    ]

    assert refused == []


def test_no_enumeration_has_null_alone(schema: dict[str, Any]) -> None:
    """OpenAPI Generator makes a class without a base of it, which is no Python."""
    schemas = schema["components"]["schemas"]

    assert [name for name, told in schemas.items() if told.get("enum") == [None]] == []
    assert schemas["Schedule"]["properties"]["last_outcome"]["nullable"] is True
