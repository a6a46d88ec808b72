"""Bars above lists: facets, chips, saved filters, columns, time zone."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse

from portal.personal.models import Preferences, SavedFilter
from portal.personal.services import save_filter, save_preferences, set_default_filter
from portal.web.templatetags.pilotage import about
from tests import factories
from tests.portal.web.markup import text_of
from wms.core.actors import Actor
from wms.core.database import counting
from wms.core.database.counting import Count
from wms.core.models import User
from wms.dags.models import Dag
from wms.dags.services.dags import hold_dags

DAGS = reverse("web:dags")
LIVE = {"headers": {"HX-Request": "true", "HX-Target": "live"}}


def listing(client: Client, query: str = ""):
    return client.get(DAGS + query).context["listing"]


def bar(client: Client, query: str = ""):
    return client.get(DAGS + query).context["bar"]


def text(client: Client, address: str) -> str:
    return " ".join(client.get(address).content.decode().split())


@pytest.fixture
def dags(people: SimpleNamespace) -> list[Dag]:
    """Two idle DAGs of Alice, and a held one of Bob."""
    made = [factories.dag(people.alice, name=f"{n}.dag", node_count=1) for n in range(2)]
    made.append(factories.dag(people.bob, name="held.dag", node_count=1))
    hold_dags([made[2].pk], actor=factories.SYSTEM, reason="disk full")
    return made


@pytest.mark.slow
def test_each_count_of_a_facet_is_the_length_of_the_list_behind_its_link(
    alice: Client, dags: list[Dag]
) -> None:
    shown = listing(alice, "?name=!nothing")

    facets = [*shown.facets, *(facet for group in shown.groups for facet in group.facets)]
    assert {group.name for group in shown.groups} == {"owner"}
    for facet in facets:
        count = facet.count if isinstance(facet.count, int) else facet.count.value
        assert len(listing(alice, facet.query).lines) == count
        assert "name=%21nothing" in facet.query


def test_a_chosen_facet_is_taken_away_by_its_link(alice: Client, dags: list[Dag]) -> None:
    held = next(f for f in listing(alice, "?state=held,idle").facets if f.state == "held")

    assert held.is_chosen
    assert held.query == "?state=idle"


def test_a_negated_state_is_left_out_of_the_total(alice: Client, dags: list[Dag]) -> None:
    shown = listing(alice, "?state=!held")

    assert (shown.total, shown.chosen_total, len(shown.lines)) == (Count(3), Count(2), 2)


def test_chips_lead_to_the_list_without_them_and_to_their_opposite(
    alice: Client, dags: list[Dag]
) -> None:
    owner, state = sorted(bar(alice, "?state=held&owner=!alice").chips, key=lambda chip: chip.label)

    assert (owner.label, owner.text, owner.is_not) == ("Owner", "alice", True)
    assert owner.without == "?state=held"
    assert {dag.owner.username for dag in listing(alice, owner.flipped).lines} == set()
    assert len(listing(alice, state.flipped).lines) == 0
    assert len(listing(alice, state.without).lines) == 1


def test_an_unknown_filter_is_named_and_no_list_is_shown(alice: Client, dags: list[Dag]) -> None:
    page = text(alice, f"{DAGS}?stat=held")

    assert "&#x27;stat&#x27;" in page
    assert "name, state" in page
    assert 'id="dags-box"' not in page
    assert "held.dag" not in page


def test_the_message_of_a_filter_stands_at_its_field(alice: Client, dags: list[Dag]) -> None:
    page = text(alice, f"{DAGS}?created=soon&nodes=1")

    assert re.search(r'name="created" value="soon"[^>]*aria-describedby="fault-created"', page)
    assert "24h" in text_of(page, "fault-created")
    assert 'id="menu-filters" open' in page


def test_what_is_set_stays_in_the_form(alice: Client, dags: list[Dag]) -> None:
    fields = {field.name: field for field in bar(alice, "?state=held,!idle&owner=a,b").fields}

    assert [option.value for option in fields["state"].options if option.is_chosen] == ["held"]
    assert fields["state"].kept == ["!idle"]
    assert fields["owner"].value == "a, b"


def test_a_filter_is_saved_used_renamed_and_removed(
    alice: Client, people: SimpleNamespace, dags: list[Dag]
) -> None:
    made = alice.post(
        reverse("web:save-filter"), {"list": "dags", "name": "stuck", "query": "state=held"}
    )
    saved = SavedFilter.objects.get()

    assert made["Location"] == f"{DAGS}?state=held&saved={saved.pk}"
    shown = alice.get(made["Location"]).context["bar"]
    assert shown.current.saved == saved
    alice.post(reverse("web:change-filter", args=[saved.pk]), {"name": "held ones"})
    assert "held ones" in text(alice, DAGS)
    alice.post(reverse("web:remove-filter", args=[saved.pk]))
    assert not SavedFilter.objects.exists()


def test_a_filter_that_was_changed_since_is_not_the_saved_one(
    alice: Client, people: SimpleNamespace, dags: list[Dag]
) -> None:
    saved = save_filter(
        "dags", name="stuck", parameters={"state": ["held"]}, actor=Actor.person(people.alice)
    )

    assert bar(alice, f"?state=held&saved={saved.pk}").current is not None
    assert bar(alice, f"?state=idle&saved={saved.pk}").current is None


def test_a_list_opens_with_the_filter_that_was_chosen_for_that(
    alice: Client, people: SimpleNamespace, dags: list[Dag]
) -> None:
    actor = Actor.person(people.alice)
    saved = save_filter("dags", name="stuck", parameters={"state": ["held"]}, actor=actor)
    set_default_filter("dags", saved.pk, actor=actor)

    opened = alice.get(DAGS)

    assert opened.status_code == 302
    assert opened["Location"] == f"?state=held&saved={saved.pk}"
    assert len(listing(alice, "?saved=none").lines) == 3
    assert listing(alice, opened["Location"]).all_query == "?saved=none"
    assert alice.get(DAGS, **LIVE).status_code == 200


@pytest.mark.slow
def test_ones_own_filters_are_there_however_many_others_share(
    alice: Client, people: SimpleNamespace
) -> None:
    bob, kept = Actor.person(people.bob), {"state": ["held"]}
    for number in range(101):
        save_filter("dags", name=f"a{number}", parameters=kept, is_shared=True, actor=bob)
    mine = Actor.person(people.alice)
    save_filter("dags", name="y", parameters=kept, actor=mine)
    first = save_filter("dags", name="z", parameters={"owner": ["alice"]}, actor=mine)
    set_default_filter("dags", first.pk, actor=mine)

    names = [line.saved.name for line in bar(alice, "?saved=none").saved]

    assert names[:3] == ["z", "y", "a0"]
    assert alice.get(DAGS).url == f"?owner=alice&saved={first.pk}"


def test_the_filter_that_was_used_last_is_offered_to_the_same_person(
    alice: Client, people: SimpleNamespace, dags: list[Dag]
) -> None:
    alice.get(f"{DAGS}?state=held&owner=!alice")

    assert bar(alice).last_used == "?state=held&owner=%21alice"
    assert [chip.text for chip in bar(alice).last_chips] == ["held", "alice"]
    assert bar(alice, "?state=idle").last_used == ""
    alice.force_login(people.bob)
    assert bar(alice).last_used == ""


@pytest.mark.parametrize("kept", ["", "1", "1:state=lost", "x:%zz", "1:" + "a" * 9000])
def test_a_made_up_cookie_offers_nothing(alice: Client, people: SimpleNamespace, kept: str) -> None:
    alice.cookies["last-filter"] = kept.replace("1:", f"{people.alice.pk}:")

    assert bar(alice).last_used == ""


def test_chosen_columns_are_shown_and_are_not_in_the_address(
    alice: Client, dags: list[Dag]
) -> None:
    address = f"{DAGS}?state=held"
    back = alice.post(
        reverse("web:columns"),
        {"list": "dags", "column": ["ended", "owner"], "density": "dense", "next": address},
    )

    assert back["Location"] == address
    shown = listing(alice, "?state=held")
    assert [head.column.name for head in shown.heads] == ["dag", "owner", "ended"]
    page = text(alice, address)
    assert "list dense" in page
    assert "disk full" not in page.split("<table")[1]
    alice.post(reverse("web:columns"), {"list": "dags", "usual": "1", "next": address})
    assert "reason" in listing(alice).shown


def test_a_form_leads_back_to_pages_of_the_portal_only(alice: Client) -> None:
    for elsewhere in ("https://evil.example/", "//evil.example/", ""):
        back = alice.post(reverse("web:preferences"), {"theme": "dark", "next": elsewhere})
        assert back["Location"] == "/"


@pytest.mark.parametrize(
    ("zone", "shown", "name"),
    [
        ("UTC", "2026-11-20 12:00:00", "UTC"),
        ("browser", "2026-11-20 12:00:00", "UTC"),
        ("Asia/Tokyo", "2026-11-20 21:00:00", "JST"),
    ],
)
def test_every_time_of_a_page_is_in_the_zone_of_its_reader(
    people: SimpleNamespace,
    browser_of: Callable[[User], Client],
    dags: list[Dag],
    zone: str,
    shown: str,
    name: str,
) -> None:
    Dag.objects.update(created_at=datetime(2026, 11, 20, 12, tzinfo=UTC))
    save_preferences({"time_zone": zone}, actor=Actor.person(people.alice))

    page = text(browser_of(people.alice), DAGS)
    of_another = text(browser_of(people.bob), DAGS)

    assert f'data-zone="{zone}"' in page
    assert f'title="{shown} {name}"' in page
    assert 'title="2026-11-20 12:00:00 UTC"' in of_another


def test_the_colours_are_kept_for_the_person(alice: Client) -> None:
    alice.post(reverse("web:preferences"), {"theme": "dark"}, headers={"HX-Request": "true"})

    assert Preferences.objects.get().theme == "dark"
    assert 'data-theme="dark"' in text(alice, DAGS)


def test_a_page_of_who_is_logged_out_names_no_preferences(client: Client, db: None) -> None:
    assert "data-zone" not in text(client, reverse("web:login"))


def test_large_counts_are_told_as_estimates(
    alice: Client, dags: list[Dag], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "EXACT_UP_TO", 1)
    assert "estimate" in text(alice, DAGS)

    monkeypatch.setattr(counting, "EXACT_UP_TO", 2)
    assert "latest 10,000" in text(alice, DAGS)


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (7, "7"),
        (Count(9_999), "9,999"),
        (Count(10_001, is_estimate=True), "about 10 k"),
        (Count(123_456, is_estimate=True), "about 120 k"),
        (Count(999_999, is_estimate=True), "about 1,000 k"),
        (Count(1_234_567, is_estimate=True), "about 1.2 M"),
        (Count(2_000_000_000, is_estimate=True), "about 2 G"),
    ],
)
def test_a_count_is_told_as_exactly_as_it_is_known(count: Count | int, words: str) -> None:
    assert about(count) == words
