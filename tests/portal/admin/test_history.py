"""The history of a configured object, going back, and forms that went stale."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client

from tests import factories
from tests.portal.admin.conftest import AsPerson
from wms.accounting.models import AccountingGroup
from wms.core.models import AuditEntry
from wms.sites.models import Site
from wms.sites.services import save_site


@pytest.fixture
def site(people: SimpleNamespace) -> Site:
    return factories.site("UW", max_matches=2)


def _change(site: Site) -> str:
    return f"/admin/sites/site/{site.pk}/change/"


def _history(site: Site) -> str:
    return f"/admin/sites/site/{site.pk}/history/"


def _body(client: Client, address: str) -> dict[str, Any]:
    """What the form would send if nothing was typed."""
    form = client.get(address).context["adminform"].form
    body = {name: form.get_initial_for_field(field, name) for name, field in form.fields.items()}
    return {name: value for name, value in body.items() if value not in (None, False)}


def test_a_change_is_shown_field_by_field_with_who_when_why_and_the_request(
    olga: Client, site: Site
) -> None:
    body = _body(olga, _change(site)) | {
        "max_matches": "9",
        "environment": "SiteWorkingArea=/tmp\nNew=1",
        "reason": "more disks",
    }

    answer = olga.post(_change(site), body)
    page = olga.get(_history(site)).content.decode()

    assert answer.status_code == 302, answer.context["adminform"].form.errors
    assert "<b>olga</b>" in page
    assert "more disks" in page
    assert answer["X-Request-ID"] in page
    assert "<del>2</del>" in page
    assert "<ins>9</ins>" in page
    assert '<span class="added">+ New=1</span>' in page
    assert '<span class="same">  SiteWorkingArea=/tmp</span>' in page


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("actor=olga", ["Change site"]),
        ("actor=nobody", []),
        ("field=max_matches", ["Change site", "Create site"]),
        ("field=rank", ["Create site"]),
        ("since=2100-01-01", []),
        ("until=2100-01-01", ["Change site", "Create site"]),
    ],
)
def test_the_history_is_filtered(olga: Client, site: Site, query: str, shown: list[str]) -> None:
    olga.post(_change(site), _body(olga, _change(site)) | {"max_matches": "9"})

    answer = olga.get(f"{_history(site)}?{query}")

    assert [each.entry.action.capitalize() for each in answer.context["changes"]] == shown


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("since=yesterday", "Enter a valid date"),
        ("since=2026-02-01&until=2026-01-01", "must not be before the first day"),
        ("field=nonsense", "not one of the available choices"),
        ("before=x", "nothing is listed"),
        ("until=9999-12-31", "too far away"),
    ],
)
def test_a_filter_that_cannot_be_read_shows_its_fault_and_no_list(
    olga: Client, site: Site, query: str, words: str
) -> None:
    answer = olga.get(f"{_history(site)}?{query}")

    assert words in answer.content.decode()
    assert answer.context["changes"] == []


@pytest.mark.slow
def test_the_history_is_paged(olga: Client, site: Site) -> None:
    for number in range(60):
        site.max_matches = 100 + number
        save_site(site, actor=factories.SYSTEM)

    first = olga.get(_history(site))
    second = olga.get(f"{_history(site)}{first.context['older']}")

    assert (len(first.context["changes"]), len(second.context["changes"])) == (50, 11)
    assert second.context["older"] == ""


def test_going_back_is_an_edit_with_the_old_values_and_stores_nothing_by_itself(
    olga: Client, site: Site
) -> None:
    olga.post(_change(site), _body(olga, _change(site)) | {"max_matches": "9", "rank": "5.0"})
    entry = AuditEntry.objects.latest("pk")

    address = f"{_change(site)}?revert={entry.pk}"
    olga.get(address)
    body = _body(olga, address)

    assert Site.objects.get().max_matches == 9
    assert (body["max_matches"], body["rank"]) == (2, "0.0")
    assert olga.post(address, body).status_code == 302
    assert (Site.objects.get().max_matches, Site.objects.get().rank) == (2, "0.0")
    assert AuditEntry.objects.latest("pk").facts["max_matches"] == [9, 2]


def test_members_of_a_group_are_put_back_by_name(olga: Client, people: SimpleNamespace) -> None:
    factories.accounting(people.alice)
    group = AccountingGroup.objects.get()
    address = f"/admin/accounting/accountinggroup/{group.pk}/change/"
    olga.post(address, _body(olga, address) | {"members": [people.bob.pk]})
    entry = AuditEntry.objects.latest("pk")

    body = _body(olga, f"{address}?revert={entry.pk}")

    assert entry.facts == {"members": [["alice"], ["bob"]]}
    assert body["members"] == [people.alice.pk]


@pytest.mark.parametrize("number", ["\u00b2", "9" * 30, "-1", "x"])
def test_what_is_no_change_at_all_is_not_put_back(olga: Client, site: Site, number: str) -> None:
    assert olga.get(_change(site), {"revert": number}).status_code == 404


def test_the_change_of_another_object_is_not_put_back_here(olga: Client, site: Site) -> None:
    other = factories.site("Florida")
    other.max_matches = 3
    save_site(other, actor=factories.SYSTEM)

    answer = olga.get(f"{_change(site)}?revert={AuditEntry.objects.latest('pk').pk}")

    assert answer.status_code == 404


def test_a_stale_form_shows_both_values_and_overwrites_nothing(
    olga: Client, as_person: AsPerson, site: Site
) -> None:
    body = _body(olga, _change(site))
    as_person("ada").post(_change(site), body | {"max_matches": "7"})

    answer = olga.post(_change(site), body | {"max_matches": "5"})

    errors = answer.context["adminform"].form.errors
    assert "ada" in errors["__all__"][0].split()
    assert errors["max_matches"] == ["Stored meanwhile: 7 - yours: 5"]
    assert Site.objects.get().max_matches == 7


def test_long_texts_that_differ_at_their_end_only_are_a_conflict(
    olga: Client, as_person: AsPerson, site: Site
) -> None:
    body = _body(olga, _change(site))
    long = "\n".join(f'Word{number} = "a word of the site"' for number in range(30))
    as_person("ada").post(_change(site), body | {"attributes": f"{long}\nEnd = 1"})

    answer = olga.post(_change(site), body | {"attributes": f"{long}\nEnd = 2"})

    errors = answer.context["adminform"].form.errors
    assert "End = 1" in errors["attributes"][0]
    assert "End = 2" in errors["attributes"][0]
    assert Site.objects.get().attributes.endswith("End = 1")


def test_who_has_seen_the_conflict_may_save_again(
    olga: Client, as_person: AsPerson, site: Site
) -> None:
    body = _body(olga, _change(site))
    as_person("ada").post(_change(site), body | {"max_matches": "7"})
    form = olga.post(_change(site), body | {"max_matches": "5"}).context["adminform"].form

    answer = olga.post(_change(site), body | {"max_matches": "5", "seen": form["seen"].value()})

    assert answer.status_code == 302
    assert Site.objects.get().max_matches == 5


def test_a_field_that_was_left_alone_is_not_put_back_to_what_it_was(
    olga: Client, as_person: AsPerson, site: Site
) -> None:
    body = _body(olga, _change(site))
    as_person("ada").post(_change(site), body | {"rank": "7.0"})

    answer = olga.post(_change(site), body | {"max_matches": "5"})

    assert answer.status_code == 200
    assert "Stored meanwhile: 7.0" in answer.context["adminform"].form.errors["rank"][0]
    assert Site.objects.get().rank == "7.0"


def test_two_who_want_the_same_do_not_quarrel(
    olga: Client, as_person: AsPerson, site: Site
) -> None:
    body = _body(olga, _change(site)) | {"max_matches": "7"}
    as_person("ada").post(_change(site), body)

    assert olga.post(_change(site), body).status_code == 302


def test_a_change_of_members_meanwhile_is_a_conflict(
    olga: Client, as_person: AsPerson, people: SimpleNamespace
) -> None:
    factories.accounting(people.alice)
    group = AccountingGroup.objects.get()
    address = f"/admin/accounting/accountinggroup/{group.pk}/change/"
    body = _body(olga, address)
    as_person("ada").post(address, body | {"members": [people.bob.pk]})

    answer = olga.post(address, body | {"members": [people.alice.pk, people.charlie.pk]})

    errors = answer.context["adminform"].form.errors
    [fault] = errors["members"]
    assert re.findall("bob|alice|charlie", fault) == ["bob", "alice", "charlie"]
    assert list(group.members.all()) == [people.bob]


def test_what_was_typed_and_refused_is_not_shown_as_in_force(olga: Client, site: Site) -> None:
    body = _body(olga, _change(site)) | {"rank": "7777.0", "max_matches": "-1"}

    page = olga.post(_change(site), body).content.decode()

    assert "<code>7777.0</code>" not in page
    assert "<code>0.0</code>" in page


def test_the_site_leads_to_a_test_of_its_ad_and_shows_what_is_in_force(
    olga: Client, site: Site
) -> None:
    page = olga.get(_change(site)).content.decode()

    assert "?site=UW" in page
    assert "<td>SiteEnvironment</td>" in page
    assert "<td>configured</td>" in page
