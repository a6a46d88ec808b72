"""The audit trail at the API: the entries, filters and rights of its page."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from rest_framework.test import APIClient

from tests import factories
from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.models import User
from wms.sites.services import ban_site

AUDIT = "/api/v1/audit/"


@pytest.fixture
def trail(people: SimpleNamespace) -> None:
    """Olga banned a site, Ada gave Bob a role and set a policy, Bob renamed a filter."""
    factories.site("UW")
    ban_site("UW", actor=Actor.person(people.olga), reason="disk full")
    ada = Actor.person(people.ada)
    record_action("change user", target="user bob", actor=ada, facts={"role": ["user", "shifter"]})
    record_action("change matchmaking policy", target="matchmaking policy", actor=ada)
    record_action("change filter", target="filter 7", actor=Actor.person(people.bob))


def _told(client: APIClient, query: str = "") -> list[str]:
    answer = client.get(f"{AUDIT}{query}")
    assert answer.status_code == 200, answer.content
    return [each["action"] for each in answer.json()["results"]]


@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        ("olga", set()),
        ("bob", {"change matchmaking policy"}),
        ("sam", {"change user", "change matchmaking policy", "change filter"}),
        ("vera", {"change user", "change matchmaking policy", "change filter"}),
    ],
)
def test_everybody_reads_the_part_that_the_page_shows_them(
    trail: None,
    people: SimpleNamespace,
    as_user: Callable[[User], APIClient],
    name: str,
    hidden: set[str],
) -> None:
    of_trail = {"ban site", "change user", "change matchmaking policy", "change filter"}

    told = set(_told(as_user(getattr(people, name))))

    assert told & of_trail == of_trail - hidden


def test_an_entry_tells_who_what_why_and_what_changed(
    trail: None, people: SimpleNamespace, as_user: Callable[[User], APIClient]
) -> None:
    olga = as_user(people.olga)

    (banned,) = olga.get(f"{AUDIT}?object=site:UW&action=ban site").json()["results"]
    (changed,) = olga.get(f"{AUDIT}?object=account:bob&actor=ada").json()["results"]

    assert (banned["actor"], banned["target"], banned["reason"]) == ("olga", "site UW", "disk full")
    assert (banned["object_kind"], banned["object_key"]) == ("site", "UW")
    assert changed["facts"] == {"role": ["user", "shifter"]}


def test_the_trail_is_read_page_by_page_latest_first(
    trail: None, people: SimpleNamespace, as_user: Callable[[User], APIClient]
) -> None:
    olga = as_user(people.olga)
    whole, told, address = _told(olga), [], f"{AUDIT}?page_size=2"

    while address:
        page = olga.get(address).json()
        told += [each["action"] for each in page["results"]]
        address = page["next"]

    assert told == whole
    assert told[1:4] == ["change filter", "change matchmaking policy", "change user"]


@pytest.mark.parametrize("query", ["?object=cats:1", "?kind=cat", "?created=soon", "?who=ada"])
def test_a_filter_that_is_none_is_refused_and_nothing_is_listed(
    alice: APIClient, query: str
) -> None:
    answer = alice.get(f"{AUDIT}{query}")

    assert answer.status_code == 400
    assert "results" not in answer.json()
