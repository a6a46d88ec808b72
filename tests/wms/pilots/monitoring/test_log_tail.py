"""Log of a pilot at its batch system, asked for by people, who must not all wait."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from tests.wms.pilots.fake_element import FakeElement
from wms.elements.protocol import Unreachable
from wms.pilots.models import Pilot
from wms.pilots.pressure.backoff import Kind, note_failure
from wms.pilots.selectors import log_tail
from wms.sites.models import Queue

pytestmark = pytest.mark.django_db


@pytest.fixture
def pilot(make_queue: Callable[..., Queue]) -> Pilot:
    queue = make_queue()
    return Pilot.objects.create(
        queue=queue, state="queued", batch="b", native_id="7", secret_sha256="x"
    )


class Printed(FakeElement):
    def log(self, pilot_id: str, tail_bytes: int = 65536) -> str:
        self._enter("log")
        with connection.cursor() as cursor:
            # The server is shared with other tests, each with a database of its own.
            cursor.execute(
                "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database"
                " WHERE locktype = 'advisory' AND granted AND datname = current_database()"
            )
            return f"{cursor.fetchone()[0]} reader"


def test_one_reader_at_a_time_waits_for_a_batch_system(
    pilot: Pilot, elements: dict[str, FakeElement]
) -> None:
    elements["site-a"] = Printed()

    assert log_tail(pilot, limit_bytes=100).text == "1 reader"


def test_a_batch_system_that_does_not_answer_is_not_asked_for_logs(
    pilot: Pilot, elements: dict[str, FakeElement]
) -> None:
    elements["site-a"] = Printed()
    now = timezone.now()
    note_failure(pilot.queue, Kind.POLL, "time-out", now=now, jitter=0.0)

    tail = log_tail(pilot, limit_bytes=100)

    assert "back-off until" in tail.error
    assert elements["site-a"].calls == []


def test_it_is_asked_again_when_its_pause_is_over(
    pilot: Pilot, elements: dict[str, FakeElement]
) -> None:
    elements["site-a"] = element = Printed()
    long_ago = timezone.now() - timedelta(hours=1)
    note_failure(pilot.queue, Kind.POLL, "time-out", now=long_ago, jitter=0.0)
    element.fail_with = Unreachable("still down")

    assert log_tail(pilot, limit_bytes=100).error.endswith("still down")
