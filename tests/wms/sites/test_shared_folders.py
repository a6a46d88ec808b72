"""Folders of the node that payloads see through their fence."""

from __future__ import annotations

from typing import Any

import pytest

from wms.core.errors import InvalidInput
from wms.sites.models import Queue
from wms.sites.queue_validation import check_queue

pytestmark = pytest.mark.django_db


@pytest.fixture
def queue(make_site) -> Queue:
    make_site("site-a")
    return Queue.objects.get()


def test_plain_absolute_paths_are_taken(queue: Queue) -> None:
    queue.shared_folders = [{"path": "/data"}, {"path": "/net/export-1", "is_writable": True}]

    check_queue(queue)


@pytest.mark.parametrize(
    ("folders", "message"),
    [
        ({"path": "/data"}, "shared_folders: must be a JSON list"),
        (["/data"], "each must be an object"),
        ([{"path": "/data", "mode": "rw"}], "each must be an object"),
        ([{"path": "data"}], "'data' is no plain absolute path"),
        ([{"path": "/data/../etc"}], "is no plain absolute path"),
        ([{"path": "/"}], "is no plain absolute path"),
        ([{"path": "/data:/etc"}], "is no plain absolute path"),
        ([{"path": "/proc/1"}], "/proc/1 belongs to the system"),
        ([{"path": "/tmp"}], "/tmp belongs to the system"),
        ([{"path": "/data", "is_writable": "yes"}], "is_writable must be true or false"),
    ],
)
def test_what_is_no_folder_to_be_shown_is_refused_with_the_reason(
    queue: Queue, folders: Any, message: str
) -> None:
    queue.shared_folders = folders

    with pytest.raises(InvalidInput, match=message):
        check_queue(queue)
