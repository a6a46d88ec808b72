"""The address of metrics: who may read it, what it tells, and that counts are those of routes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from ipaddress import ip_network
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from portal.metrics import views
from portal.metrics.installation import Installation
from tests import factories
from wms.core.actors import Actor
from wms.core.models import ControlLoop, InboxEntry, Role
from wms.core.tokens import issue_token
from wms.history.operations import store_samples

TOKEN = "a-token-that-only-reads-metrics"


@pytest.fixture(autouse=True)
def _asked_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kept figures of an earlier test are forgotten."""
    monkeypatch.setattr(views, "INSTALLATION", Installation())


@pytest.fixture
def reader(settings: Any) -> Client:
    settings.METRICS_TOKENS = ["the-former-one", TOKEN]
    return Client(headers={"Authorization": f"Bearer {TOKEN}"})


def _told(client: Client) -> dict[str, dict[tuple[str, ...], float]]:
    """Values by metric and by the values of its labels, in the order of their names."""
    answer = client.get("/metrics")
    assert answer.status_code == 200, answer.content
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(answer.content.decode()):
        for sample in family.samples:
            labels = tuple(value for _, value in sorted(sample.labels.items()))
            found.setdefault(sample.name, {})[labels] = sample.value
    return found


def test_nobody_reads_them_without_a_credential(client: Client, db: None) -> None:
    answer = client.get("/metrics")

    assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer")
    assert b"pilotage_" not in answer.content


@pytest.mark.parametrize("sent", ["Bearer wrong", "Bearer", "Bearer \xe9", "Token plt_a_b", "x"])
def test_a_wrong_credential_is_refused(reader: Client, db: None, sent: str) -> None:
    assert reader.get("/metrics", headers={"Authorization": sent}).status_code == 401


def test_without_a_token_in_the_settings_an_empty_one_is_refused(client: Client, db: None) -> None:
    assert client.get("/metrics", headers={"Authorization": "Bearer "}).status_code == 401


@pytest.mark.parametrize(("role", "status"), [(Role.USER, 403), (Role.SHIFTER, 200)])
def test_tokens_of_the_api_are_good_from_the_role_of_a_shifter_on(
    client: Client, db: None, role: Role, status: int
) -> None:
    person = factories.person("sam", role=role)
    token = issue_token(person, name="prometheus", actor=Actor.person(person)).text

    answer = client.get("/metrics", headers={"Authorization": f"Token {token}"})

    assert answer.status_code == status


@pytest.mark.parametrize(("address", "status"), [("10.1.2.3", 200), ("10.2.0.1", 401)])
def test_networks_of_the_settings_read_them(
    client: Client, db: None, settings: Any, address: str, status: int
) -> None:
    settings.METRICS_FROM = [ip_network("10.1.0.0/16")]

    assert client.get("/metrics", REMOTE_ADDR=address).status_code == status


def test_behind_a_proxy_the_address_of_the_client_counts(
    client: Client, db: None, settings: Any
) -> None:
    settings.METRICS_FROM, settings.BEHIND_PROXY = [ip_network("127.0.0.1")], True

    near = client.get("/metrics", headers={"X-Forwarded-For": "127.0.0.1"})
    far = client.get("/metrics", headers={"X-Forwarded-For": "192.0.2.1"}, REMOTE_ADDR="127.0.0.1")

    assert (near.status_code, far.status_code) == (200, 401)


def test_loops_are_told_with_health_and_age(reader: Client, db: None) -> None:
    past = timezone.now() - timedelta(minutes=10)
    ControlLoop.objects.create(name="negotiator", period_s=5, started_at=past, duration_s=0.5)

    told = _told(reader)

    assert told["pilotage_loop_health"]["late", "negotiator"] == 1
    assert told["pilotage_loop_health"]["ok", "negotiator"] == 0
    assert told["pilotage_loop_health"]["never", "director"] == 1
    assert 600 <= told["pilotage_loop_age_seconds"][("negotiator",)] < 700
    assert told["pilotage_loop_duration_seconds"][("negotiator",)] == 0.5


def test_states_and_pilots_of_sites_are_those_of_the_latest_sample(
    reader: Client, db: None
) -> None:
    factories.site("UW")
    now = timezone.now()
    store_samples({"jobs.running": 3, "pilots.running@UW": 5}, now=now - timedelta(seconds=70))
    store_samples({"jobs.running": 4}, now=now)

    told = _told(reader)

    assert told["pilotage_jobs"][("running",)] == 4
    assert told["pilotage_site_pilots"]["running", "UW"] == 5
    assert told["pilotage_sample_age_seconds"][()] < 60


def test_a_sample_of_long_ago_is_not_told(reader: Client, db: None) -> None:
    store_samples({"jobs.running": 3}, now=timezone.now() - timedelta(minutes=10))

    told = _told(reader)

    assert "pilotage_jobs" not in told
    assert "pilotage_sample_age_seconds" not in told


def test_what_waits_is_told(reader: Client, db: None) -> None:
    InboxEntry.objects.create(topic="dag-jobs", key=1, kind=InboxEntry.Kind.LOOK)

    told = _told(reader)

    assert told["pilotage_inbox_entries"] == {("dag-jobs",): 1}
    assert told["pilotage_waiting_jobs"] == {(): 0}
    assert told["pilotage_placements"][("processing",)] == 0
    assert told["pilotage_database_sessions"][("active",)] >= 1
    assert told["pilotage_database_sessions_limit"][()] > 1
    assert (told["pilotage_database_up"], told["pilotage_broker_up"]) == ({(): 1}, {(): 1})


def test_requests_are_counted_by_route_and_never_by_path(reader: Client, db: None) -> None:
    before = _told(reader).get("pilotage_http_requests_total", {})
    reader.get("/health/live")
    reader.get("/api/v1/dags/17/")
    reader.generic("BREW", "/no/such/path")

    after = _told(reader)["pilotage_http_requests_total"]

    grown = {key for key, value in after.items() if value > before.get(key, 0)}
    assert {
        ("GET", "health-live", "200"),
        ("GET", "api:dag", "401"),
        ("other", "unknown", "404"),
    } <= grown
    assert not [key for key in after if "/" in key[1] or "17" in key[1]]


def test_several_that_ask_at_once_cost_the_database_one_look(
    reader: Client, db: None, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(10):
        _told(reader)
    with django_assert_num_queries(0):
        _told(reader)


@pytest.fixture
def _no_database(transactional_db: None) -> Iterator[None]:
    """Connections that lead nowhere."""
    kept = dict(connection.settings_dict)
    connection.close()
    connection.settings_dict.update(HOST="127.0.0.1", PORT="1")
    yield
    connection.close()
    connection.settings_dict.update(kept)


@pytest.mark.usefixtures("_no_database")
def test_a_database_that_is_away_is_told_to_the_holder_of_the_token(reader: Client) -> None:
    told = _told(reader)

    assert told["pilotage_database_up"] == {(): 0}
    assert "pilotage_loop_health" not in told


def test_a_broker_that_is_away_is_told(reader: Client, db: None, settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"

    told = _told(reader)

    assert (told["pilotage_broker_up"], told["pilotage_database_up"]) == ({(): 0}, {(): 1})
