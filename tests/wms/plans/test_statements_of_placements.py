"""The plan of what grants placements, among very many that wait and that have ended."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests import factories
from tests.wms.plans.query_plans import (
    analyze,
    explain,
    indexes,
    rows_read,
    run,
    scanned_whole,
    written,
)
from wms.jobs.models import Workspace
from wms.placement import sql as placement
from wms.placement.feeding.operations import count_active
from wms.placement.models import PlacementAttempt, PlacementRequest
from wms.placement.storages.models import Storage

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

_TABLE = "placement_placementrequest"


@pytest.fixture(scope="module")
def requests(module_rows: None) -> None:
    """20,000 requests that wait in six lanes, 20 that run, 20,000 that have ended."""
    alice = factories.person("alice")
    bob = factories.person("bob")
    storages = [
        Storage.objects.create(name=name, endpoints=f"s3://{name}/", max_transfers=most)
        for name, most in (("a", None), ("b", 5))
    ]
    workspace = Workspace.objects.create(owner=alice)
    run(
        f"""
        INSERT INTO {_TABLE}
            (kind, owner_id, workspace_id, directory, source_url, destination_url, arguments,
             alternatives, expected_sha256, attributes, state, state_reason, max_attempts,
             attempt_number, topic, topic_key, source_storage_id, due_at)
        SELECT 'transfer', CASE WHEN n %% 2 = 0 THEN %s ELSE %s END, %s, '', '', '', '', '{{}}', '',
               '{{}}',
               CASE WHEN n <= 20 THEN 'processing' WHEN n > 20020 THEN 'completed'
                    WHEN n %% 5 = 0 THEN 'rescheduled' ELSE 'received' END,
               '', 10, CASE WHEN n <= 20 OR n > 20020 OR n %% 5 = 0 THEN 1 ELSE 0 END, '', 0,
               (ARRAY[NULL, %s, %s]::bigint[])[1 + n %% 3],
               CASE WHEN n > 20 AND n <= 20020 AND n %% 5 = 0 THEN now() + interval '1 hour' END
        FROM generate_series(1, 40020) AS n
        """,
        [alice.pk, bob.pk, workspace.pk, *(each.pk for each in storages)],
    )
    analyze(_TABLE, "placement_storage")


def test_what_is_granted_next_is_found_without_reading_all_that_waits(requests: None) -> None:
    steps = explain(placement.FIND_NEXT, {"now": timezone.now(), "most": 10, "most_of_owner": 50})

    assert not scanned_whole(steps, _TABLE)
    assert rows_read(steps, _TABLE) < 100


def test_a_queue_is_counted_no_further_than_its_level(requests: None) -> None:
    with CaptureQueriesContext(connection) as asked:
        assert count_active(100) == 100

    steps = explain(asked[0]["sql"], None)

    assert indexes(steps) == {"placement_not_ended"}
    assert rows_read(steps, _TABLE) == 100


def test_further_ones_of_a_lane_are_found_by_the_same_indexes(requests: None) -> None:
    first = PlacementRequest.objects.filter(state="received").order_by("pk")[0]
    lane = {
        "owner": first.owner_id,
        "source": first.source_storage_id or 0,
        "destination": first.destination_storage_id or 0,
    }

    steps = explain(
        placement.FIND_FURTHER, {"now": timezone.now(), "first": first.pk, "most": 31, **lane}
    )

    assert not scanned_whole(steps, _TABLE)
    assert rows_read(steps, _TABLE) < 100


def test_attempts_that_were_granted_together_are_ended_by_their_ids(requests: None) -> None:
    now = timezone.now()
    running = list(PlacementRequest.objects.filter(state="processing").order_by("pk"))
    others = PlacementRequest.objects.filter(state="completed").values_list("pk", flat=True)
    PlacementAttempt.objects.bulk_create(
        PlacementAttempt(request_id=pk, number=1, exit_code=0, started_at=now, ended_at=now)
        for pk in others
    )
    PlacementAttempt.objects.bulk_create(
        PlacementAttempt(request=each, number=1, lease="mine", started_at=now) for each in running
    )
    analyze("placement_placementattempt")
    count = len(running)
    ends = {
        "ids": [each.pk for each in running],
        "sizes": [1] * count,
        "began": [now] * count,
        "ended": [now] * count,
        "notes": [""] * count,
        "lease": "mine",
    }

    steps = explain(placement.END_ATTEMPTS, ends)

    assert not scanned_whole(steps, "placement_placementattempt")
    assert written(steps, "placement_placementattempt")["Actual Rows"] == count


def test_records_of_ways_are_read_by_their_ends(requests: None) -> None:
    """Among 20,000 attempts of other ends."""
    run(
        """
        INSERT INTO placement_placementattempt
            (request_id, number, source_scheme, destination_scheme, source_end, destination_end,
             exit_code, size_bytes, started_at, ended_at, lease, message)
        SELECT id, 2, 'http', 'file', 'a' || id %% 100, 'b', 0, 1, now(), now(), '', ''
        FROM placement_placementrequest WHERE state = 'completed'
        """,
        [],
    )
    analyze("placement_placementattempt")
    now = timezone.now()
    given = {"sources": ["a7", "a8"], "destinations": ["b", "b"], "now": now, "half_life": 3600.0}

    steps = explain(placement.WAY_RECORDS, {**given, "since": now - timedelta(days=1), "most": 50})

    assert not scanned_whole(steps, "placement_placementattempt")
    assert rows_read(steps, "placement_placementattempt") <= 200
