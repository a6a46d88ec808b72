from __future__ import annotations

from typing import Any

import pytest

from wms.core.errors import InvalidInput
from wms.sites.models import Queue, Site
from wms.sites.queue_validation import check_queue


@pytest.fixture
def queue(db: None) -> Queue:
    site = Site.objects.create(name="UW")
    return Queue.objects.create(site=site, name="short", element="host")


def test_a_queue_may_limit_what_payloads_use(queue: Queue) -> None:
    queue.payload_limits = {"disk_mb": 20_000, "progress_ratio": 0.01, "processes": 0}

    check_queue(queue)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ([], "must be a JSON object"),
        ({"colour": 3}, "'colour' is no limit; known are wall_s"),
        ({"disk_mb": "20"}, "disk_mb must be a number from 0 on"),
        ({"disk_mb": -1}, "disk_mb must be a number from 0 on"),
        ({"disk_mb": True}, "disk_mb must be a number from 0 on"),
    ],
)
def test_what_pilots_would_pass_over_is_refused(queue: Queue, limits: Any, message: str) -> None:
    queue.payload_limits = limits

    with pytest.raises(InvalidInput, match=message):
        check_queue(queue)
