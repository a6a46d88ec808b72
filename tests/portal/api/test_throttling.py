"""Rates of the API: what one token, one user and one payload may ask for in a time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import time_machine
from django.test import Client
from rest_framework.test import APIClient

from portal.api import throttling
from portal.config.api_rates import api_rates
from portal.embedded.ports import free_ports
from tests import factories
from wms.core.models import Scope

URL = "/api/v1/me/"
NOON = "2026-03-01 12:00:00+00:00"

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def rates(settings: Any) -> Any:
    settings.API_RATES = {"token": (2, 60), "user": (3, 60)}
    return settings


def _client(user: Any) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {factories.token_for(user)}")
    return client


@time_machine.travel(NOON, tick=False)
def test_one_request_too_many_of_a_token_is_a_problem_that_says_when(
    rates: Any, people: SimpleNamespace
) -> None:
    alice = _client(people.alice)
    first, second, third = (alice.get(URL) for _ in range(3))

    assert (first.status_code, second.status_code, third.status_code) == (200, 200, 429)
    assert first["RateLimit-Policy"] == '"token";q=2;w=60, "user";q=3;w=60'
    assert first["RateLimit"] == '"token";r=1;t=60, "user";r=2;t=60'
    assert third["Content-Type"] == "application/problem+json"
    assert third.json()["type"] == "/problems/rate-exceeded/"
    assert third.json()["violated-policies"] == ["token"]
    assert 60 < int(third["Retry-After"]) <= 120
    assert '"token";r=0;' in third["RateLimit"]


def test_who_waits_passes_and_what_was_refused_did_not_count(
    rates: Any, people: SimpleNamespace
) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        alice = _client(people.alice)
        answers = [alice.get(URL) for _ in range(9)]
        clock.shift(int(answers[-1]["Retry-After"]))

        assert [each.status_code for each in answers] == [200] * 2 + [429] * 7
        assert alice.get(URL).status_code == 200


@time_machine.travel(NOON, tick=False)
def test_tokens_of_one_user_share_the_users_rate_and_those_of_others_do_not(
    rates: Any, people: SimpleNamespace
) -> None:
    one, other = _client(people.alice), _client(people.alice)
    statuses = [client.get(URL).status_code for client in (one, one, other, other)]
    refused = other.get(URL)

    assert statuses == [200, 200, 200, 429]
    assert refused.json()["violated-policies"] == ["user"]
    assert _client(people.bob).get(URL).status_code == 200


@time_machine.travel(NOON, tick=False)
def test_a_request_counts_for_the_scopes_that_it_needs_and_for_no_other(
    settings: Any, people: SimpleNamespace
) -> None:
    settings.API_RATES = {
        "token": (9, 60), "read": (2, 60), "control": (1, 60), "site": (5, 60), "admin": (1, 60),
    }  # fmt: skip
    sam, dag = _client(people.sam), factories.dag(people.alice)
    listed, again, refused = (sam.get("/api/v1/dags/") for _ in range(3))
    held, held_again = (
        sam.post(f"/api/v1/dags/{dag.pk}/hold/", {"reason": "look"}, "json") for _ in range(2)
    )
    sam.post("/api/v1/quotas/", {}, "json")
    document = sam.post("/api/v1/sites.yaml", {}, "json")

    assert (listed.status_code, again.status_code, refused.status_code) == (200, 200, 429)
    assert listed["RateLimit-Policy"] == '"token";q=9;w=60, "read";q=2;w=60'
    assert refused.json()["violated-policies"] == ["read"]
    assert 60 < int(refused["Retry-After"]) <= 120
    assert (held.status_code, held_again.status_code) == (200, 429)
    assert held_again.json()["violated-policies"] == ["control"]
    # It needs two scopes, and is refused for the one; the other is not used up by it.
    assert (document.status_code, document.json()["violated-policies"]) == (429, ["admin"])
    assert '"site";r=4;' in document["RateLimit"]
    assert "read" not in sam.get(URL)["RateLimit"]
    dag.refresh_from_db()
    assert dag.state == "held"
    assert _client(people.sam).get("/api/v1/dags/").status_code == 200


@time_machine.travel(NOON, tick=False)
def test_a_page_s_session_counts_for_its_user_only(
    rates: Any, people: SimpleNamespace, client: Client
) -> None:
    client.force_login(people.alice)

    assert client.get(URL)["RateLimit"] == '"user";r=2;t=60'


def test_a_rate_that_is_off_is_not_told(settings: Any, people: SimpleNamespace) -> None:
    settings.API_RATES = {}

    assert "RateLimit-Policy" not in _client(people.alice).get(URL)


def test_without_redis_nobody_is_refused(
    rates: Any, people: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throttling, "_COUNTS", throttling._Counts())
    [port] = free_ports(1)
    default = rates.CACHES["default"]
    rates.CACHES = {"default": {**default, "LOCATION": f"redis://127.0.0.1:{port}"}}
    alice = _client(people.alice)
    answers = [alice.get(URL) for _ in range(4)]

    assert {each.status_code for each in answers} == {200}
    assert "RateLimit-Policy" in answers[-1]
    assert "RateLimit" not in answers[-1]


@pytest.mark.parametrize("chosen", ["off", "6000/60"])
def test_defaults_of_scopes_do_not_undercut_a_chosen_rate_of_tokens(
    chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TOKEN", "USER", "READ", "SUBMIT", "CONTROL", "SITE", "ADMIN"):
        monkeypatch.delenv(f"PILOTAGE_API_RATE_{name}", raising=False)
    defaults = api_rates()
    monkeypatch.setenv("PILOTAGE_API_RATE_TOKEN", chosen)
    monkeypatch.setenv("PILOTAGE_API_RATE_SUBMIT", "5/1")

    assert defaults.keys() == {"token", "user", *Scope.values}
    assert api_rates().keys() - {"token"} == {"user", "submit"}
