"""Sites as YAML at the API: the same two steps as on the page."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
import yaml
from rest_framework.test import APIClient

from tests import factories
from wms.core.models import User
from wms.exchange.yaml_reader import MAX_BYTES
from wms.sites.models import Site
from wms.sites.services import save_site

URL = "/api/v1/sites.yaml"
DOCUMENT = "format: pilotage-sites\nversion: 1\nsites:\n- name: UW\n  max_matches: 5\n"

AsUser = Callable[[User], APIClient]


@pytest.fixture
def olga(people: SimpleNamespace, as_user: AsUser) -> APIClient:
    factories.site("UW")
    return as_user(people.olga)


def _post(client: APIClient, query: str, text: str | bytes = DOCUMENT):
    return client.post(f"{URL}?{query}", text, content_type="application/yaml")


def test_the_export_is_read_back_without_a_change(olga: APIClient) -> None:
    answer = olga.get(URL)

    assert answer["Content-Type"] == "application/yaml; charset=utf-8"
    assert [site["name"] for site in yaml.safe_load(answer.content)["sites"]] == ["UW"]
    plan = _post(olga, "dry_run=true", answer.content).json()
    assert plan["counts"] == {"created": 0, "changed": 0, "unchanged": 2, "refused": 0}


def test_a_preview_stores_nothing_and_its_token_stores_it(olga: APIClient) -> None:
    preview = _post(olga, "dry_run=true").json()

    assert preview["steps"][0]["changes"] == [{"name": "max_matches", "old": 100, "new": 5}]
    assert (preview["is_stored"], Site.objects.get().max_matches) == (False, 100)
    stored = _post(olga, f"token={preview['token']}&reason=less+disks").json()
    assert (stored["is_stored"], Site.objects.get().max_matches) == (True, 5)


def test_what_was_changed_since_is_a_conflict(olga: APIClient) -> None:
    token = _post(olga, "dry_run=true").json()["token"]
    site = Site.objects.get()
    site.max_matches = 50
    save_site(site, actor=factories.SYSTEM)

    answer = _post(olga, f"token={token}")

    assert answer.status_code == 409
    assert Site.objects.get().max_matches == 50


@pytest.mark.parametrize(
    ("query", "text", "status"),
    [
        ("", DOCUMENT, 400),
        ("dry_run=true&token=x", DOCUMENT, 400),
        ("dry_run=true", "sites: [", 400),
        ("dry_run=true", b"\xff", 400),
        ("dry_run=true", "x" * (MAX_BYTES + 1), 413),
        ("token=wrong", DOCUMENT, 409),
    ],
)
def test_what_cannot_be_done_is_refused(
    olga: APIClient, query: str, text: str | bytes, status: int
) -> None:
    answer = _post(olga, query, text)

    assert answer.status_code == status
    assert answer["Content-Type"] == "application/problem+json"
    assert Site.objects.get().max_matches == 100


def test_a_fault_has_its_line_and_column(olga: APIClient) -> None:
    answer = _post(olga, "dry_run=true", DOCUMENT.replace("max_matches: 5", "colour: red"))

    [finding] = answer.json()["findings"]
    assert (finding["line"], finding["column"]) == (5, 11)
    assert "colour" in finding["message"]


def test_a_refused_row_tells_why(olga: APIClient) -> None:
    plan = _post(olga, "dry_run=true", DOCUMENT.replace("5", "-5")).json()

    [step] = plan["steps"]
    assert step["outcome"] == "refused"
    assert step["faults"][0]["line"] == 5


def test_who_configures_nothing_gets_nothing(people: SimpleNamespace, as_user: AsUser) -> None:
    for name in ("vera", "alice", "sam"):
        client = as_user(getattr(people, name))
        assert client.get(URL).status_code == 403
        assert _post(client, "dry_run=true").status_code in {200, 403}
