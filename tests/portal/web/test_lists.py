from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse

from portal.web.lists import paging
from tests import factories
from wms.core.actors import Actor
from wms.core.database.counting import Count
from wms.dags.models import Dag
from wms.dags.services.dags import hold_dags


def _listing(client: Client, address: str):
    return client.get(address).context["listing"]


def test_the_counts_by_state_follow_the_other_filters(
    alice: Client, people: SimpleNamespace
) -> None:
    factories.dag(people.alice, name="higgs.dag")
    factories.dag(people.bob, name="top.dag")

    listing = _listing(alice, reverse("web:dags") + "?owner=bob&state=running")

    assert {facet.state: facet.count for facet in listing.facets}["idle"] == Count(1)
    assert listing.page.rows == []
    assert listing.total == Count(1)


def test_a_filter_that_does_not_parse_shows_its_message_and_no_list(
    alice: Client, people: SimpleNamespace
) -> None:
    factories.dag(people.alice)

    answer = alice.get(reverse("web:jobs") + "?dag=seven")

    assert "Enter a number." in answer.content.decode()
    assert len(answer.context["listing"].page.rows) == 0
    assert b'class="facets"' not in answer.content


def test_a_long_list_is_walked_forth_and_back_without_losing_a_line(
    alice: Client, people: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "PAGE_SIZE", 3)
    for number in range(5):
        factories.dag(people.alice, name=f"dag{number}.dag", node_count=1)
    address = reverse("web:dags")
    expected = list(Dag.objects.order_by("-pk"))

    first = _listing(alice, address + "?owner=alice").page
    second = _listing(alice, address + first.older).page
    again = _listing(alice, address + second.newer).page

    assert [*first.rows, *second.rows] == expected
    assert "owner=alice" in first.older
    assert second.older == ""
    assert again.rows == first.rows
    assert again.newer == ""


@pytest.mark.parametrize("border", ["before=x", "before=-1", "after=99999999999999999999"])
def test_a_made_up_place_in_a_list_is_ignored(
    alice: Client, people: SimpleNamespace, border: str
) -> None:
    factories.dag(people.alice)

    assert len(_listing(alice, f"{reverse('web:dags')}?{border}").page.rows) == 1


def test_attention_is_for_held_and_failed_dags_only(alice: Client, people: SimpleNamespace) -> None:
    held = factories.dag(people.alice, name="held.dag")
    factories.dag(people.alice, name="fresh.dag")
    hold_dags([held.pk], actor=Actor.person(people.alice), reason="disk full")

    board = alice.get(reverse("web:dashboard")).context["board"]

    assert [dag.pk for dag in board.attention] == [held.pk]
    assert not board.is_calm
