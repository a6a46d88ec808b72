"""Placement requests of no DAG, and credentials for them, by the API, page and shell."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from wms.core.models import User
from wms.pilots.credentials.sealing import new_key
from wms.placement.credential_models import PlacementCredential
from wms.placement.models import PlacementRequest

URL = "/api/v1/placement-requests/"
STAGE = '[ dap_type = "stage"; src_url = "http://storage.example.org/x" ]'
FAULTY = '[ dap_type = "stage";\n src_url = "http://10.0.0.1/x" ]'


def test_one_or_many_requests_are_submitted_as_json_or_text(alice: APIClient) -> None:
    many = alice.post(URL, {"requests": STAGE * 2}, format="json")
    one = alice.post(URL, STAGE, content_type="text/plain")

    assert (many.status_code, many.json()["count"], one.status_code) == (201, 2, 201)
    first, second = many.json()["ids"]
    told = alice.get(f"{URL}{second}/").json()
    assert (told["kind"], told["leader"], told["dag"]) == ("stage", first, None)
    assert alice.get(f"{URL}?kind=stage").json()["results"][0]["id"] == one.json()["ids"][0]


def test_a_check_stores_nothing_and_a_fault_has_attribute_and_line(alice: APIClient) -> None:
    good = alice.post(URL, {"requests": STAGE, "only_check": True}, format="json")
    bad = alice.post(URL, {"requests": STAGE + FAULTY}, format="json")

    assert (good.status_code, good.json()) == (200, {"ids": [], "count": 1})
    assert bad.status_code == 400
    [finding] = bad.json()["findings"]
    assert (finding["field"], finding["line"]) == ("src_url", 2)
    assert not PlacementRequest.objects.exists()


def test_the_same_key_submits_once(alice: APIClient) -> None:
    answers = [
        alice.post(URL, {"requests": text}, format="json", headers={"Idempotency-Key": "k"})
        for text in (STAGE, STAGE, STAGE * 2)
    ]

    assert [each.status_code for each in answers] == [201, 200, 409]


def _browser(name: str) -> Client:
    client = Client()
    client.force_login(User.objects.get(username=name))
    return client


def test_the_page_submits_checks_and_tells_faults(alice: APIClient) -> None:
    browser, page = _browser("alice"), reverse("web:submit-placements")
    checked = browser.post(page, {"requests": STAGE, "do": "check"})
    faulty = browser.post(page, {"requests": FAULTY})
    done = browser.post(page, {"requests": STAGE, "nonce": "n"})
    again = browser.post(page, {"requests": STAGE, "nonce": "n"})

    assert "No fault was found" in checked.content.decode()
    assert faulty.status_code == 400
    assert "no public address" in faulty.content.decode()
    request = PlacementRequest.objects.get()
    assert done.url == again.url == reverse("web:placement", args=[request.pk])
    assert "http://storage.example.org/x" in browser.get(done.url).content.decode()


def test_a_file_is_submitted_from_a_shell(
    alice: APIClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "good.stork").write_text(STAGE)
    (tmp_path / "bad.stork").write_text(FAULTY)

    call_command("submit_placements", str(tmp_path / "good.stork"), "--user", "alice", "--check")
    assert not PlacementRequest.objects.exists()
    call_command("submit_placements", str(tmp_path / "good.stork"), "--user", "alice")

    assert f"submitted: {PlacementRequest.objects.get().pk}" in capsys.readouterr().out
    with pytest.raises(CommandError, match=r"bad\.stork:2"):
        call_command("submit_placements", str(tmp_path / "bad.stork"), "--user", "alice")


def test_a_credential_is_written_and_never_read(
    alice: APIClient, people: SimpleNamespace, as_user: Any, settings: Any
) -> None:
    settings.PILOTAGE = settings.PILOTAGE | {"CREDENTIAL_KEYS": new_key()}
    url = "/api/v1/placement-credentials/"
    sam = as_user(people.sam)
    body = {"endpoint": "davs://s.example", "user": "alice", "password": "sesame"}

    made = alice.post(f"{url}?reason=new", body, format="json")
    again = alice.post(url, body, format="json")

    assert (made.status_code, again.status_code) == (201, 200)
    assert made.json()["endpoint"] == "davs://s.example:443"
    listed = alice.get(url)
    assert "sesame" not in made.content.decode() + listed.content.decode()
    assert len(listed.json()["results"]) == 1
    assert sam.get(url).json()["results"] == []
    pk = PlacementCredential.objects.get().pk
    assert sam.delete(f"{url}{pk}/").status_code == 404
    assert alice.delete(f"{url}{pk}/").status_code == 204
