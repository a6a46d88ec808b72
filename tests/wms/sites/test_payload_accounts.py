"""Maps of users and groups to accounts of nodes, as queues are configured with them."""

from __future__ import annotations

from typing import Any

import pytest

from wms.accounting.models import AccountingGroup
from wms.core.errors import InvalidInput
from wms.core.models import User
from wms.sites.models import Queue
from wms.sites.payload_accounts import accounts_of
from wms.sites.queue_validation import check_queue

pytestmark = pytest.mark.django_db


@pytest.fixture
def queue(make_site) -> Queue:
    make_site("site-a")
    User.objects.create_user("alice")
    AccountingGroup.objects.create(name="cms")
    queue = Queue.objects.get()
    queue.fence = "sudo"
    return queue


def test_a_map_is_taken_and_told_to_pilots_behind_sudo_alone(queue: Queue) -> None:
    queue.payload_accounts = {"users": {"alice": ["alice"]}, "groups": {"cms": ["cms-1", "cms-2"]}}

    check_queue(queue)

    assert accounts_of(queue) == queue.payload_accounts
    queue.fence = "bwrap"
    assert accounts_of(queue) == {}
    with pytest.raises(InvalidInput, match="only the fence sudo"):
        check_queue(queue)


@pytest.mark.parametrize(
    ("accounts", "place"),
    [
        ([], "must be a JSON object"),
        ({"people": {}}, "people: is unknown"),
        ({"users": ["alice"]}, "users: must be"),
        ({"users": {"alice": "alice"}}, "users.alice: must be a list"),
        ({"users": {"alice": []}}, "users.alice: must be a list"),
        ({"users": {"alice": [0]}}, "users.alice: must be a list"),
        ({"users": {"alice": ["root"]}}, "users.alice: 'root' is root's"),
        ({"users": {"alice": ["#0"]}}, "users.alice: '#0' is no name"),
        ({"users": {"alice": ["-u"]}}, "users.alice: '-u' is no name"),
        ({"users": {"alice": ["a\n"]}}, "is no name"),
        ({"users": {"alice": ["pilotage3"]}}, "is of the pool"),
        ({"users": {"alice": ["x"]}, "groups": {"cms": ["x"]}}, "x is named 2 times"),
        ({"users": {"bob": ["bob"]}}, "users.bob: there is no user"),
        ({"groups": {"atlas": ["atlas"]}}, "groups.atlas: there is no group"),
        ({"users": {f"u{number}": [f"u{number}"] for number in range(101)}}, "allowed are 100"),
    ],
)
def test_what_is_no_map_of_accounts_is_refused_with_place_and_reason(
    queue: Queue, accounts: Any, place: str
) -> None:
    queue.payload_accounts = accounts

    with pytest.raises(InvalidInput) as raised:
        check_queue(queue)

    assert {finding.field for finding in raised.value.findings} == {"payload_accounts"}
    assert any(place in finding.message for finding in raised.value.findings)
