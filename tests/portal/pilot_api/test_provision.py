"""Provision of pilots before they register: manifests, files, reports of unfit nodes."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from django.test import Client

from tests.portal.pilot_api.pilot_client import SECRET, PilotClient
from wms.core.actors import Actor
from wms.core.models import User
from wms.pilots.models import NodeCheck, PilotCheck, PilotEvent
from wms.pilots.program.checks import save_node_check
from wms.pilots.program.manifest import store_manifest
from wms.sites.models import Queue

pytestmark = pytest.mark.django_db

FAILED = {
    "key": "disk:0",
    "name": "disk",
    "is_ok": False,
    "kind": "node",
    "reason": "5 MB of disk are free, needed are 100",
    "metrics": {"disk_free_mb": 5, "mount": "/scratch", "is_local": True},
    "seconds": 0.25,
}


def test_a_manifest_and_all_its_files_can_be_fetched_by_anybody(
    client: Client, queue: Queue
) -> None:
    admin = Actor.person(User.objects.create_user("anna", role="admin"))
    save_node_check(NodeCheck(name="gcc", script="#!/bin/sh\ntrue\n"), actor=admin)
    sha256 = store_manifest(queue)

    answer = client.get(f"/pilot/v1/manifests/{sha256}")

    assert hashlib.sha256(answer.content).hexdigest() == sha256
    manifest = json.loads(answer.content)
    files = [manifest["agent"], *(c for c in manifest["checks"] if not c["builtin"])]
    assert len(files) == 2
    for each in files:
        file = client.get(f"/pilot/v1/files/{each['sha256']}")
        assert hashlib.sha256(file.content).hexdigest() == each["sha256"]
        assert len(file.content) == each["size_bytes"]
        assert file["Cache-Control"] == "public, max-age=31536000, immutable"


@pytest.mark.parametrize("path", ["manifests", "files"])
def test_what_was_never_stored_is_missing(client: Client, path: str) -> None:
    answer = client.get(f"/pilot/v1/{path}/{'0' * 64}")

    assert answer.status_code == 404
    assert "public" not in answer.get("Cache-Control", "")


def test_a_pilot_that_found_wrong_files_is_aborted_with_the_reason(fresh: PilotClient) -> None:
    body = {"pilot": str(fresh.pilot.uuid), "secret": SECRET, "reason": "files/1 missing"}

    answers = [fresh.post("unfit", body) for _ in range(2)]

    assert [each.status_code for each in answers] == [200, 200]
    fresh.pilot.refresh_from_db()
    assert (fresh.pilot.state, fresh.pilot.state_reason) == (
        "aborted",
        "unfit: files/1 missing",
    )
    assert PilotEvent.objects.filter(pilot=fresh.pilot).count() == 1


@pytest.mark.parametrize("changes", [{"secret": "guessed"}, {"pilot": "none"}])
def test_only_the_pilot_itself_can_say_that_it_is_unfit(
    fresh: PilotClient, changes: dict[str, str]
) -> None:
    body = {"pilot": str(fresh.pilot.uuid), "secret": SECRET, "reason": "because"}

    assert fresh.post("unfit", body | changes).status_code == 401
    fresh.pilot.refresh_from_db()
    assert fresh.pilot.state == "submitted"


def test_a_secret_that_was_used_does_not_end_the_pilot(registered: PilotClient) -> None:
    body = {"pilot": str(registered.pilot.uuid), "secret": SECRET, "reason": "because"}

    assert registered.post("unfit", body).status_code == 401
    registered.pilot.refresh_from_db()
    assert registered.pilot.state == "running"


def test_what_checks_found_is_kept_once(registered: PilotClient) -> None:
    passed = FAILED | {"key": "cpus:0", "name": "cpus", "is_ok": True, "kind": "", "reason": ""}

    for _ in range(2):
        answer = registered.post("checks", {"checks": [passed, FAILED], "is_final": True})
        assert answer.status_code == 200

    told = PilotCheck.objects.filter(pilot=registered.pilot)
    assert list(told.values_list("name", "is_ok")) == [("cpus", True), ("disk", False)]
    assert told[1].metrics == FAILED["metrics"]
    assert told[1].reason == FAILED["reason"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"is_ok": 1}, "checks.0.is_ok"),
        ({"name": ""}, "checks.0.name"),
        ({"metrics": {"x": []}}, "checks.0.metrics.x"),
        ({"metrics": {"x": "\0"}}, "checks.0.metrics.x"),
        ({"metrics": {"x\0": 1}}, "checks.0.metrics"),
        ({"metrics": {str(n): n for n in range(51)}}, "checks.0.metrics"),
        ({"seconds": -1}, "checks.0.seconds"),
    ],
)
def test_a_faulty_result_is_told_its_field(
    registered: PilotClient, changes: dict[str, Any], field: str
) -> None:
    answer = registered.post("checks", {"checks": [FAILED | changes], "is_final": True})

    assert answer.status_code == 400
    assert [each["field"] for each in answer.json()["errors"]] == [field]
    assert not PilotCheck.objects.exists()
