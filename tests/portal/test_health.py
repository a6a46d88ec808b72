"""The addresses by which a load balancer and a person see whether the portal works."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from django.utils import timezone

from portal.shared.health_checks import Health, judge_migrations
from wms.core.loops import known_loops
from wms.core.models import ControlLoop


@pytest.fixture
def _loops_ran_lately(db: None) -> None:
    for loop in known_loops().values():
        ControlLoop.objects.create(
            name=loop.name, period_s=loop.period_s, started_at=timezone.now(), duration_s=0.1
        )


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
def test_the_process_lives_whatever_the_database_does(client: Client) -> None:
    answer = client.get("/health/live")

    assert (answer.status_code, answer.json()["status"]) == (200, "ok")


@pytest.mark.usefixtures("_loops_ran_lately")
def test_it_is_ready_when_all_do_their_work(client: Client) -> None:
    answer = client.get("/health/ready")

    assert answer.status_code == 200, answer.content
    checks = answer.json()["checks"]
    assert (checks["database"], checks["broker"], checks["migrations"]) == ("ok", "ok", "ok")
    assert answer.json()["reasons"] == []
    assert checks["loops"]["negotiator"]["status"] == "ok"
    assert checks["loops"]["negotiator"]["age_s"] < 60
    assert "no-cache" in answer["Cache-Control"]


def test_it_is_not_ready_before_the_loops_have_run(client: Client, db: None) -> None:
    answer = client.get("/health/ready")

    assert answer.status_code == 503
    assert answer.json()["checks"]["loops"]["negotiator"] == {"status": "never", "age_s": None}


@pytest.mark.usefixtures("_loops_ran_lately")
def test_it_is_ready_before_the_slowest_loop_has_had_its_first_turn(client: Client) -> None:
    ControlLoop.objects.filter(name="taskqueue-sweeper").delete()

    answer = client.get("/health/ready")

    assert answer.status_code == 200
    assert answer.json()["checks"]["loops"]["taskqueue-sweeper"]["status"] == "never"


@pytest.mark.usefixtures("_loops_ran_lately")
def test_it_is_not_ready_while_a_loop_is_late(client: Client) -> None:
    past = timezone.now() - timedelta(minutes=10)
    ControlLoop.objects.filter(name="negotiator").update(started_at=past)

    answer = client.get("/health/ready")

    assert answer.status_code == 503
    assert answer.json()["checks"]["loops"]["negotiator"]["status"] == "late"
    [reason] = answer.json()["reasons"]
    assert (reason["check"], "negotiator" in reason["reason"]) == ("loops", True)


@pytest.mark.usefixtures("_loops_ran_lately")
def test_it_is_not_ready_while_a_loop_has_missed_its_first_turn(client: Client) -> None:
    past = timezone.now() - timedelta(minutes=10)
    ControlLoop.objects.filter(name="negotiator").update(started_at=None, known_since=past)

    answer = client.get("/health/ready")

    assert answer.status_code == 503
    assert answer.json()["checks"]["loops"]["negotiator"] == {"status": "late", "age_s": None}


@pytest.mark.usefixtures("_loops_ran_lately")
def test_the_reason_of_a_failing_loop_is_not_told_to_everybody(client: Client) -> None:
    ControlLoop.objects.filter(name="director").update(error="password=secret")

    answer = client.get("/health/ready")

    assert answer.status_code == 503
    assert answer.json()["checks"]["loops"]["director"]["status"] == "failing"
    assert b"secret" not in answer.content


@pytest.mark.usefixtures("_loops_ran_lately")
def test_a_loop_that_only_watches_keeps_nobody_from_serving(client: Client) -> None:
    ControlLoop.objects.filter(name="audit-check").update(error="ChainBroken")

    answer = client.get("/health/ready")

    assert answer.status_code == 200
    assert answer.json()["checks"]["loops"]["audit-check"]["status"] == "failing"


@pytest.mark.usefixtures("_loops_ran_lately")
def test_it_is_not_ready_without_the_broker(client: Client, settings: Any) -> None:
    settings.REDIS_URL = "redis://:secret@127.0.0.1:1/0"

    answer = client.get("/health/ready")

    assert answer.status_code == 503
    assert answer.json()["checks"]["broker"] == "unavailable"
    assert [reason["check"] for reason in answer.json()["reasons"]] == ["broker"]
    assert b"secret" not in answer.content


@pytest.mark.usefixtures("_no_database")
def test_it_is_not_ready_without_the_database(client: Client) -> None:
    answer = client.get("/health/ready")

    assert answer.status_code == 503
    assert answer.json()["checks"]["database"] == "unavailable"
    assert [reason["check"] for reason in answer.json()["reasons"]] == ["database"]


def test_tables_that_are_not_those_of_the_release_are_a_reason(db: None) -> None:
    well, amiss = Health(), Health()

    judge_migrations(well, connection)
    MigrationRecorder(connection).record_unapplied("jobs", "0001_tables")
    judge_migrations(amiss, connection)

    assert (well.migrations, well.reasons) == ("ok", [])
    assert amiss.migrations == "pending"
    assert [reason["check"] for reason in amiss.reasons] == ["migrations"]
    assert "jobs.0001_tables" in amiss.reasons[0]["reason"]


@pytest.mark.parametrize("path", ["/health/live", "/health/ready"])
def test_nothing_is_posted_to_it(client: Client, path: str) -> None:
    assert client.post(path).status_code == 405
