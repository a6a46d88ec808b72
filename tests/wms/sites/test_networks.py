"""What a queue lets its payloads reach of the network."""

from __future__ import annotations

import pytest

from wms.core.errors import InvalidInput
from wms.sites.models import Queue
from wms.sites.queue_validation import check_queue

pytestmark = pytest.mark.django_db


@pytest.fixture
def queue(make_site) -> Queue:
    make_site("site-a")
    return Queue.objects.get()


@pytest.mark.parametrize("network", ["auto", "node", "portal", "none"])
@pytest.mark.parametrize("fence", ["auto", "bwrap", "apptainer"])
def test_fences_of_namespaces_take_each_network(queue: Queue, fence: str, network: str) -> None:
    queue.fence, queue.network = fence, network

    check_queue(queue)


@pytest.mark.parametrize(
    ("fence", "network", "message"),
    [
        ("none", "node", "network: without a fence payloads have the node's network"),
        ("none", "portal", "network: without a fence payloads have the node's network"),
        ("none", "none", "network: without a fence payloads have the node's network"),
        ("sudo", "portal", "network: sudo leaves payloads in the node's network"),
        ("sudo", "none", "network: sudo leaves payloads in the node's network"),
        ("auto", "open", "network: Value 'open' is not a valid choice"),
    ],
)
def test_what_a_fence_cannot_give_is_refused_with_the_reason(
    queue: Queue, fence: str, network: str, message: str
) -> None:
    queue.fence, queue.network = fence, network

    with pytest.raises(InvalidInput, match=message):
        check_queue(queue)


def test_a_limit_on_files_is_known(queue: Queue) -> None:
    queue.payload_limits = {"files": 500_000}

    check_queue(queue)
